//! How a connection ends that must not learn anything (SEC-P1 to SEC-P4).

use std::collections::VecDeque;
use std::future::pending;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use adit_config::RejectPolicy;
use adit_net::ambient::Chance;
use adit_net::dial::{self, Family};
use adit_obfs::Redirect;
use adit_stream::{BoxStream, Limits, Meter, Stream, Tcp, fill, finish, relay, send};
use adit_wire::{Entropy, Host, Target};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};

/// Bytes that are read and thrown away before reading stops.
const BUDGET: usize = 1 << 20;
/// Connections that are held at once; above it the oldest is closed.
const HELD: usize = 4096;
/// Time for a goodbye to a peer that is told something.
const FAREWELL: Duration = Duration::from_secs(1);

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

    /// When the handshake must be over: for the policies that close at once also the moment when
    /// a short first message is given up.
    ///
    /// `seen` are the peer's bytes; `None` if it was answered already, so that no decoy can take
    /// over. It came to `port`.
    pub(crate) async fn apply(&self, mut io: BoxStream, seen: Option<&[u8]>, port: u16) {
        let decoy = seen.and_then(|seen| Redirect::decoy(&self.redirect, seen, port));
        if let (Some(decoy), Some(seen)) = (decoy, seen) {
            return self.forward(io, seen, decoy).await;
        }
        match (&self.policy, seen) {
            (RejectPolicy::Forward(decoy), Some(seen)) => self.forward(io, seen, decoy).await,
            (RejectPolicy::Drain | RejectPolicy::Forward(_), _) => self.drain(&mut io).await,
            (RejectPolicy::Reset, _) => io.abort(),
            (RejectPolicy::Close, _) => farewell(&mut io, &[]).await,
        }
    }

    /// Reads and throws away until the peer leaves or the time is over; never writes.
    async fn drain(&self, io: &mut BoxStream) {
        let jitter = u64::from(Chance.between(0, 1000));
        let until =
            Instant::now() + self.hold + self.hold / 10 * u32::try_from(jitter).unwrap_or(0) / 1000;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let leave = self.enter(number);
        let swallow = async {
            let mut budget = BUDGET;
            loop {
                match fill(io, 1).await {
                    Ok(0) | Err(_) => return,
                    Ok(n) => {
                        io.consume(n);
                        budget = budget.saturating_sub(n);
                    }
                }
                if budget == 0 {
                    // The window closes and the peer waits, as with any slow server.
                    return pending().await;
                }
            }
        };
        tokio::select! {
            () = swallow => {}
            () = sleep_until(until) => {}
            () = leave.notified() => {}
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
    async fn forward(&self, mut io: BoxStream, seen: &[u8], decoy: &Target) {
        let Some(socket) = open(decoy).await else {
            return self.drain(&mut io).await;
        };
        let mut far = Tcp::new(socket);
        // `seen` is what came so far, before our codec touched it.
        let already = io.filled().len();
        io.consume(already);
        if send(&mut far, seen).await.is_err() {
            return;
        }
        let limits = Limits {
            idle: self.hold,
            half_close_idle: self.hold,
        };
        relay(&mut io, &mut far, &limits, &Meter::default()).await;
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

/// Says `last` and closes so that the peer gets it: a close with unread bytes would be a reset,
/// which may overtake what was said.
pub(crate) async fn farewell(io: &mut BoxStream, last: &[u8]) {
    let goodbye = async {
        send(io, last).await?;
        finish(io).await?;
        let mut budget = 64 << 10;
        while budget > 0 {
            let n = fill(io, 1).await?;
            if n == 0 {
                break;
            }
            io.consume(n);
            budget -= n.min(budget);
        }
        Ok::<_, std::io::Error>(())
    };
    // Whether the peer stays to listen is its own affair.
    let _ = timeout(FAREWELL, goodbye).await;
}
