//! Pacing of connections to a server that has not accepted this client.
//!
//! A browser repeats each request that fails. With a wrong key every one of them would be a connection to the
//! server, which counts them, and which the network can observe. [`ConnectPacer`] limits them until the server
//! proves that it has the key.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use crate::connector::ServerProof;

/// Maximum number of connections within [`WINDOW`] to a server that has not accepted this client.
const MAX_IN_WINDOW: usize = 4;
/// The same for requests while no connection has failed: one is left for the check that follows a failure, so that
/// its outcome is known before others are opened.
const MAX_BEFORE_FAILURE: usize = MAX_IN_WINDOW - 1;
/// The length of the window.
const WINDOW: Duration = Duration::from_secs(4);
/// Minimum interval between connections once one has failed.
const SPACING: Duration = Duration::from_secs(1);
/// Time after a proof during which nothing is limited: failures are then more likely those of targets.
const TRUST: Duration = Duration::from_secs(60);
/// Time from the first connection during which further ones wait for its outcome, if there are many.
const FIRST_CONTACT: Duration = Duration::from_secs(1);
/// Interval between two looks at the connections, while one waits.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// The pacers in use, by server and key: the hops of all routes and the check at the start share one.
static SHARED: Mutex<Option<HashMap<String, Weak<ConnectPacer>>>> = Mutex::new(None);

/// Limits connections to one server for as long as it has not proved that it has the key.
///
/// A proof ends the limit immediately; it starts again only with a failure more than a minute later.
#[derive(Default)]
pub(crate) struct ConnectPacer {
    state: Mutex<PacerState>,
}

#[derive(Default)]
struct PacerState {
    /// Time of the last proof.
    proven: Option<Instant>,
    /// Time of the first connection.
    first: Option<Instant>,
    /// The newest connections, with the evidence that they may have found since.
    opened: VecDeque<(Instant, Option<Arc<dyn ServerProof>>)>,
    /// The last failure since the last proof.
    failure: Option<String>,
    /// Number of checks that wait for their turn. They have precedence.
    checks_waiting: usize,
}

/// The decision about one connection.
#[derive(Debug, PartialEq, Eq)]
enum PacerDecision {
    /// It may be opened.
    Open,
    /// It is decided soon.
    Wait,
    /// It would fail like those before it.
    Refused(String),
}

impl PacerState {
    /// Looks at the evidence, and forgets connections that no longer count.
    fn update(&mut self, now: Instant) {
        let proves = |(_, proof): &(Instant, Option<Arc<dyn ServerProof>>)| matches!(proof, Some(p) if p.is_authenticated());
        if self.opened.iter().any(proves) {
            self.record_proof(now);
        }
        while let Some((at, _)) = self.opened.front()
            && now.saturating_duration_since(*at) >= WINDOW
        {
            self.opened.pop_front();
        }
    }

    fn record_proof(&mut self, now: Instant) {
        self.proven = Some(now);
        self.failure = None;
        self.opened.clear();
    }

    /// Returns true if the server is trusted at `now`, so that nothing is limited.
    fn is_trusted(&self, now: Instant) -> bool {
        let recent = |at: Instant| now.saturating_duration_since(at) < TRUST;
        // Without a failure, a server that has ever proved itself is trusted.
        self.proven
            .is_some_and(|at| self.failure.is_none() || recent(at))
    }

    fn decide(&mut self, now: Instant) -> PacerDecision {
        self.update(now);
        if self.is_trusted(now) {
            return PacerDecision::Open;
        }
        let Some(failure) = &self.failure else {
            let first = *self.first.get_or_insert(now);
            let full = self.opened.len() >= MAX_BEFORE_FAILURE;
            let is_early = now.saturating_duration_since(first) < FIRST_CONTACT;
            return match full && (is_early || self.checks_waiting > 0) {
                true => PacerDecision::Wait,
                false => PacerDecision::Open,
            };
        };
        let full = self.opened.len() >= MAX_IN_WINDOW;
        let last = self.opened.back().map(|(at, _)| *at);
        let close = last.is_some_and(|at| now.saturating_duration_since(at) < SPACING);
        match full || close || self.checks_waiting > 0 {
            true => PacerDecision::Refused(failure.clone()),
            false => PacerDecision::Open,
        }
    }

    fn record_open(&mut self, now: Instant) {
        self.first.get_or_insert(now);
        if self.opened.len() >= MAX_IN_WINDOW && self.failure.is_none() {
            self.opened.pop_front();
        }
        self.opened.push_back((now, None));
    }
}

impl ConnectPacer {
    /// Returns the pacer of a server and a key.
    pub(crate) fn shared(server: &str, key: &str) -> Arc<Self> {
        let mut table = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        let table = table.get_or_insert_default();
        let name = format!("{server} {key}");
        if let Some(pacer) = table.get(&name).and_then(Weak::upgrade) {
            return pacer;
        }
        table.retain(|_, pacer| pacer.strong_count() > 0);
        let pacer = Arc::new(Self::default());
        table.insert(name, Arc::downgrade(&pacer));
        pacer
    }

    fn lock_state(&self) -> MutexGuard<'_, PacerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the connection of a request may be opened, and counts it.
    ///
    /// # Errors
    ///
    /// Returns the cause of the last failure if the connection would exceed the limit.
    ///
    /// # Cancel safety
    ///
    /// Cancel-safe: a connection that is not opened does not count.
    pub(crate) async fn admit(&self) -> Result<(), String> {
        loop {
            {
                let (mut state, now) = (self.lock_state(), Instant::now());
                match state.decide(now) {
                    PacerDecision::Open => {
                        if !state.is_trusted(now) {
                            state.record_open(now);
                        }
                        return Ok(());
                    }
                    PacerDecision::Refused(why) => return Err(why),
                    PacerDecision::Wait => {}
                }
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }

    /// Waits until a check of the server may open a connection, and counts it. Returns within [`WINDOW`].
    pub(crate) async fn admit_check(&self) {
        let _waiting = WaitingCheck::new(self);
        loop {
            {
                let (mut state, now) = (self.lock_state(), Instant::now());
                state.update(now);
                if state.is_trusted(now) {
                    return;
                }
                if state.opened.len() < MAX_IN_WINDOW {
                    state.record_open(now);
                    return;
                }
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }

    /// Adds the evidence of the newest connection without one.
    pub(crate) fn watch(&self, proof: &Arc<dyn ServerProof>) {
        let mut state = self.lock_state();
        if let Some((_, slot)) = state.opened.iter_mut().find(|(_, slot)| slot.is_none()) {
            *slot = Some(proof.clone());
        }
    }

    /// Records that the server has proved that it has the key.
    pub(crate) fn record_proof(&self) {
        self.lock_state().record_proof(Instant::now());
    }

    /// Returns true if there was a failure since the last proof.
    pub(crate) fn has_failure(&self) -> bool {
        let mut state = self.lock_state();
        state.update(Instant::now());
        state.failure.is_some()
    }

    /// Records a connection that ended without a proof; `what` says how, as the end of a sentence about the
    /// server.
    pub(crate) fn record_failure(&self, what: &str) {
        what.clone_into(self.lock_state().failure.get_or_insert_default());
    }
}

/// A check that waits for its turn.
struct WaitingCheck<'a>(&'a ConnectPacer);

impl<'a> WaitingCheck<'a> {
    fn new(pacer: &'a ConnectPacer) -> Self {
        pacer.lock_state().checks_waiting += 1;
        Self(pacer)
    }
}

impl Drop for WaitingCheck<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock_state();
        state.checks_waiting = state.checks_waiting.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[derive(Default)]
    struct Proof(AtomicBool);

    impl ServerProof for Proof {
        fn is_authenticated(&self) -> bool {
            self.0.load(Ordering::Relaxed)
        }
    }

    /// Tries a connection, and returns true if it is opened.
    fn opens(state: &mut PacerState, at: Instant) -> bool {
        let opens = state.decide(at) == PacerDecision::Open;
        if opens && !state.is_trusted(at) {
            state.record_open(at);
        }
        opens
    }

    fn fail(state: &mut PacerState) {
        state.failure = Some("has closed".to_owned());
    }

    #[test]
    fn failures_are_spaced() {
        let (mut state, start) = (PacerState::default(), Instant::now());
        let mut opened = Vec::new();
        for step in 0..1600_u64 {
            let at = start + Duration::from_millis(10 * step);
            if opens(&mut state, at) {
                opened.push(step * 10);
                fail(&mut state);
            }
        }
        assert!(opened.len() >= 12, "{opened:?}");
        for window in opened.windows(MAX_IN_WINDOW + 1) {
            assert!(window[MAX_IN_WINDOW] - window[0] >= 4000, "{opened:?}");
        }
        assert!(opened.windows(2).all(|two| two[1] - two[0] >= 1000));
    }

    #[test]
    fn a_crowd_waits_once_for_the_first_outcome() {
        let (mut state, start) = (PacerState::default(), Instant::now());
        for _ in 0..MAX_BEFORE_FAILURE {
            assert!(opens(&mut state, start));
        }
        assert_eq!(state.decide(start), PacerDecision::Wait);
        // A target may be slow: the wait ends, and is not repeated.
        let later = start + FIRST_CONTACT;
        for _ in 0..1000 {
            assert!(opens(&mut state, later));
        }
        assert!(state.opened.len() <= MAX_IN_WINDOW);
        // Unless one of them fails.
        fail(&mut state);
        assert!(matches!(state.decide(later), PacerDecision::Refused(_)));
    }

    #[test]
    fn a_proof_ends_the_limit() {
        let (mut state, start) = (PacerState::default(), Instant::now());
        let proof = Arc::new(Proof::default());
        for _ in 0..MAX_BEFORE_FAILURE {
            assert!(opens(&mut state, start));
            state.opened.back_mut().unwrap().1 = Some(proof.clone());
        }
        fail(&mut state);
        assert!(matches!(state.decide(start), PacerDecision::Refused(_)));
        proof.0.store(true, Ordering::Relaxed);
        assert_eq!(state.decide(start), PacerDecision::Open);
        // Failures within a minute are those of targets; later ones count.
        fail(&mut state);
        assert_eq!(state.decide(start + TRUST / 2), PacerDecision::Open);
        let late = start + TRUST;
        assert!(opens(&mut state, late));
        assert!(matches!(state.decide(late), PacerDecision::Refused(_)));
    }

    #[test]
    fn checks_have_precedence() {
        let pacer = ConnectPacer::default();
        pacer.record_failure("has closed");
        let waiting = WaitingCheck::new(&pacer);
        let now = Instant::now();
        assert!(matches!(
            pacer.lock_state().decide(now),
            PacerDecision::Refused(_)
        ));
        drop(waiting);
        assert_eq!(pacer.lock_state().decide(now), PacerDecision::Open);
    }

    #[test]
    fn a_check_finds_a_place_beside_requests() {
        let pacer = ConnectPacer::default();
        let (mut state, start) = (pacer.lock_state(), Instant::now());
        for _ in 0..MAX_BEFORE_FAILURE {
            assert!(opens(&mut state, start));
        }
        assert!(state.opened.len() < MAX_IN_WINDOW);
        // Even after the first contact, while requests have filled the window.
        let later = start + FIRST_CONTACT;
        while state.opened.len() < MAX_IN_WINDOW {
            assert!(opens(&mut state, later));
        }
        drop(state);
        let waiting = WaitingCheck::new(&pacer);
        assert_eq!(pacer.lock_state().decide(later), PacerDecision::Wait);
        drop(waiting);
        assert_eq!(pacer.lock_state().decide(later), PacerDecision::Open);
    }

    #[test]
    fn one_server_with_one_key_has_one_pacer() {
        let one = ConnectPacer::shared("ss://a:1", "k");
        assert!(Arc::ptr_eq(&one, &ConnectPacer::shared("ss://a:1", "k")));
        assert!(!Arc::ptr_eq(&one, &ConnectPacer::shared("ss://a:1", "l")));
        one.record_failure("x");
        drop(one);
        let again = ConnectPacer::shared("ss://a:1", "k");
        assert!(again.lock_state().failure.is_none());
    }
}
