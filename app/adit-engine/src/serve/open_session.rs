//! An open session: its relay, and the watch on its keyed hop.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use adit_stream::{BoxStream, CountBytes, EndReason, RelayOutcome, Stream, relay};
use adit_wire::Target;
use tokio::time::sleep;
use tracing::debug;

use super::ConnectionHandler;
use crate::ConnectionAddrs;
use crate::acceptor::FurtherRequests;
use crate::connector::{Connector, HopWatch};
use crate::user_account::{CountedSession, DualCounter, UserAccount, run_until_ended};
use crate::user_registry::{QueueTicket, SessionPermit};

/// Time without an answer after which a keyed hop is reported if the client has closed the connection.
const REPORT_ABANDONED_AFTER: Duration = Duration::from_secs(2);

/// An open session: two streams and their context.
pub(super) struct OpenSession {
    pub(super) near: BoxStream,
    pub(super) far: BoxStream,
    pub(super) watch: Option<HopWatch>,
    /// Further requests on the same connection.
    pub(super) again: Option<Box<dyn FurtherRequests>>,
    pub(super) account: Option<Arc<UserAccount>>,
    pub(super) about: Box<SessionInfo>,
}

/// Details of a session for the log.
pub(super) struct SessionInfo {
    pub(super) peer: ConnectionAddrs,
    pub(super) target: Target,
    pub(super) user: String,
    /// Number of times that the request has come back to this process.
    pub(super) rounds: u8,
    /// The state of its flow.
    pub(super) flow: FlowState,
    /// Counts the session of a user.
    pub(super) _permit: Option<SessionPermit>,
    /// Keeps the plugins of the chain running, after a reload too.
    pub(super) _chain: Arc<dyn Connector>,
}

/// The state of a session's flow. It is kept outside of the future, which is bounded in size.
#[derive(Default)]
pub(super) struct FlowState {
    /// True if the client has sent anything.
    has_request_bytes: AtomicBool,
    /// The places of both directions among the sessions that share a rate.
    tickets: [QueueTicket; 2],
}

impl FlowState {
    /// Creates the state of a session whose first bytes, if there are any, were sent ahead of the relay.
    pub(super) fn new(has_request_bytes: bool) -> Self {
        Self {
            has_request_bytes: AtomicBool::new(has_request_bytes),
            ..Self::default()
        }
    }
}

impl ConnectionHandler {
    /// Relays the session and watches its keyed hop; ends when the user is removed, or
    /// their limits do not allow it any more.
    pub(super) async fn relay_session(&self, session: &mut OpenSession) {
        let OpenSession {
            near,
            far,
            watch,
            account,
            about,
            ..
        } = session;
        let SessionInfo {
            peer,
            target,
            user,
            flow,
            ..
        } = &**about;
        if let Some(account) = account {
            account.count_tcp_session();
        }
        let _open = CountedSession::new(&self.meter);
        let asked = RequestCounter {
            both: DualCounter {
                meter: &self.meter,
                account: account.as_ref(),
            },
            flow,
        };
        let eye = watch.as_ref().map(HopObserver);
        let outcome = {
            let mut relay = pin!(relay(&mut **near, &mut **far, &self.limits, &asked));
            let watched = pin!(relay_and_watch(eye.as_ref(), &asked, relay.as_mut()));
            run_until_ended(account.as_deref(), watched).await
        };
        let Some(outcome) = outcome else {
            // A truncated transfer must not look complete.
            near.abort();
            far.abort();
            let why = account.as_ref().map_or("", |account| account.end_text());
            return debug!(client = %peer.remote, user, %target, "closed: {why}");
        };
        if let Some(eye) = &eye {
            eye.update_at_end(&outcome, asked.has_request_bytes());
        }
        let (up, down, end) = (outcome.up, outcome.down, &outcome.end);
        debug!(client = %peer.remote, user, %target, up, down, "closed: {end:?}");
    }
}

/// The watch on a session's keyed hop. A group watches its members itself.
struct HopObserver<'a>(&'a HopWatch);

impl HopObserver<'_> {
    /// Updates the health of the server: healthy if it is authenticated, otherwise suspect if there is a
    /// complaint.
    fn update_health(&self, complaint: Option<&str>) {
        let HopWatch {
            health,
            progress,
            since,
        } = self.0;
        if progress.is_authenticated() {
            health.record_proof(progress.clock_skew());
        } else if let Some(complaint) = complaint {
            health.report_suspect(complaint, *since);
        }
    }

    /// Updates the health at the end of a session. A server that received no payload need not answer, and a
    /// client may close the connection before the answer.
    fn update_at_end(&self, outcome: &RelayOutcome, asked: bool) {
        let waited = self.0.since.elapsed();
        let gone = match &outcome.end {
            EndReason::Far(_) => true,
            EndReason::Finished => outcome.target_ended_first,
            EndReason::Idle | EndReason::Near(_) => false,
        };
        if !asked {
            self.update_health(None);
        } else if gone {
            self.update_health(Some("has closed the connection without an answer"));
        } else if waited >= REPORT_ABANDONED_AFTER {
            let complaint = format!("has not answered in {} s", waited.as_secs());
            self.update_health(Some(&complaint));
        } else {
            self.update_health(None);
        }
    }
}

/// A counter that also records if the client has sent anything.
struct RequestCounter<'a> {
    both: DualCounter<'a>,
    flow: &'a FlowState,
}

impl RequestCounter<'_> {
    fn has_request_bytes(&self) -> bool {
        self.flow.has_request_bytes.load(Ordering::Relaxed)
    }
}

impl CountBytes for RequestCounter<'_> {
    fn add_up(&self, n: usize) {
        self.both.add_up(n);
        // Written once, so that the cache line stays shared.
        if !self.has_request_bytes() {
            self.flow.has_request_bytes.store(true, Ordering::Relaxed);
        }
    }

    fn add_down(&self, n: usize) {
        self.both.add_down(n);
    }

    fn poll_allowance_up(&self, cx: &Context<'_>) -> Poll<usize> {
        let [up, _] = &self.flow.tickets;
        self.both.poll_allowance(cx, true, up)
    }

    fn poll_allowance_down(&self, cx: &Context<'_>) -> Poll<usize> {
        let [_, down] = &self.flow.tickets;
        self.both.poll_allowance(cx, false, down)
    }
}

/// Relays, and reports a keyed hop that does not answer.
async fn relay_and_watch(
    eye: Option<&HopObserver<'_>>,
    asked: &RequestCounter<'_>,
    mut relay: Pin<&mut (impl Future<Output = RelayOutcome> + Send)>,
) -> RelayOutcome {
    if let Some(eye) = eye {
        tokio::select! {
            outcome = relay.as_mut() => return outcome,
            () = sleep(eye.0.health.silence_limit()) => {
                let complaint = format!("has not answered for {} s", eye.0.since.elapsed().as_secs());
                eye.update_health(asked.has_request_bytes().then_some(&*complaint));
            }
        }
    }
    relay.await
}
