//! Decisions about replays that this process does not make alone.
//!
//! What a filter of this process accepts is a claim wherever others may have seen the same bytes. They confirm it
//! unless they have:
//!
//! * a successor, while two processes serve a key. From the handover on, the successor decides: a handshake that the
//!   older process still has to finish is checked there, and waits for the answer before anything follows from it;
//! * the other nodes of a fleet with the same keys ([`SharedReplayFilter`]). Their answer takes longer, so that it is
//!   awaited while the target is dialled: [`FleetVerdict`].
//!
//! ```text
//! handshake ── step ─▶ filter ─▶ its log ─┬─ claim ─▶ successor's filter
//!     ▲ ◀────────────────────── confirmed ┴───────────────┘
//!     │                                   └─ claim ─▶ shared filter of the fleet
//!  first byte to the target ◀──────────────────────── verdict ─┘
//! ```

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};

use adit_crypto::{DecisionLog, KdfContext};
use adit_net::system;
use adit_obfs::ServerState;
use adit_shadowsocks::SaltPool;
use adit_shadowsocksr::ReplayStore;
use adit_wire::UnixTime;
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

/// The answer to a [`SharedClaim`]: false if it is a replay.
pub type ClaimAnswer = Pin<Box<dyn Future<Output = bool> + Send + Sync>>;

/// A filter of replays that all nodes of a fleet share.
pub trait SharedReplayFilter: Send + Sync {
    /// Claims something that this node has accepted. The call makes the claim; the future waits for the answer, which is
    /// never late: the filter has a deadline, and a policy for the time in which it cannot decide.
    fn claim(&self, claim: SharedClaim) -> ClaimAnswer;
}

/// Something that only one node of a fleet may accept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedClaim {
    /// The kind of the claim.
    pub kind: ClaimKind,
    /// Bytes that are unique to it among everything that the nodes accept.
    pub name: Vec<u8>,
    /// The time stamp of the request or packet, which is the same wherever it is replayed; `None` if it has none.
    pub stamp: Option<UnixTime>,
}

/// The kind of a [`SharedClaim`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimKind {
    /// The salt of a connection, which must be new.
    Salt,
    /// The start of a session of packets, which no other node may serve.
    SessionStart,
    /// A later packet of a session that this node serves. The answer has no effect.
    SessionPacket,
}

/// The part of a claim's name that tells keys apart: servers of the same key have the same scope on every node.
#[derive(Clone)]
pub(crate) struct ClaimScope([u8; 16]);

impl fmt::Debug for ClaimScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ClaimScope").finish_non_exhaustive()
    }
}

impl ClaimScope {
    /// Returns the scope of a key; `key` is empty if users have none in common.
    pub(crate) fn of_key(method: &str, key: &str) -> Self {
        let mut scope = [0; 16];
        let parts = [method.as_bytes(), &[0], key.as_bytes()];
        KdfContext::new("adit fleet replay scope v1").derive_key(&parts, &mut scope);
        Self(scope)
    }

    /// Returns the claim of something with this name.
    fn claim(&self, kind: ClaimKind, name: &[&[u8]], stamp: Option<UnixTime>) -> SharedClaim {
        let mut whole = self.0.to_vec();
        for part in name {
            whole.extend_from_slice(part);
        }
        let name = whole;
        SharedClaim { kind, name, stamp }
    }

    /// Returns the claim about a session of packets of a user.
    pub(crate) fn session_claim(
        &self,
        kind: ClaimKind,
        session: u64,
        user: &str,
        stamp: UnixTime,
    ) -> SharedClaim {
        // No salt is as short, or as long.
        let name: [&[u8]; 3] = [b"session", &session.to_be_bytes(), user.as_bytes()];
        self.claim(kind, &name, Some(stamp))
    }
}

/// The others that confirm what the filters of this process accept.
#[derive(Default)]
pub(crate) struct ClaimGate(RwLock<OtherDeciders>);

#[derive(Default)]
struct OtherDeciders {
    /// The process that succeeds this one.
    successor: Option<mpsc::Sender<ReplayClaim>>,
    /// The other nodes of the fleet.
    fleet: Option<Arc<dyn SharedReplayFilter>>,
}

impl fmt::Debug for ClaimGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClaimGate").finish_non_exhaustive()
    }
}

/// Claims something at the successor.
fn claim_at(successor: &mpsc::Sender<ReplayClaim>, bytes: Vec<u8>) -> oneshot::Receiver<bool> {
    let (reply, answer) = oneshot::channel();
    match successor.try_send(ReplayClaim { bytes, reply }) {
        // Refused, because it may be a replay.
        Err(TrySendError::Full(claim)) => claim.answer(false),
        // When the successor has ended, dropping the claim confirms it.
        Ok(()) | Err(TrySendError::Closed(_)) => {}
    }
    answer
}

impl ClaimGate {
    /// From now on a successor confirms what filters accept. `switch` runs while no step does.
    pub(crate) fn open<T>(&self, switch: impl FnOnce() -> T) -> (mpsc::Receiver<ReplayClaim>, T) {
        let (claims, receiver) = mpsc::channel(MAX_WAITING);
        let mut gate = self.0.write().unwrap_or_else(PoisonError::into_inner);
        gate.successor = Some(claims);
        (receiver, switch())
    }

    /// From now on there is no successor.
    pub(crate) fn close(&self) {
        let mut gate = self.0.write().unwrap_or_else(PoisonError::into_inner);
        gate.successor = None;
    }

    /// Sets the filter that this node shares with others.
    pub(crate) fn share(&self, fleet: Option<Arc<dyn SharedReplayFilter>>) {
        let mut gate = self.0.write().unwrap_or_else(PoisonError::into_inner);
        gate.fleet = fleet;
    }

    /// Returns the filter that this node shares with others.
    pub(crate) fn shared_filter(&self) -> Option<Arc<dyn SharedReplayFilter>> {
        let gate = self.0.read().unwrap_or_else(PoisonError::into_inner);
        gate.fleet.clone()
    }

    /// Decides a claim of the process that this one has succeeded: `decide` does, or the next successor. The result is
    /// an error if that has ended.
    pub(crate) fn decide_claim(
        &self,
        bytes: &[u8],
        decide: impl FnOnce() -> bool,
    ) -> Result<bool, oneshot::Receiver<bool>> {
        let gate = self.0.read().unwrap_or_else(PoisonError::into_inner);
        match &gate.successor {
            None => Ok(decide()),
            Some(successor) => Err(claim_at(successor, bytes.to_vec())),
        }
    }
}

/// The claims that follow from the decisions of one filter.
#[derive(Debug)]
pub struct FilterClaims {
    gate: Arc<ClaimGate>,
    /// The name of the filter in claims at a successor.
    name: Vec<u8>,
    /// The scope of claims at other nodes, if they have the same key.
    scope: Option<ClaimScope>,
    filter: ReplayFilter,
}

/// Decisions that others have not confirmed yet.
#[derive(Default)]
pub(crate) struct UnconfirmedDecisions {
    successor: Vec<oneshot::Receiver<bool>>,
    /// The verdict of the other nodes.
    pub(crate) fleet: FleetVerdict,
}

/// The verdict of the other nodes of a fleet about a request, which may still be pending.
#[derive(Default)]
pub(crate) struct FleetVerdict(Vec<ClaimAnswer>);

impl FilterClaims {
    pub(crate) const fn new(
        gate: Arc<ClaimGate>,
        name: Vec<u8>,
        filter: ReplayFilter,
        scope: Option<ClaimScope>,
    ) -> Self {
        Self {
            gate,
            name,
            scope,
            filter,
        }
    }

    /// Runs a step of a handshake, in which the filter may decide.
    pub(crate) fn observe<T>(&self, step: impl FnOnce() -> T) -> (T, UnconfirmedDecisions) {
        let mut decisions = UnconfirmedDecisions::default();
        let gate = self.gate.0.read().unwrap_or_else(PoisonError::into_inner);
        let fleet = gate.fleet.as_ref().zip(self.scope.as_ref());
        let is_alone = gate.successor.is_none() && fleet.is_none();
        let Some(log) = self.filter.log().filter(|_| !is_alone) else {
            return (step(), decisions);
        };
        let (done, entries) = log.observe(step);
        for entry in entries {
            if let Some((filter, scope)) = fleet {
                let stamp = SaltPool::logged_stamp(&entry);
                let claim = scope.claim(ClaimKind::Salt, &[&entry], stamp);
                decisions.fleet.0.push(filter.claim(claim));
            }
            if let Some(successor) = &gate.successor {
                let claim = [&*self.name, &*entry].concat();
                decisions.successor.push(claim_at(successor, claim));
            }
        }
        (done, decisions)
    }
}

impl UnconfirmedDecisions {
    /// Waits for the successor; returns false if one of the decisions is a replay there.
    pub(crate) async fn are_confirmed_by_successor(&mut self) -> bool {
        for answer in self.successor.drain(..) {
            if !answer.await.unwrap_or(true) {
                return false;
            }
        }
        true
    }
}

impl FleetVerdict {
    /// Returns true if nothing was claimed.
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds what a later step has claimed.
    pub(crate) fn extend(&mut self, later: Self) {
        self.0.extend(later.0);
    }

    /// Waits for the verdict; returns false if the request is a replay.
    ///
    /// # Cancel safety
    ///
    /// The future can be dropped; the next one continues to wait.
    pub(crate) async fn is_new(&mut self) -> bool {
        while let Some(answer) = self.0.last_mut() {
            if !answer.await {
                // Later calls have the same result.
                self.0 = vec![Box::pin(async { false })];
                return false;
            }
            self.0.pop();
        }
        true
    }
}

#[cfg(test)]
mod tests;
