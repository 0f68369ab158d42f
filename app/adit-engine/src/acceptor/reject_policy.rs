//! Handling of connections that must not learn anything about the server (SEC-P1 to SEC-P4).

use std::collections::VecDeque;
use std::future::pending;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use adit_config::RejectPolicy;
use adit_net::dial::{self, Family};
use adit_net::system::ThreadRng;
use adit_obfs::RedirectRule;
use adit_stream::{
    BoxStream, RelayTimeouts, Stream, Tcp, TrafficMeter, fill_to, relay, write_and_flush,
};
use adit_wire::{Entropy, Host, Target};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::closing_reply::{MAX_UNREAD_BYTES, close_with_reply_and_budget};
use super::header::ConnectionProgress;
use crate::dns::NameResolver;
use crate::{HandshakeSlot, Router};

/// Number of bytes that are read and discarded before reading stops.
const MAX_DISCARDED_BYTES: usize = 1 << 20;
/// Maximum number of connections that are held open; beyond it the oldest is closed.
const MAX_HELD_CONNECTIONS: usize = 4096;
/// Delay between the bytes that allow a decision and its visible effect. Decisions take less, which hides
/// their duration; and servers that have nothing to hide are not much faster.
const DECISION_DELAY: Duration = Duration::from_millis(1);
/// The same for each key that has to be tried: several times the duration of a trial.
const DECISION_DELAY_PER_KEY: Duration = Duration::from_micros(5);
/// Maximum number of simultaneous delayed closes of evicted connections. More are closed without one.
const MAX_DELAYED_CLOSES: usize = 4;

/// The single reaction of a keyed listener to everything that it does not accept.
///
/// The observable behavior depends on the policy alone, never on the cause.
pub struct RejectHandler {
    policy: RejectPolicy,
    /// Decoys that are tried before the policy.
    redirect: Vec<RedirectRule>,
    /// The router whose resolver looks the names of decoys up; without one, it is the system's.
    router: Option<Arc<Router>>,
    /// Drawn once per start, so that one server always waits for about the same time.
    hold: Duration,
    held: Mutex<VecDeque<(u64, Arc<Notify>)>>,
    next: AtomicU64,
    /// Number of keys that a decision tries.
    trials: AtomicUsize,
    goodbyes: AtomicUsize,
}

impl RejectHandler {
    /// Creates the reaction for a policy, with a random hold time.
    #[must_use]
    pub fn new(policy: RejectPolicy) -> Self {
        let hold = Duration::from_secs(u64::from(ThreadRng.in_range(60, 120)));
        Self {
            policy,
            redirect: Vec::new(),
            router: None,
            hold,
            held: Mutex::default(),
            next: AtomicU64::new(0),
            trials: AtomicUsize::new(0),
            goodbyes: AtomicUsize::new(0),
        }
    }

    /// Adds decoys that are tried before the policy.
    #[must_use]
    pub fn with_redirects(self, redirect: Vec<RedirectRule>) -> Self {
        Self { redirect, ..self }
    }

    /// Looks the names of decoys up with the resolver of this router's route.
    #[must_use]
    pub(crate) fn with_router(self, router: Arc<Router>) -> Self {
        let router = Some(router);
        Self { router, ..self }
    }

    /// Returns true if the bytes of the peer are needed as received.
    pub(crate) const fn needs_raw_bytes(&self) -> bool {
        matches!(self.policy, RejectPolicy::Forward(_)) || !self.redirect.is_empty()
    }

    /// Sets the number of keys that a decision tries in sequence.
    pub(crate) fn set_trial_count(&self, keys: usize) {
        self.trials.store(keys, Ordering::Relaxed);
    }

    fn decision_delay(&self) -> Duration {
        let trials = self.trials.load(Ordering::Relaxed);
        DECISION_DELAY + DECISION_DELAY_PER_KEY * u32::try_from(trials).unwrap_or(u32::MAX)
    }

    /// Applies the policy to a connection that arrived on `port`.
    ///
    /// Resets and closes happen at one of two moments, whatever the cause (SEC-P3): directly after the
    /// bytes that sufficed for a decision, or at the handshake deadline if they never sufficed. An early end
    /// of the stream does not move the moment forward. A decoy takes over only if nothing was sent to the
    /// peer. A connection that loses its slot is ended by the policy at that moment, which depends on its
    /// age alone.
    pub(super) async fn apply_policy(
        &self,
        mut io: BoxStream,
        seen: ConnectionProgress,
        port: u16,
    ) {
        if seen.evicted {
            return self.end_connection(&mut io, &seen).await;
        }
        let decoy = match &self.policy {
            _ if seen.answered => None,
            RejectPolicy::Forward(decoy) => Some(decoy),
            _ => None,
        };
        let asked = (!seen.answered).then_some(&seen.bytes[..]);
        let redirected =
            asked.and_then(|bytes| RedirectRule::find_decoy(&self.redirect, bytes, port));
        if let Some(decoy) = redirected.or(decoy) {
            if seen.is_decidable {
                sleep_until(seen.last_arrival + self.decision_delay()).await;
            }
            return self.forward_to_decoy(io, &seen, decoy).await;
        }
        match &self.policy {
            RejectPolicy::Drain | RejectPolicy::Forward(_) => {
                self.drain_until_deadline(&mut io, &seen).await;
            }
            RejectPolicy::Reset | RejectPolicy::Close => {
                self.wait_for_reaction_time(&seen).await;
                self.end_connection(&mut io, &seen).await;
            }
        }
    }

    /// Ends the connection as the policy demands.
    async fn end_connection(&self, io: &mut BoxStream, seen: &ConnectionProgress) {
        match self.policy {
            RejectPolicy::Drain | RejectPolicy::Forward(_) => {}
            RejectPolicy::Reset => io.abort(),
            RejectPolicy::Close => {
                // In a flood, connections that are being closed must not outnumber the slots.
                if self.goodbyes.fetch_add(1, Ordering::Relaxed) < MAX_DELAYED_CLOSES
                    || !seen.evicted
                {
                    let budget = MAX_UNREAD_BYTES.saturating_sub(seen.consumed);
                    close_with_reply_and_budget(io, &[], budget).await;
                }
                self.goodbyes.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    /// Waits for the moment at which the connection is closed.
    async fn wait_for_reaction_time(&self, seen: &ConnectionProgress) {
        let until = if seen.is_decidable {
            seen.last_arrival + self.decision_delay()
        } else {
            seen.deadline
        };
        self.hold_slot_until(until, &seen.slot, pending()).await;
    }

    /// Reads and discards until the peer closes or the hold time has passed; never writes.
    ///
    /// The hold time counts from the start of the connection: counted from the decision, it would reveal how
    /// many bytes a decision needs.
    async fn drain_until_deadline(&self, io: &mut BoxStream, seen: &ConnectionProgress) {
        // Otherwise a handshake with a longer deadline would hold peers longer that send little.
        let hold = self.hold.max(seen.deadline - seen.accepted_at);
        let jitter = hold / 10 * u32::from(ThreadRng.in_range(0, 1000)) / 1000;
        let mut last = seen.last_arrival;
        let swallow = async {
            let known = io.filled().len();
            io.consume(known);
            let mut budget = MAX_DISCARDED_BYTES.saturating_sub(seen.consumed + known);
            while budget > 0 {
                match fill_to(io, 1).await {
                    Err(_) => return,
                    // Closing earlier would reveal the duration of the decision. Closing later hides nothing more,
                    // and each further moment would distinguish this server from others.
                    Ok(0) => return sleep_until(last + self.decision_delay()).await,
                    Ok(n) => {
                        last = Instant::now();
                        io.consume(n);
                        budget = budget.saturating_sub(n);
                    }
                }
            }
            // The receive window fills up and the peer waits, as with any slow server.
            pending::<()>().await;
        };
        self.hold_slot_until(seen.accepted_at + hold + jitter, &seen.slot, swallow)
            .await;
    }

    /// Waits for `end`, for `until`, or until others need the slot.
    async fn hold_slot_until(
        &self,
        until: Instant,
        place: &HandshakeSlot,
        end: impl Future<Output = ()>,
    ) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let leave = self.enter_held_queue(number);
        tokio::select! {
            () = end => {}
            () = sleep_until(until) => {}
            () = leave.notified() => {}
            () = place.wait_for_revocation() => {}
        }
        self.lock_held_queue().retain(|(n, _)| *n != number);
    }

    fn enter_held_queue(&self, number: u64) -> Arc<Notify> {
        let leave = Arc::new(Notify::new());
        let mut held = self.lock_held_queue();
        held.push_back((number, leave.clone()));
        if held.len() > MAX_HELD_CONNECTIONS
            && let Some((_, oldest)) = held.pop_front()
        {
            oldest.notify_one();
        }
        leave
    }

    fn lock_held_queue(&self) -> std::sync::MutexGuard<'_, VecDeque<(u64, Arc<Notify>)>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Relays the peer to a real server instead.
    async fn forward_to_decoy(&self, mut io: BoxStream, seen: &ConnectionProgress, decoy: &Target) {
        let Some(socket) = self.connect_decoy(decoy).await else {
            return self.drain_until_deadline(&mut io, seen).await;
        };
        let mut far = Tcp::new(socket);
        // They are also in `seen`, as they were before the codec decrypted them in place.
        let already = io.filled().len();
        io.consume(already);
        if write_and_flush(&mut far, &seen.bytes).await.is_err() {
            return;
        }
        let limits = RelayTimeouts::NEVER
            .with_idle(self.hold)
            .with_half_close_idle(self.hold);
        let meter = TrafficMeter::default();
        tokio::select! {
            _ = relay(&mut io, &mut far, &limits, &meter) => {}
            () = seen.slot.wait_for_revocation() => {}
        }
    }

    async fn connect_decoy(&self, decoy: &Target) -> Option<tokio::net::TcpStream> {
        let candidates = match &decoy.host {
            Host::Ip(ip) => vec![(*ip, decoy.port).into()],
            Host::Name(name) => {
                let router = self.router.as_ref();
                let names = router.map_or_else(NameResolver::system, |router| router.names());
                let found = names.resolve(name.as_str(), decoy.port, Family::Any);
                found.await.ok()?
            }
        };
        dial::connect_first(&candidates, Duration::from_secs(5))
            .await
            .ok()
    }
}
