//! Sessions of packets at the nodes of a fleet with the same keys: one node serves a session at a time.
//!
//! Packets are not claimed one by one. A node that serves a session claims it for each minute in which it has packets
//! of it, by their time stamps, and for the next one. A packet that is replayed at another node within its time would
//! start the session there, and finds that minute claimed. A client that has really moved to another node is served
//! there when the claims of the first node have ended, one to two minutes after its last packet.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use adit_wire::UnixTime;

use crate::replay_claims::{ClaimAnswer, ClaimGate, ClaimKind, ClaimScope, SharedClaim};

/// Number of sessions from which on those whose claims have ended are forgotten.
const MIN_SWEEP: usize = 1024;

/// The claims of the sessions that one listener serves.
pub(crate) struct SessionClaims {
    gate: Arc<ClaimGate>,
    scope: ClaimScope,
    /// By session ID. A session that has ended is kept as long as its claims.
    held: HashMap<u64, Arc<HeldSession>>,
    /// Number of sessions at which the next sweep is due.
    sweep_at: usize,
}

/// A session that this node has claimed.
#[derive(Default)]
struct HeldSession {
    /// The last minute that is claimed; 0 before the first answer.
    through: AtomicU64,
}

impl HeldSession {
    fn through(&self) -> u64 {
        self.through.load(Ordering::Relaxed)
    }

    /// Notes that the minute and the next one are claimed.
    fn hold(&self, minute: u64) {
        self.through.fetch_max(minute + 1, Ordering::Relaxed);
    }
}

impl SessionClaims {
    pub(crate) fn new(gate: Arc<ClaimGate>, scope: ClaimScope) -> Self {
        Self {
            gate,
            scope,
            held: HashMap::new(),
            sweep_at: MIN_SWEEP,
        }
    }

    /// Notes an accepted packet of a session. Returns true if it is the first one of a session that this node does not
    /// hold: [`start_session`](Self::start_session) has to be called before anything follows from it.
    pub(crate) fn note_packet(
        &self,
        session: u64,
        is_first: bool,
        stamp: UnixTime,
        user: impl FnOnce() -> String,
    ) -> bool {
        let minute = stamp.0 / 60;
        let known = self.held.get(&session);
        let through = known.map_or(0, |held| held.through());
        if is_first && through < minute {
            return true;
        }
        // 0: the other nodes have not answered yet.
        if let Some(held) = known.filter(|_| (1..=minute).contains(&through)) {
            held.hold(minute);
            if let Some(filter) = self.gate.shared_filter() {
                let claim = self.claim(ClaimKind::SessionPacket, session, stamp, &user());
                // Whatever the answer is: the session is served here.
                drop(filter.claim(claim));
            }
        }
        false
    }

    /// Claims a session; returns the answer of the other nodes, if there are any.
    pub(crate) fn start_session(
        &mut self,
        session: u64,
        stamp: UnixTime,
        user: &str,
    ) -> Option<ClaimAnswer> {
        let filter = self.gate.shared_filter()?;
        let minute = stamp.0 / 60;
        if self.held.len() >= self.sweep_at {
            // Answers that are awaited have a reference too.
            let is_needed = |held: &Arc<HeldSession>| {
                Arc::strong_count(held) > 1 || held.through() + 1 >= minute
            };
            self.held.retain(|_, held| is_needed(held));
            self.sweep_at = MIN_SWEEP.max(self.held.len() * 2);
        }
        let held = Arc::<HeldSession>::default();
        self.held.insert(session, held.clone());
        let answer = filter.claim(self.claim(ClaimKind::SessionStart, session, stamp, user));
        Some(Box::pin(async move {
            let is_new = answer.await;
            if is_new {
                held.hold(minute);
            }
            is_new
        }))
    }

    fn claim(&self, kind: ClaimKind, session: u64, stamp: UnixTime, user: &str) -> SharedClaim {
        self.scope.session_claim(kind, session, user, stamp)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Mutex;

    use super::*;
    use crate::SharedReplayFilter;

    /// The claims of all nodes, by name and minute, with the rules of the trait.
    #[derive(Default)]
    struct SharedMinutes(Mutex<HashMap<(Vec<u8>, u64), ()>>);

    impl SharedReplayFilter for SharedMinutes {
        fn claim(&self, claim: SharedClaim) -> ClaimAnswer {
            let minute = claim.stamp.unwrap().0 / 60;
            let mut seen = self.0.lock().unwrap();
            let mut insert = |minute| seen.insert((claim.name.clone(), minute), ()).is_none();
            let is_new = insert(minute);
            if is_new || claim.kind == ClaimKind::SessionPacket {
                insert(minute + 1);
            }
            Box::pin(async move { is_new })
        }
    }

    fn nodes() -> [SessionClaims; 2] {
        let fleet = Arc::new(SharedMinutes::default());
        [(); 2].map(|()| {
            let gate = Arc::<ClaimGate>::default();
            gate.share(Some(fleet.clone()));
            SessionClaims::new(gate, ClaimScope::of_key("method", "key"))
        })
    }

    /// Returns the verdict about a first packet: `None` if none is needed.
    async fn starts(node: &mut SessionClaims, at: u64, user: &str) -> Option<bool> {
        if !node.note_packet(7, true, UnixTime(at), || user.to_owned()) {
            return None;
        }
        match node.start_session(7, UnixTime(at), user) {
            Some(answer) => Some(answer.await),
            None => None,
        }
    }

    fn continues(node: &SessionClaims, at: u64) {
        let starts = node.note_packet(7, false, UnixTime(at), || "anna".to_owned());
        assert!(!starts);
    }

    #[tokio::test]
    async fn a_session_is_served_by_one_node() {
        let [mut one, mut other] = nodes();
        assert_eq!(starts(&mut one, 600, "anna").await, Some(true));
        assert_eq!(starts(&mut other, 600, "anna").await, Some(false));
        // A refused session stays refused.
        assert_eq!(starts(&mut other, 630, "anna").await, Some(false));
        assert_eq!(starts(&mut other, 660, "anna").await, Some(false));
        // Sessions of another user with the same number are others.
        assert_eq!(starts(&mut other, 600, "bert").await, Some(true));
    }

    #[tokio::test]
    async fn packets_prolong_the_claim() {
        let [mut one, mut other] = nodes();
        assert_eq!(starts(&mut one, 600, "anna").await, Some(true));
        for at in (600..1800).step_by(10) {
            continues(&one, at);
            assert_eq!(starts(&mut other, at, "anna").await, Some(false), "{at}");
        }
        // After a pause too, in which the association stays open.
        continues(&one, 2400);
        assert_eq!(starts(&mut other, 2400, "anna").await, Some(false));
    }

    #[tokio::test]
    async fn a_client_can_move_when_the_claims_have_ended() {
        let [mut one, mut other] = nodes();
        assert_eq!(starts(&mut one, 600, "anna").await, Some(true));
        continues(&one, 650);
        for at in [655, 665, 719] {
            assert_eq!(starts(&mut other, at, "anna").await, Some(false), "{at}");
        }
        assert_eq!(starts(&mut other, 720, "anna").await, Some(true));
        assert_eq!(starts(&mut one, 730, "anna").await, Some(false));
    }

    #[tokio::test]
    async fn the_same_node_starts_it_again() {
        let [mut one, mut other] = nodes();
        assert_eq!(starts(&mut one, 600, "anna").await, Some(true));
        // The association has ended, and the local filter has let the packet pass.
        assert_eq!(starts(&mut one, 655, "anna").await, None);
        assert_eq!(starts(&mut one, 665, "anna").await, None);
        assert_eq!(starts(&mut other, 725, "anna").await, Some(false));
    }

    #[tokio::test]
    async fn ended_claims_are_forgotten() {
        let [mut one, _] = nodes();
        for session in 0..10_000_u64 {
            let at = UnixTime(600 + session);
            let answer = one.start_session(session, at, "anna");
            assert!(answer.unwrap().await);
        }
        assert!(one.held.len() <= MIN_SWEEP + 200, "{}", one.held.len());
    }

    #[tokio::test]
    async fn nothing_is_claimed_without_a_fleet() {
        let [mut one, _] = nodes();
        one.gate.share(None);
        assert_eq!(starts(&mut one, 600, "anna").await, None);
        assert!(one.held.is_empty());
        continues(&one, 610);
    }
}
