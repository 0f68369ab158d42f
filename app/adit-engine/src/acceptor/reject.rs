//! How a connection ends that must not learn anything (SEC-P1 to SEC-P4).

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

/// Bytes that are read and thrown away before reading stops.
const BUDGET: usize = 1 << 20;
/// Connections that are held at once; above it the oldest is closed.
const HELD: usize = 4096;
/// From the bytes that decide to what can be seen of the decision. A judgement takes less, so that
/// its length cannot be seen; and servers that have nothing to hide are not much faster.
const SETTLE: Duration = Duration::from_millis(1);
/// The same for each key that has to be tried: several times what a trial takes.
const SETTLE_EACH: Duration = Duration::from_micros(5);
/// Goodbyes to connections that lost their place, at once; above it they are closed without one.
const GOODBYES: usize = 4;

/// The one reaction of a keyed listener to everything it does not accept.
///
/// What a prober sees is a function of the policy alone, never of the cause.
pub struct Rejects {
    policy: RejectPolicy,
    /// Decoys that come before the policy.
    redirect: Vec<Redirect>,
    /// Drawn once per start, so that the same server always waits about as long.
    hold: Duration,
    held: Mutex<VecDeque<(u64, Arc<Notify>)>>,
    next: AtomicU64,
    /// Keys that a judgement tries.
    trials: AtomicUsize,
    goodbyes: AtomicUsize,
}

impl Rejects {
    /// A reaction with a hold time of its own.
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

    /// The same with decoys that are tried first.
    #[must_use]
    pub fn redirecting(self, redirect: Vec<Redirect>) -> Self {
        Self { redirect, ..self }
    }

    /// Whether the bytes of the peer are needed as they came.
    pub(crate) const fn keeps_bytes(&self) -> bool {
        matches!(self.policy, RejectPolicy::Forward(_)) || !self.redirect.is_empty()
    }

    /// A judgement tries so many keys one after the other from now on.
    pub(crate) fn expect_trials(&self, keys: usize) {
        self.trials.store(keys, Ordering::Relaxed);
    }

    fn settle(&self) -> Duration {
        let trials = self.trials.load(Ordering::Relaxed);
        SETTLE + SETTLE_EACH * u32::try_from(trials).unwrap_or(u32::MAX)
    }

    /// Does to the connection, which came to `port`, what the policy says.
    ///
    /// Reset and close come at one of two moments, whatever the cause (SEC-P3): right after the
    /// bytes that were enough to judge, or at the deadline of the handshake if there were never
    /// enough, and an early end of the stream is no reason to come sooner. A decoy takes over only
    /// from a connection that was not answered. A connection that loses its place has the end of
    /// the policy at that moment, which depends on its age alone.
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

    /// Ends the connection as the policy does.
    async fn end(&self, io: &mut BoxStream, seen: &Seen) {
        match self.policy {
            RejectPolicy::Drain | RejectPolicy::Forward(_) => {}
            RejectPolicy::Reset => io.abort(),
            RejectPolicy::Close => {
                // A flood must not have more connections in their last second than places.
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

    /// Reads and throws away until the peer leaves or the time is over; never writes.
    ///
    /// The time counts from the connection's first moment: from that of the judgement it would
    /// tell how many bytes a judgement takes.
    async fn drain(&self, io: &mut BoxStream, seen: &Seen) {
        // A handshake that may last longer must not be the longer one for those who say little.
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
                    // Sooner, and what a judgement takes could be seen. Later there is nothing
                    // left to hide, and every moment more would tell a server like this one.
                    Ok(0) => return sleep_until(last + self.settle()).await,
                    Ok(n) => {
                        last = Instant::now();
                        io.consume(n);
                        budget = budget.saturating_sub(n);
                    }
                }
            }
            // The window closes and the peer waits, as with any slow server.
            pending::<()>().await;
        };
        self.hold(seen.began + hold + jitter, &seen.place, swallow)
            .await;
    }

    /// Waits for `end`, for the time to be over, or until others need the place.
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

    /// Lets the peer talk to a real server instead.
    async fn forward(&self, mut io: BoxStream, seen: &Seen, decoy: &Target) {
        let Some(socket) = open(decoy).await else {
            return self.drain(&mut io, seen).await;
        };
        let mut far = Tcp::new(socket);
        // They are in `seen`, and there as they were before our codec touched them.
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
