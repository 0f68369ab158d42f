//! The replay checks of a node at the filter that all nodes of the realm share.
//!
//! Nodes with the same keys behind one address ask the store whether another of them has seen a request. Checks of one
//! millisecond share a call, and no one waits for a store that is slow or gone: after a deadline, a policy decides.
//!
//! ```text
//! sessions ─ claim ─▶ queue ─ batch of ≤ 1 ms ─▶ claim_salts ─▶ answers
//!     ◀──────────────── answer, or the policy at the deadline ────┘
//! ```
//!
//! Claims are in sets by the minute of the request's own time stamp, so that a replay looks into the same set wherever it
//! arrives. Requests of the AEAD edition have none: they are claimed by the clock, for this minute and the one before,
//! which finds replays for one to two minutes. Sessions of packets are claimed for a minute and the next one.

mod batch;
mod latency;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use adit_net::system;
use adit_wire::UnixTime;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::seal::RecordCipher;
use crate::store::{SaltClaim, Store};
use batch::{Check, MAX_QUEUED, run_batches};
use latency::LatencyWindow;

/// Minimum time that a check may take.
const MIN_DEADLINE: Duration = Duration::from_millis(50);
/// Maximum time that a check may take, however slow the store is.
const MAX_DEADLINE: Duration = Duration::from_secs(1);
/// Time without an answer of the store after which checks do not wait for it any more.
const PATIENCE: Duration = Duration::from_secs(1);

/// The policy for checks while the store does not answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReplayOutage {
    /// Requests that this node has not seen are accepted: each node is protected by its own filter.
    #[default]
    Open,
    /// They are refused as replays.
    Closed,
}

/// The results of checks so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReplayStats {
    /// Requests that no node had seen.
    pub new: u64,
    /// Requests that another node had seen.
    pub replayed: u64,
    /// Checks that the store did not answer in time.
    pub timeout: u64,
    /// Checks that failed, or were not made because the store did not answer before.
    pub outage: u64,
    /// Time without answers of the store, so that only each node's own filter decided.
    pub degraded: Duration,
}

impl ReplayStats {
    /// Returns the number of checks by result, named as in metrics.
    #[must_use]
    pub const fn by_result(&self) -> [(&'static str, u64); 4] {
        [
            ("new", self.new),
            ("replayed", self.replayed),
            ("timeout", self.timeout),
            ("outage", self.outage),
        ]
    }
}

/// The result of one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CheckResult {
    New,
    Replayed,
    Timeout,
    Outage,
}

/// Asks the store whether requests are new, in batches.
pub struct ClaimBatcher {
    shared: Arc<Shared>,
    queue: mpsc::Sender<Check>,
}

/// The state that the checks of a node share.
struct Shared {
    cipher: Arc<RecordCipher>,
    policy: ReplayOutage,
    results: [AtomicU64; 4],
    store: Mutex<StoreView>,
}

/// The state of the store according to the answers so far.
struct StoreView {
    latency: LatencyWindow,
    /// The time of the first check since the last answer that had none.
    silent_since: Option<Instant>,
    /// The sum of all ended times without answers.
    silence: Duration,
}

impl fmt::Debug for ClaimBatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClaimBatcher")
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

impl ClaimBatcher {
    /// Starts to ask `store`, in a task that ends when the batcher is dropped.
    #[must_use]
    pub fn start(store: Arc<dyn Store>, cipher: Arc<RecordCipher>, policy: ReplayOutage) -> Self {
        let (queue, checks) = mpsc::channel(MAX_QUEUED);
        let shared = Arc::new(Shared {
            cipher,
            policy,
            results: Default::default(),
            store: Mutex::new(StoreView {
                latency: LatencyWindow::new(Instant::now()),
                silent_since: None,
                silence: Duration::ZERO,
            }),
        });
        let weak = queue.downgrade();
        tokio::spawn(run_batches(store, shared.clone(), checks, weak));
        Self { shared, queue }
    }

    /// Claims the salt of a request, or something else that distinguishes it. The call makes the claim; the future
    /// returns false if it is a replay.
    pub fn claim_salt(
        &self,
        name: &[u8],
        stamp: Option<UnixTime>,
    ) -> impl Future<Output = bool> + Send + Sync + use<> {
        let claims = match stamp {
            Some(stamp) => vec![self.claim(name, minute(stamp))],
            None => {
                let now = minute(system::unix_now());
                let before = now.saturating_sub(1);
                vec![self.claim(name, now), self.claim(name, before)]
            }
        };
        self.check(claims, None)
    }

    /// Claims a session of packets that starts at this node with a packet of this time. The future returns false if
    /// another node serves it.
    pub fn claim_session(
        &self,
        name: &[u8],
        stamp: UnixTime,
    ) -> impl Future<Output = bool> + Send + Sync + use<> {
        let claims = vec![self.claim(name, minute(stamp))];
        // Not with the first claim: a node that does not get the session must not claim its future.
        let then = self.claim(name, minute(stamp) + 1);
        self.check(claims, Some(then))
    }

    /// Renews the claim of a session that this node serves, after a packet of this time.
    pub fn renew_session(&self, name: &[u8], stamp: UnixTime) {
        let minutes = [minute(stamp), minute(stamp) + 1];
        // A session whose claim gets lost goes on.
        let _ = self.queue.try_send(Check {
            claims: minutes.map(|minute| self.claim(name, minute)).to_vec(),
            then: None,
            reply: None,
        });
    }

    fn claim(&self, name: &[u8], bucket: u64) -> SaltClaim {
        let digest = self.shared.cipher.salt_digest(name);
        SaltClaim { bucket, digest }
    }

    fn check(
        &self,
        claims: Vec<SaltClaim>,
        then: Option<SaltClaim>,
    ) -> impl Future<Output = bool> + Send + Sync + use<> {
        let start = Instant::now();
        let shared = self.shared.clone();
        let (reply, answer) = oneshot::channel();
        let deadline = shared.deadline(start).filter(|_| {
            let check = Check {
                claims,
                then,
                reply: Some(reply),
            };
            self.queue.try_send(check).is_ok()
        });
        async move {
            let result = match deadline {
                None => CheckResult::Outage,
                Some(deadline) => match timeout_at(deadline, answer).await {
                    Ok(Ok(true)) => CheckResult::New,
                    Ok(Ok(false)) => CheckResult::Replayed,
                    Ok(Err(_)) => CheckResult::Outage,
                    Err(_) => CheckResult::Timeout,
                },
            };
            shared.decide(result, start)
        }
    }

    /// Returns the results so far.
    #[must_use]
    pub fn stats(&self) -> ReplayStats {
        self.shared.stats(Instant::now())
    }
}

impl Shared {
    fn store(&self) -> MutexGuard<'_, StoreView> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the deadline of a check that starts now; `None` if the store has been silent for so long that it is not
    /// waited for.
    fn deadline(&self, now: Instant) -> Option<Instant> {
        let mut store = self.store();
        let silent = store.silent_since;
        if silent.is_some_and(|since| now.duration_since(since) >= PATIENCE) {
            return None;
        }
        let usual = store.latency.p99(now).unwrap_or_default() * 2;
        Some(now + usual.clamp(MIN_DEADLINE, MAX_DEADLINE))
    }

    /// Counts the result of a check that started at `start`, and returns the verdict.
    fn decide(&self, result: CheckResult, start: Instant) -> bool {
        if let Some(count) = self.results.get(result as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        match result {
            CheckResult::New => true,
            CheckResult::Replayed => false,
            CheckResult::Timeout | CheckResult::Outage => {
                self.store().silent_since.get_or_insert(start);
                self.policy == ReplayOutage::Open
            }
        }
    }

    /// Notes that the store has answered a call.
    fn note_answer(&self, called: Instant, now: Instant) {
        let mut store = self.store();
        store.latency.record(now.duration_since(called), now);
        if let Some(since) = store.silent_since.take() {
            store.silence += now.duration_since(since);
        }
    }

    /// Returns a claim to test the store with, which concerns no request.
    fn test_claim(&self) -> SaltClaim {
        SaltClaim {
            bucket: minute(system::unix_now()),
            digest: self.cipher.salt_digest(b"test"),
        }
    }

    /// Returns true if checks are without answers.
    fn is_silent(&self) -> bool {
        self.store().silent_since.is_some()
    }

    fn stats(&self, now: Instant) -> ReplayStats {
        let [new, replayed, timeout, outage] = self
            .results
            .each_ref()
            .map(|count| count.load(Ordering::Relaxed));
        let store = self.store();
        let current = store.silent_since.map(|since| now.duration_since(since));
        ReplayStats {
            new,
            replayed,
            timeout,
            outage,
            degraded: store.silence + current.unwrap_or_default(),
        }
    }
}

/// Returns the minute of a time.
const fn minute(at: UnixTime) -> u64 {
    at.0 / 60
}
