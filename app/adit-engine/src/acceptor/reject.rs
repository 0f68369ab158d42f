//! Handling of connections that must not learn anything about the server (SEC-P1 to SEC-P4).

use std::collections::VecDeque;
use std::future::pending;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use adit_config::RejectPolicy;
use adit_net::ambient::Chance;
use adit_net::dial::{self, Family};
use adit_obfs::Redirect;
use adit_stream::{BoxStream, Limits, Meter, Stream, Tcp, fill, relay, send};
use adit_wire::{Entropy, Host, Target};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::farewell::{LAST_BYTES, goodbye};
use super::header::Seen;
use crate::Place;

/// Number of bytes that are read and discarded before reading stops.
const BUDGET: usize = 1 << 20;
/// Maximum number of connections that are held open; beyond it the oldest is closed.
const HELD: usize = 4096;
/// Delay between the bytes that allow a decision and its visible effect. Decisions take less, which hides
/// their duration; and servers that have nothing to hide are not much faster.
const SETTLE: Duration = Duration::from_millis(1);
/// The same for each key that has to be tried: several times the duration of a trial.
const SETTLE_EACH: Duration = Duration::from_micros(5);
/// Maximum number of simultaneous delayed closes of evicted connections. More are closed without one.
const GOODBYES: usize = 4;

/// The single reaction of a keyed listener to everything that it does not accept.
///
/// The observable behavior depends on the policy alone, never on the cause.
pub struct Rejects {
    policy: RejectPolicy,
    /// Decoys that are tried before the policy.
    redirect: Vec<Redirect>,
    /// Drawn once per start, so that one server always waits for about the same time.
    hold: Duration,
    held: Mutex<VecDeque<(u64, Arc<Notify>)>>,
    next: AtomicU64,
    /// Number of keys that a decision tries.
    trials: AtomicUsize,
    goodbyes: AtomicUsize,
}

impl Rejects {
    /// Creates the reaction for a policy, with a random hold time.
    #[must_use]
    pub fn new(policy: RejectPolicy) -> Self {
        let hold = Duration::from_secs(u64::from(Chance.between(60, 120)));
        Self {
            policy,
            redirect: Vec::new(),
            hold,
            held: Mutex::default(),
            next: AtomicU64::new(0),
            trials: AtomicUsize::new(0),
            goodbyes: AtomicUsize::new(0),
        }
    }

    /// Adds decoys that are tried before the policy.
    #[must_use]
    pub fn redirecting(self, redirect: Vec<Redirect>) -> Self {
        Self { redirect, ..self }
    }

    /// Returns true if the bytes of the peer are needed as received.
    pub(crate) const fn keeps_bytes(&self) -> bool {
        matches!(self.policy, RejectPolicy::Forward(_)) || !self.redirect.is_empty()
    }

    /// Sets the number of keys that a decision tries in sequence.
    pub(crate) fn expect_trials(&self, keys: usize) {
        self.trials.store(keys, Ordering::Relaxed);
    }

    fn settle(&self) -> Duration {
        let trials = self.trials.load(Ordering::Relaxed);
        SETTLE + SETTLE_EACH * u32::try_from(trials).unwrap_or(u32::MAX)
    }

    /// Applies the policy to a connection that arrived on `port`.
    ///
    /// Resets and closes happen at one of two moments, whatever the cause (SEC-P3): directly after the
    /// bytes that sufficed for a decision, or at the handshake deadline if they never sufficed. An early end
    /// of the stream does not move the moment forward. A decoy takes over only if nothing was sent to the
    /// peer. A connection that loses its slot is ended by the policy at that moment, which depends on its
    /// age alone.
    pub(super) async fn apply(&self, mut io: BoxStream, seen: Seen, port: u16) {
        if seen.evicted {
            return self.end(&mut io, &seen).await;
        }
        let decoy = match &self.policy {
            _ if seen.answered => None,
            RejectPolicy::Forward(decoy) => Some(decoy),
            _ => None,
        };
        let asked = (!seen.answered).then_some(&seen.bytes[..]);
        let redirected = asked.and_then(|bytes| Redirect::decoy(&self.redirect, bytes, port));
        if let Some(decoy) = redirected.or(decoy) {
            if seen.whole {
                sleep_until(seen.last + self.settle()).await;
            }
            return self.forward(io, &seen, decoy).await;
        }
        match &self.policy {
            RejectPolicy::Drain | RejectPolicy::Forward(_) => self.drain(&mut io, &seen).await,
            RejectPolicy::Reset | RejectPolicy::Close => {
                self.moment(&seen).await;
                self.end(&mut io, &seen).await;
            }
        }
    }

    /// Ends the connection as the policy demands.
    async fn end(&self, io: &mut BoxStream, seen: &Seen) {
        match self.policy {
            RejectPolicy::Drain | RejectPolicy::Forward(_) => {}
            RejectPolicy::Reset => io.abort(),
            RejectPolicy::Close => {
                // In a flood, connections that are being closed must not outnumber the slots.
                if self.goodbyes.fetch_add(1, Ordering::Relaxed) < GOODBYES || !seen.evicted {
                    let budget = LAST_BYTES.saturating_sub(seen.taken);
                    goodbye(io, &[], budget).await;
                }
                self.goodbyes.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    /// Waits for the moment at which the connection is closed.
    async fn moment(&self, seen: &Seen) {
        let until = if seen.whole {
            seen.last + self.settle()
        } else {
            seen.deadline
        };
        self.hold(until, &seen.place, pending()).await;
    }

    /// Reads and discards until the peer closes or the hold time has passed; never writes.
    ///
    /// The hold time counts from the start of the connection: counted from the decision, it would reveal how
    /// many bytes a decision needs.
    async fn drain(&self, io: &mut BoxStream, seen: &Seen) {
        // Otherwise a handshake with a longer deadline would hold peers longer that send little.
        let hold = self.hold.max(seen.deadline - seen.began);
        let jitter = hold / 10 * u32::from(Chance.between(0, 1000)) / 1000;
        let mut last = seen.last;
        let swallow = async {
            let known = io.filled().len();
            io.consume(known);
            let mut budget = BUDGET.saturating_sub(seen.taken + known);
            while budget > 0 {
                match fill(io, 1).await {
                    Err(_) => return,
                    // Closing earlier would reveal the duration of the decision. Closing later hides nothing more,
                    // and each further moment would distinguish this server from others.
                    Ok(0) => return sleep_until(last + self.settle()).await,
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
        self.hold(seen.began + hold + jitter, &seen.place, swallow)
            .await;
    }

    /// Waits for `end`, for `until`, or until others need the slot.
    async fn hold(&self, until: Instant, place: &Place, end: impl Future<Output = ()>) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let leave = self.enter(number);
        tokio::select! {
            () = end => {}
            () = sleep_until(until) => {}
            () = leave.notified() => {}
            () = place.lost() => {}
        }
        self.lock().retain(|(n, _)| *n != number);
    }

    fn enter(&self, number: u64) -> Arc<Notify> {
        let leave = Arc::new(Notify::new());
        let mut held = self.lock();
        held.push_back((number, leave.clone()));
        if held.len() > HELD
            && let Some((_, oldest)) = held.pop_front()
        {
            oldest.notify_one();
        }
        leave
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<(u64, Arc<Notify>)>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Relays the peer to a real server instead.
    async fn forward(&self, mut io: BoxStream, seen: &Seen, decoy: &Target) {
        let Some(socket) = open(decoy).await else {
            return self.drain(&mut io, seen).await;
        };
        let mut far = Tcp::new(socket);
        // They are also in `seen`, as they were before the codec decrypted them in place.
        let already = io.filled().len();
        io.consume(already);
        if send(&mut far, &seen.bytes).await.is_err() {
            return;
        }
        let limits = Limits {
            idle: self.hold,
            half_close_idle: self.hold,
        };
        let meter = Meter::default();
        tokio::select! {
            _ = relay(&mut io, &mut far, &limits, &meter) => {}
            () = seen.place.lost() => {}
        }
    }
}

async fn open(decoy: &Target) -> Option<tokio::net::TcpStream> {
    let candidates = match &decoy.host {
        Host::Ip(ip) => vec![(*ip, decoy.port).into()],
        Host::Name(name) => dial::resolve(name.as_str(), decoy.port, Family::Any)
            .await
            .ok()?,
    };
    dial::race(&candidates, Duration::from_secs(5)).await.ok()
}
