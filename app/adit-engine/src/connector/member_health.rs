//! The health of a group member.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time that a member is tried last after its first failure. Doubles with each further failure.
const FIRST_PENALTY: Duration = Duration::from_secs(5);
/// Maximum of that time.
const MAX_PENALTY: Duration = Duration::from_secs(300);

/// The health of a group member, which decides its position. All sessions of the group share it.
#[derive(Debug, Default)]
pub struct MemberHealth(Mutex<MemberState>);

#[derive(Debug, Default)]
struct MemberState {
    /// Number of consecutive failures.
    failures: u32,
    failed: Option<Instant>,
    /// Time at which it last served a session.
    last_success: Option<Instant>,
    /// Time until which it is tried last.
    penalized_until: Option<Instant>,
}

impl MemberState {
    fn penalty(&self) -> Duration {
        let doublings = self.failures.saturating_sub(1).min(16);
        FIRST_PENALTY
            .saturating_mul(1 << doublings)
            .min(MAX_PENALTY)
    }
}

impl MemberHealth {
    fn lock_state(&self) -> MutexGuard<'_, MemberState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if the member is tried last.
    pub(super) fn is_penalized(&self) -> bool {
        self.lock_state()
            .penalized_until
            .is_some_and(|until| Instant::now() < until)
    }

    /// Records the start of an attempt. For a member that was tried last so far this attempt is a probe: it
    /// stays last for all others until the result is known.
    pub(super) fn record_attempt(&self) {
        let (mut known, now) = (self.lock_state(), Instant::now());
        if known.penalized_until.is_some_and(|until| until <= now) {
            known.penalized_until = Some(now + known.penalty());
        }
    }

    /// Records that the member serves sessions.
    pub(crate) fn record_success(&self) {
        *self.lock_state() = MemberState {
            last_success: Some(Instant::now()),
            ..MemberState::default()
        };
    }

    /// Records that it has not answered within the head start.
    pub(super) fn record_late(&self) {
        let mut known = self.lock_state();
        if known.penalized_until.is_none() {
            known.penalized_until = Some(Instant::now() + FIRST_PENALTY);
        }
    }

    /// Records that it has answered after all, without proof yet that it serves.
    pub(super) fn record_answer(&self) {
        let mut known = self.lock_state();
        if known.failures == 0 {
            known.penalized_until = None;
        }
    }

    /// Records a failure of a session that started at `since`. Simultaneous failures count once, and do not
    /// count at all if the member has served a session since.
    pub(crate) fn record_failure(&self, since: Instant) {
        let mut known = self.lock_state();
        if [known.last_success, known.failed]
            .iter()
            .flatten()
            .any(|at| *at >= since)
        {
            return;
        }
        let now = Instant::now();
        known.failures += 1;
        known.failed = Some(now);
        known.penalized_until = Some(now + known.penalty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rest(standing: &MemberHealth) -> Option<u64> {
        let until = standing.lock_state().penalized_until?;
        Some(until.saturating_duration_since(Instant::now()).as_secs() + 1)
    }

    /// Moves the deadline into the past.
    fn later(standing: &MemberHealth) {
        standing.lock_state().penalized_until = Some(Instant::now());
    }

    #[test]
    fn a_failing_member_goes_last_for_longer_and_longer() {
        let standing = MemberHealth::default();
        assert!(!standing.is_penalized() && rest(&standing).is_none());
        for seconds in [5, 10, 20, 40, 80, 160, 300, 300] {
            standing.record_failure(Instant::now());
            assert!(standing.is_penalized());
            standing.record_attempt();
            assert_eq!(rest(&standing), Some(seconds));
            later(&standing);
            assert!(!standing.is_penalized(), "a trial");
            standing.record_attempt();
            assert!(standing.is_penalized(), "one");
        }
        standing.record_success();
        assert!(!standing.is_penalized() && rest(&standing).is_none());
        standing.record_failure(Instant::now());
        assert_eq!(rest(&standing), Some(5), "from the beginning");
    }

    #[test]
    fn what_fails_together_counts_once() {
        let (standing, since) = (MemberHealth::default(), Instant::now());
        for _ in 0..50 {
            standing.record_failure(since);
        }
        assert_eq!(rest(&standing), Some(5));
        standing.record_success();
        standing.record_failure(since);
        assert!(!standing.is_penalized(), "it has served a request since");
    }

    #[test]
    fn a_slow_member_has_its_turn_again_once_it_answers() {
        let standing = MemberHealth::default();
        standing.record_late();
        assert!(standing.is_penalized());
        standing.record_answer();
        assert!(!standing.is_penalized());
        standing.record_failure(Instant::now());
        standing.record_answer();
        assert!(standing.is_penalized(), "a connection is no service");
    }
}
