//! An open session: its relay, and the watch on its keyed hop.

use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use adit_net::system::monotonic_now;
use adit_stream::{BoxStream, CountBytes, EndReason, RelayOutcome, Stream, relay};
use adit_wire::{Target, narrow_int};
use tokio::time::{Instant, sleep};
use tracing::field::display;
use tracing::{Level, Span, debug, enabled};

use super::ConnectionHandler;
use crate::ConnectionAddrs;
use crate::acceptor::FurtherRequests;
use crate::connector::{Connector, HopWatch};
use crate::session_span::record_end;
use crate::session_table::SessionEntry;
use crate::stage_meter::StageMeter;
use crate::user_account::UserAccount;
use crate::user_registry::{QueueTicket, SessionPermit};

/// Time without an answer after which a keyed hop is reported if the client has closed the connection.
const REPORT_ABANDONED_AFTER: Duration = Duration::from_secs(2);

/// An open session: two streams and their context.
pub(super) struct OpenSession {
    pub(super) near: BoxStream,
    pub(super) far: BoxStream,
    pub(super) watch: Option<HopWatch>,
    /// Further requests on the same connection.
    pub(super) again: Option<Box<ReusableConnection>>,
    /// The span of the session, if there is a log of it.
    pub(super) span: Option<Box<Span>>,
    pub(super) about: Box<SessionInfo>,
}

/// A connection that has further requests when a session has finished.
pub(super) struct ReusableConnection {
    pub(super) requests: Box<dyn FurtherRequests>,
    pub(super) peer: ConnectionAddrs,
    /// Number of times that the request has come back to this process.
    pub(super) rounds: u8,
}

/// The context of a session. It is kept outside of the future, which is bounded in size, and has only what an idle session
/// without a user needs.
pub(super) struct SessionInfo {
    /// The user, if the listener has any.
    pub(super) user: Option<Box<SessionUser>>,
    /// Lists the session, counts its bytes, and can end it.
    pub(super) entry: SessionEntry,
    /// The ends, for a log with connections.
    pub(super) ends: Option<Box<SessionEnds>>,
    /// Until the target answers.
    pub(super) first_byte: FirstByteClock,
    /// Keeps the plugins of the chain running, after a reload too.
    pub(super) _chain: Arc<dyn Connector>,
}

/// The client and the target of a session.
pub(super) struct SessionEnds {
    client: SocketAddr,
    target: Target,
}

impl SessionEnds {
    /// Returns both if the log has connections.
    pub(super) fn for_log(client: SocketAddr, target: Target) -> Option<Box<Self>> {
        enabled!(Level::DEBUG).then(|| Box::new(Self { client, target }))
    }
}

/// The time from a request to the first byte from the target. Smaller than an `Instant` with a flag.
pub(super) struct FirstByteClock(AtomicU64);

impl FirstByteClock {
    /// Of a request at `requested`.
    pub(super) fn of_request(requested: Instant) -> Self {
        let waited: u64 = narrow_int(requested.elapsed().as_micros());
        let begun = monotonic_now().0.saturating_sub(waited);
        Self(AtomicU64::new(begun.max(1)))
    }

    /// Returns the time at the first call, and `None` at the others. Only one task may call it at a time, which saves an
    /// atomic exchange.
    fn stop(&self) -> Option<Duration> {
        let begun = self.0.load(Ordering::Relaxed);
        if begun == 0 {
            return None;
        }
        self.0.store(0, Ordering::Relaxed);
        let spent = monotonic_now().0.saturating_sub(begun);
        Some(Duration::from_micros(spent))
    }
}

/// The user of a session.
pub(super) struct SessionUser {
    pub(super) account: Arc<UserAccount>,
    /// Counts the session.
    pub(super) permit: Option<SessionPermit>,
    /// The places of both directions among the sessions that share a rate.
    tickets: [QueueTicket; 2],
}

impl SessionUser {
    /// Returns the user with this account, if there is one.
    pub(super) fn of(
        account: Option<Arc<UserAccount>>,
        permit: Option<SessionPermit>,
    ) -> Option<Box<Self>> {
        debug_assert!(account.is_some() || permit.is_none(), "a permit of no user");
        let user = account.map(|account| Self {
            account,
            permit,
            tickets: Default::default(),
        });
        user.map(Box::new)
    }

    /// Returns the number of bytes that the session may move now, or wakes the task of `cx` later.
    fn poll_allowance(&self, cx: &Context<'_>, is_up: bool) -> Poll<usize> {
        let [up, down] = &self.tickets;
        let ticket = if is_up { up } else { down };
        self.account.poll_allowance(cx, is_up, ticket)
    }
}

impl ConnectionHandler {
    /// Relays the session and watches its keyed hop; ends when the user is removed, or
    /// their limits do not allow it any more.
    pub(super) async fn relay_session(&self, session: &mut OpenSession) {
        if let Some(user) = &session.about.user {
            user.account.count_tcp_session();
        }
        let outcome = self.run_relay(session).await;
        let OpenSession {
            near, far, about, ..
        } = session;
        let SessionInfo {
            entry,
            ends,
            user: limited,
            ..
        } = &**about;
        let ends = ends.as_deref();
        let client = ends.map(|ends| display(ends.client));
        let target = ends.map(|ends| display(&ends.target));
        let user = entry.user();
        let Some(Some(outcome)) = outcome else {
            // A truncated transfer must not look complete.
            near.abort();
            far.abort();
            let why = match (outcome, limited) {
                (None, Some(user)) => user.account.end_text(user.permit.as_ref()),
                _ => "this was requested",
            };
            record_end(entry, why);
            return debug!(client, user, target, "closed: {why}");
        };
        let (up, down, end) = (outcome.up, outcome.down, &outcome.end);
        record_end(entry, end_name(end));
        debug!(client, user, target, up, down, "closed: {end:?}");
    }

    /// Relays until the streams end; returns `None` outside if the user's sessions end, and inside if this session was
    /// ended. It borrows as little as possible, because idle sessions wait here.
    async fn run_relay(&self, session: &mut OpenSession) -> Option<Option<RelayOutcome>> {
        let asked = RequestCounter {
            about: &session.about,
            stages: &self.stages,
        };
        let eye = session.watch.as_ref().map(HopObserver);
        let outcome = {
            let (near, far) = (&mut *session.near, &mut *session.far);
            let mut relay = pin!(relay(near, far, &self.limits, &asked));
            let watched = pin!(relay_and_watch(eye.as_ref(), &asked, relay.as_mut()));
            let watched = asked.about.entry.run_until_ended(watched);
            match &asked.about.user {
                Some(user) => {
                    let permit = user.permit.as_ref();
                    user.account.run_until_ended(permit, watched).await
                }
                None => Some(watched.await),
            }
        };
        if let (Some(eye), Some(Some(outcome))) = (&eye, &outcome) {
            eye.update_at_end(outcome, asked.has_request_bytes());
        }
        outcome
    }
}

/// Returns the name of the reason why a relay has ended, for traces.
const fn end_name(end: &EndReason) -> &'static str {
    match end {
        EndReason::Finished => "finished",
        EndReason::Idle => "idle",
        EndReason::Near(_) => "client",
        EndReason::Far(_) => "target",
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

/// Counts for the session, its listener and its user, and times the first byte from the destination.
struct RequestCounter<'a> {
    about: &'a SessionInfo,
    stages: &'a StageMeter,
}

impl RequestCounter<'_> {
    /// Returns true if the client has sent anything.
    fn has_request_bytes(&self) -> bool {
        self.about.entry.up() > 0
    }

    #[inline]
    fn poll_allowance(&self, cx: &Context<'_>, is_up: bool) -> Poll<usize> {
        match &self.about.user {
            Some(user) => user.poll_allowance(cx, is_up),
            None => Poll::Ready(usize::MAX),
        }
    }
}

impl CountBytes for RequestCounter<'_> {
    fn add_up(&self, n: usize) {
        self.about.entry.add_up(n);
        if let Some(user) = &self.about.user {
            user.account.count_bytes(n, true);
        }
    }

    fn add_down(&self, n: usize) {
        self.about.entry.add_down(n);
        if let Some(user) = &self.about.user {
            user.account.count_bytes(n, false);
        }
        // Bytes of one direction are counted by one task, so that no other call comes in between.
        if let Some(waited) = self.about.first_byte.stop() {
            self.stages.first_byte.record(waited);
        }
    }

    fn poll_allowance_up(&self, cx: &Context<'_>) -> Poll<usize> {
        self.poll_allowance(cx, true)
    }

    fn poll_allowance_down(&self, cx: &Context<'_>) -> Poll<usize> {
        self.poll_allowance(cx, false)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_is_timed_once() {
        let requested = Instant::now();
        std::thread::sleep(Duration::from_millis(2));
        let clock = FirstByteClock::of_request(requested);
        let waited = clock.stop().unwrap();
        assert!(waited >= Duration::from_millis(1), "{waited:?}");
        assert!(waited <= requested.elapsed() + Duration::from_millis(1));
        assert_eq!(clock.stop(), None);
    }

    #[test]
    fn the_context_of_a_session_is_small() {
        // One for each session: with the head of its allocation, 64 bytes.
        assert!(size_of::<SessionInfo>() <= 48);
    }
}
