//! Decisions about replays in a process that has a successor.
//!
//! Two processes serve a key for a while. From the handover on, the successor decides: a handshake that the older
//! process still has to finish is checked there, and what its filters accept is a claim, which the successor confirms
//! unless it has seen the same. A handshake waits for that before anything follows from it.
//!
//! ```text
//! handshake ── step ─▶ filter ─▶ its log ─▶ claim ─▶ successor's filter
//!           ◀───────────────────────────── confirmed ────┘
//! ```

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use adit_crypto::DecisionLog;
use adit_net::system;
use adit_obfs::ServerState;
use adit_shadowsocks::SaltPool;
use adit_shadowsocksr::ReplayStore;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

/// Maximum number of claims that wait to be sent. Only handshakes that were open at the switch make claims.
const MAX_WAITING: usize = 4096;

/// A filter of replays.
#[derive(Debug, Clone)]
pub(crate) enum ReplayFilter {
    /// Salts of Shadowsocks.
    Salts(Arc<SaltPool>),
    /// First messages of ShadowsocksR.
    Messages(Arc<ReplayStore>),
    /// Hellos of obfs.
    Hellos(Arc<ServerState>),
}

impl ReplayFilter {
    /// Returns the log of its decisions, if it decides anything.
    pub(crate) fn log(&self) -> Option<&DecisionLog> {
        match self {
            Self::Salts(salts) => Some(salts.decision_log()),
            Self::Messages(store) => Some(store.decision_log()),
            Self::Hellos(state) => state.decision_log(),
        }
    }

    /// Inserts what the filter of another process has accepted; returns false if it is a replay.
    pub(crate) fn insert_logged(&self, entry: &[u8]) -> bool {
        let now = system::unix_now();
        let inserted = match self {
            Self::Salts(salts) => salts.insert_logged(entry, now),
            Self::Messages(store) => store.admit_logged(entry, now),
            Self::Hellos(state) => state.insert_logged(entry),
        };
        inserted.is_ok()
    }
}

/// A decision that the successor has to confirm. Dropping it confirms it: the successor has ended.
#[derive(Debug)]
pub struct ReplayClaim {
    bytes: Vec<u8>,
    reply: oneshot::Sender<bool>,
}

impl ReplayClaim {
    /// Returns the bytes for the successor. They are as secret as a key.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Passes the answer of the successor to the handshake that waits for it.
    pub fn answer(self, is_new: bool) {
        // The connection may have ended.
        let _ = self.reply.send(is_new);
    }
}

/// The switch between filters that decide alone, and filters whose decisions a successor confirms.
#[derive(Debug, Default)]
pub(crate) struct ClaimGate(RwLock<Option<SharedDecisions>>);

/// The state while a successor has to confirm.
#[derive(Debug)]
struct SharedDecisions {
    claims: mpsc::Sender<ReplayClaim>,
    /// Held during a step, so that what is in the log afterwards is from this one.
    one_at_a_time: Mutex<()>,
}

impl SharedDecisions {
    fn claim(&self, bytes: Vec<u8>) -> oneshot::Receiver<bool> {
        let (reply, answer) = oneshot::channel();
        match self.claims.try_send(ReplayClaim { bytes, reply }) {
            // Refused, because it may be a replay.
            Err(TrySendError::Full(claim)) => claim.answer(false),
            // When the successor has ended, dropping the claim confirms it.
            Ok(()) | Err(TrySendError::Closed(_)) => {}
        }
        answer
    }
}

impl ClaimGate {
    /// From now on a successor confirms what filters accept. `switch` runs while no step does.
    pub(crate) fn open<T>(&self, switch: impl FnOnce() -> T) -> (mpsc::Receiver<ReplayClaim>, T) {
        let (claims, receiver) = mpsc::channel(MAX_WAITING);
        let mut gate = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *gate = Some(SharedDecisions {
            claims,
            one_at_a_time: Mutex::default(),
        });
        (receiver, switch())
    }

    /// From now on the filters decide alone. `switch` runs while no step does.
    pub(crate) fn close(&self, switch: impl FnOnce()) {
        let mut gate = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *gate = None;
        switch();
    }

    /// Decides a claim of the process that this one has succeeded: `decide` does, or the next successor. The result is
    /// an error if that has ended.
    pub(crate) fn decide_claim(
        &self,
        bytes: &[u8],
        decide: impl FnOnce() -> bool,
    ) -> Result<bool, oneshot::Receiver<bool>> {
        let gate = self.0.read().unwrap_or_else(PoisonError::into_inner);
        match &*gate {
            None => Ok(decide()),
            Some(shared) => Err(shared.claim(bytes.to_vec())),
        }
    }
}

/// The claims that follow from the decisions of one filter.
#[derive(Debug)]
pub struct FilterClaims {
    gate: Arc<ClaimGate>,
    /// The name of the filter in claims.
    name: Vec<u8>,
    filter: ReplayFilter,
}

/// Decisions that a successor has not confirmed yet.
#[derive(Debug, Default)]
pub(crate) struct UnconfirmedDecisions(Vec<oneshot::Receiver<bool>>);

impl FilterClaims {
    pub(crate) const fn new(gate: Arc<ClaimGate>, name: Vec<u8>, filter: ReplayFilter) -> Self {
        Self { gate, name, filter }
    }

    /// Runs a step of a handshake, in which the filter may decide.
    pub(crate) fn observe<T>(&self, step: impl FnOnce() -> T) -> (T, UnconfirmedDecisions) {
        let gate = self.gate.0.read().unwrap_or_else(PoisonError::into_inner);
        let (Some(shared), Some(log)) = (&*gate, self.filter.log()) else {
            return (step(), UnconfirmedDecisions::default());
        };
        let only = shared.one_at_a_time.lock();
        let _only = only.unwrap_or_else(PoisonError::into_inner);
        let done = step();
        let entries = log.take().into_iter();
        let answers = entries.map(|entry| shared.claim([&*self.name, &*entry].concat()));
        (done, UnconfirmedDecisions(answers.collect()))
    }
}

impl UnconfirmedDecisions {
    /// Waits for the successor; returns false if one of the decisions is a replay there.
    pub(crate) async fn are_confirmed(self) -> bool {
        for answer in self.0 {
            if !answer.await.unwrap_or(true) {
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use adit_shadowsocks::RestartPolicy;

    use super::*;

    const NAME: [u8; 2] = [7, 8];

    fn pool() -> Arc<SaltPool> {
        let now = system::unix_now();
        Arc::new(SaltPool::new([1; 16], now, RestartPolicy::Lenient))
    }

    fn claims_of(gate: &Arc<ClaimGate>, salts: &Arc<SaltPool>) -> FilterClaims {
        let filter = ReplayFilter::Salts(salts.clone());
        FilterClaims::new(gate.clone(), NAME.to_vec(), filter)
    }

    fn insert(salts: &SaltPool, salt: u8) -> bool {
        let inserted = salts.insert_salt(&[salt; 32], None, system::unix_now());
        inserted.is_ok()
    }

    #[tokio::test]
    async fn a_successor_confirms_what_it_has_not_seen() {
        let (old, new, gate) = (pool(), pool(), Arc::<ClaimGate>::default());
        let claims = claims_of(&gate, &old);
        let (done, decisions) = claims.observe(|| insert(&old, 1));
        assert!(done && decisions.0.is_empty() && decisions.are_confirmed().await);

        let log = old.decision_log();
        let (mut claimed, ()) = gate.open(|| log.set_recording(true));
        assert!(insert(&new, 2));
        for (salt, expected) in [(2, false), (3, true)] {
            let (done, decisions) = claims.observe(|| insert(&old, salt));
            assert!(done, "this process has not seen it");
            let claim = claimed.recv().await.unwrap();
            let entry = claim.as_bytes().strip_prefix(&NAME).unwrap();
            let is_new = ReplayFilter::Salts(new.clone()).insert_logged(entry);
            claim.answer(is_new);
            assert_eq!(decisions.are_confirmed().await, expected, "{salt}");
        }
        assert!(!insert(&new, 3), "it has been confirmed");
        let (done, decisions) = claims.observe(|| insert(&old, 3));
        assert!(!done && decisions.0.is_empty(), "it is a replay here");

        // The successor ends: this process decides alone.
        let (_, decisions) = claims.observe(|| insert(&old, 4));
        drop(claimed);
        assert!(decisions.are_confirmed().await);
        let (_, decisions) = claims.observe(|| insert(&old, 5));
        assert!(decisions.are_confirmed().await);
        gate.close(|| log.set_recording(false));
        let (_, decisions) = claims.observe(|| insert(&old, 6));
        assert!(decisions.0.is_empty());
    }

    #[tokio::test]
    async fn a_claim_is_passed_on_to_the_newest_process() {
        let gate = ClaimGate::default();
        assert!(gate.decide_claim(b"claim", || true).unwrap());
        let (mut claimed, ()) = gate.open(|| ());
        let decided = gate.decide_claim(b"claim", || unreachable!("the successor decides"));
        let claim = claimed.recv().await.unwrap();
        assert_eq!(claim.as_bytes(), b"claim");
        claim.answer(false);
        assert!(!decided.unwrap_err().await.unwrap());
        let decided = gate.decide_claim(b"claim", || unreachable!("the successor decides"));
        drop(claimed);
        assert!(decided.unwrap_err().await.is_err());
    }
}
