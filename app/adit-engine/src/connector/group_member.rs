//! Members of a group: opening through them, and recording what they do.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use adit_wire::Target;
use tracing::{debug, info, warn};

use super::group_state::{GroupState, MemberState};
use super::{ConnectedStream, Connector, HopWatch, member_probe};
use crate::{DialError, ServerHealth};

/// A member of a group.
pub(super) struct GroupMember {
    pub(super) connector: Arc<dyn Connector>,
    pub(super) group: Arc<GroupState>,
    at: usize,
    /// The health of its last server, which the group reports in its place.
    server: Option<Arc<ServerHealth>>,
}

impl fmt::Debug for GroupMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A stream that a member has opened.
pub(super) struct OpenedStream {
    pub(super) member: Arc<GroupMember>,
    pub(super) stream: ConnectedStream,
    /// Start of the attempt.
    pub(super) since: Instant,
    /// Time that it took to open.
    pub(super) took: Duration,
}

/// Counts an open stream of a member.
pub(super) struct OpenCount(Option<(Arc<GroupState>, usize)>);

impl Drop for OpenCount {
    fn drop(&mut self) {
        if let Some(open) = self.counter() {
            open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl OpenCount {
    fn counter(&self) -> Option<&AtomicUsize> {
        let (group, at) = self.0.as_ref()?;
        Some(&group.member(*at)?.open)
    }
}

impl GroupMember {
    pub(super) fn new(connector: Arc<dyn Connector>, group: Arc<GroupState>, at: usize) -> Self {
        let server = connector.server_health();
        if let Some(server) = &server {
            server.leave_reports_to_group();
        }
        Self {
            connector,
            group,
            at,
            server,
        }
    }

    fn state(&self) -> Option<&MemberState> {
        self.group.member(self.at)
    }

    /// Returns its position in the configuration.
    pub(super) const fn position(&self) -> usize {
        self.at
    }

    pub(super) fn name(&self) -> &str {
        self.state().map_or("", |state| &state.name)
    }

    pub(super) const fn server(&self) -> Option<&Arc<ServerHealth>> {
        self.server.as_ref()
    }

    pub(super) fn health(&self) -> Option<&super::member_health::MemberHealth> {
        self.state().map(|state| &state.health)
    }

    /// Returns the time after which another member is tried as well.
    pub(super) fn usual_time(&self) -> Duration {
        self.health().map_or(Duration::ZERO, |h| h.usual_time())
    }

    /// Counts a stream as open until the result is dropped.
    pub(super) fn count_open(&self) -> OpenCount {
        let count = OpenCount(Some((self.group.clone(), self.at)));
        if let Some(open) = count.counter() {
            open.fetch_add(1, Ordering::Relaxed);
        }
        count
    }

    /// Opens a stream, and records the result.
    pub(super) async fn open_stream(
        self: Arc<Self>,
        to: Target,
    ) -> Result<OpenedStream, DialError> {
        let since = Instant::now();
        let opened = self.connector.connect(&to, &[]).await;
        let took = since.elapsed();
        self.record_open_result(since, opened.as_ref().err());
        let stream = opened?;
        if stream.watch.is_none() {
            // The handshake is an answer.
            self.record_success(Some(took));
        }
        Ok(OpenedStream {
            member: self,
            stream,
            since,
            took,
        })
    }

    /// Records the result of opening a stream or a path. A keyed server proves nothing by a connection.
    pub(super) fn record_open_result(self: &Arc<Self>, since: Instant, error: Option<&DialError>) {
        match error {
            Some(why) if why.blames_hop() => {
                self.record_failure(since, why.cause.label(), &why.to_string());
            }
            // A statement about the target is an answer of the server.
            _ => {
                if let Some(health) = self.health() {
                    health.record_answer();
                }
            }
        }
    }

    /// Records that the member serves sessions, and logs its return.
    pub(super) fn record_success(&self, took: Option<Duration>) {
        let Some(health) = self.health() else {
            return;
        };
        if let Some(out_for) = health.record_success(took) {
            info!(
                "group {}: {} works again after {} s",
                self.group.name(),
                self.name(),
                out_for.as_secs()
            );
        }
    }

    /// Records a failure of a session that started at `since`, and logs it with its reason. The member returns by a
    /// probe.
    pub(super) fn record_failure(self: &Arc<Self>, since: Instant, cause: &'static str, why: &str) {
        let Some(health) = self.health() else {
            return;
        };
        let Some(newly) = health.record_failure(since, cause, why) else {
            return;
        };
        let (group, name, rest) = (self.group.name(), self.name(), newly.rest.as_secs_f32());
        if newly.is_news {
            warn!("group {group}: {name} is out: {why}. It is tried again in {rest:.0} s");
        } else {
            debug!("group {group}: {name} is out: {why}. It is tried again in {rest:.0} s");
        }
        member_probe::start_return_probe(self);
    }

    /// Records that a keyed server, which proves itself only by an answer, has not answered.
    pub(super) fn record_no_answer(
        self: &Arc<Self>,
        since: Instant,
        cause: &'static str,
        what: &str,
    ) {
        let causes = self
            .server
            .as_ref()
            .and_then(|server| server.likely_causes());
        match causes {
            Some(causes) => self.record_failure(
                since,
                cause,
                &format!("{what}. Likely: it is down, or {causes}"),
            ),
            None => self.record_failure(since, cause, what),
        }
    }

    /// Records that no datagram has come back, so that new associations avoid the member for a while.
    pub(super) fn record_lost_datagrams(&self, what: &str) {
        if self.health().is_some_and(|h| h.record_lost_datagrams()) {
            info!(
                "group {}: new associations avoid {}: {what}",
                self.group.name(),
                self.name()
            );
        }
    }

    /// Records the proof of a keyed server.
    pub(super) fn record_proof(&self, watch: &HopWatch, took: Duration) {
        watch.health.record_proof(watch.progress.clock_skew());
        self.record_success(Some(took));
    }
}
