//! Groups: several chains for one purpose.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use adit_config::GroupKind;
use adit_stream::write_all;
use adit_wire::Target;
use tokio::time::sleep;

use super::group_datagrams::GroupDatagrams;
use super::group_member::{GroupMember, OpenedStream};
use super::group_state::GroupState;
use super::pending_opens::{Opening, PendingOpens};
use super::raced_stream::RacedStream;
use super::{BoundSocket, ConnectedStream, Connector, member_probe};
use crate::udp::BoxDatagramPath;
use crate::{BoxFuture, DialError, DialStage, FailureCause, loop_detection};

/// Interval at which members of a group of the kind `fastest` are measured if no session does so.
const MEASURE_INTERVAL: Duration = Duration::from_secs(60);

/// Uses the member of a group that its [`GroupKind`] puts first, and the others if that fails.
///
/// A member that has failed is last, and returns by a probe in the background. When a member does not answer within
/// its usual time, the next one is tried in parallel with the same first bytes. An error of the local rules ends the
/// search.
pub struct ConnectorGroup {
    state: Arc<GroupState>,
    members: Vec<Arc<GroupMember>>,
}

impl ConnectorGroup {
    /// Creates a group of at least one member. `state` has as many members as there are connectors.
    #[must_use]
    pub fn new(state: Arc<GroupState>, connectors: Vec<Arc<dyn Connector>>) -> Self {
        let member = |(at, connector)| Arc::new(GroupMember::new(connector, state.clone(), at));
        let members = connectors.into_iter().enumerate().map(member).collect();
        Self { state, members }
    }

    /// Returns the members in the order in which they should be tried now.
    fn members_in_order(
        &self,
        target: Option<&Target>,
        for_datagrams: bool,
    ) -> VecDeque<Arc<GroupMember>> {
        let order = self.state.order(target, for_datagrams).into_iter();
        order
            .filter_map(|at| self.members.get(at).cloned())
            .collect()
    }

    /// Opens a stream through the first member to succeed.
    async fn open_stream(&self, to: &Target, first: &[u8]) -> Result<ConnectedStream, DialError> {
        let mut waiting = self.members_in_order(Some(to), false);
        self.look_after_others(&waiting, to);
        let open = |member: Arc<GroupMember>| {
            Box::pin(loop_detection::with_current_rounds(
                member.open_stream(to.clone()),
            )) as Opening<OpenedStream>
        };
        let opened = race_members(&mut waiting, open).await;
        let opened = opened.inspect_err(|why| {
            if why.blames_hop() {
                self.state.report_no_member(why);
            }
        })?;
        let counts = self.state.kind() == GroupKind::LeastLoaded;
        let OpenedStream {
            member,
            mut stream,
            since,
            took,
        } = opened;
        match stream.watch.take() {
            Some(watch) => {
                let first_wait = stream.first_wait;
                let opened = OpenedStream {
                    member,
                    stream,
                    since,
                    took,
                };
                let raced = RacedStream::new(opened, watch, waiting, to.clone(), first);
                Ok(ConnectedStream {
                    first_wait,
                    ..ConnectedStream::in_session(Box::new(raced))
                })
            }
            None => {
                self.state.record_target(to);
                write_all(&mut stream.io, first).await.map_err(|why| {
                    let hop = member.name().to_owned();
                    DialError::new(DialStage::Dialect { hop }, why)
                })?;
                if counts {
                    let count = member.count_open();
                    stream.io = Box::new(RacedStream::settled(stream.io, count));
                }
                Ok(stream)
            }
        }
    }

    /// Starts probes of members that this request will not use.
    fn look_after_others(&self, order: &VecDeque<Arc<GroupMember>>, to: &Target) {
        for member in order.iter().skip(1) {
            let Some(health) = member.health() else {
                continue;
            };
            if let Some(rest) = health.rest_left() {
                // Its task ended with the route that had it.
                if rest.is_zero() {
                    member_probe::start_return_probe(member);
                }
            } else if self.state.kind() == GroupKind::Fastest
                && health.should_measure(MEASURE_INTERVAL)
            {
                member_probe::measure(member, to);
            }
        }
    }

    async fn open_path(&self) -> Result<BoxDatagramPath, DialError> {
        let mut waiting = self.members_in_order(None, true);
        let open = |member: Arc<GroupMember>| {
            let opening = async move {
                let since = Instant::now();
                let opened = member.connector.open_datagrams().await;
                member.record_open_result(since, opened.as_ref().err());
                Ok(GroupDatagrams::new(opened?, member))
            };
            Box::pin(loop_detection::with_current_rounds(opening)) as Opening<GroupDatagrams>
        };
        let path = race_members(&mut waiting, open).await?;
        Ok(Box::new(path))
    }

    async fn open_listener(&self, near: SocketAddr) -> Result<BoundSocket, DialError> {
        let mut last = DialError::denied_by_rule("an empty group");
        for member in self.members_in_order(None, false) {
            match member.connector.listen_for_one(near).await {
                Err(why) if why.cause != FailureCause::Denied => last = why,
                done => return done,
            }
        }
        Err(last)
    }
}

/// Opens something through the first of the `waiting` members to succeed, each of which has its usual time before
/// the next one is tried as well. Those that were not tried remain in `waiting`.
pub(super) async fn race_members<T: Send + 'static>(
    waiting: &mut VecDeque<Arc<GroupMember>>,
    open: impl Fn(Arc<GroupMember>) -> Opening<T>,
) -> Result<T, DialError> {
    let mut running = PendingOpens::default();
    let mut last = DialError::denied_by_rule("an empty group");
    loop {
        let head_start = match waiting.pop_front() {
            Some(member) => {
                let usual = member.usual_time();
                running.add(member.clone(), open(member));
                usual
            }
            None if running.is_empty() => return Err(last),
            None => Duration::MAX,
        };
        let mut timer = pin!(sleep(head_start));
        loop {
            let is_last = waiting.is_empty();
            let ended = poll_fn(|cx| match running.poll_any(cx) {
                Poll::Ready(result) => Poll::Ready(Some(result)),
                Poll::Pending if is_last => Poll::Pending,
                Poll::Pending => timer.as_mut().poll(cx).map(|()| None),
            });
            match ended.await {
                Some(Ok(opened)) => return Ok(opened),
                Some(Err(why)) if why.stage == DialStage::Route => return Err(why),
                Some(Err(why)) => {
                    last = why;
                    if !is_last || running.is_empty() {
                        break;
                    }
                }
                None => {
                    running.mark_late();
                    break;
                }
            }
        }
    }
}

impl Connector for ConnectorGroup {
    fn connect<'a>(
        &'a self,
        to: &'a Target,
        first: &'a [u8],
    ) -> BoxFuture<'a, Result<ConnectedStream, DialError>> {
        Box::pin(self.open_stream(to, first))
    }

    fn open_datagrams(&self) -> BoxFuture<'_, Result<BoxDatagramPath, DialError>> {
        Box::pin(self.open_path())
    }

    fn listen_for_one<'a>(
        &'a self,
        near: SocketAddr,
    ) -> BoxFuture<'a, Result<BoundSocket, DialError>> {
        Box::pin(self.open_listener(near))
    }
}
