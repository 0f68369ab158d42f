//! The health of a group member.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time that a member is tried last after its first failure. Doubles with each further failure.
const FIRST: Duration = Duration::from_secs(5);
/// Maximum of that time.
const LAST: Duration = Duration::from_secs(300);

/// The health of a group member, which decides its position. All sessions of the group share it.
#[derive(Debug, Default)]
pub struct Standing(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// Number of consecutive failures.
    failures: u32,
    failed: Option<Instant>,
    /// Time at which it last served a session.
    well: Option<Instant>,
    /// Time until which it is tried last.
    until: Option<Instant>,
}

impl Known {
    fn wait(&self) -> Duration {
        let doublings = self.failures.saturating_sub(1).min(16);
        FIRST.saturating_mul(1 << doublings).min(LAST)
    }
}

impl Standing {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if the member is tried last.
    pub(super) fn rests(&self) -> bool {
        self.known()
            .until
            .is_some_and(|until| Instant::now() < until)
    }

    /// Records the start of an attempt. For a member that was tried last so far this attempt is a probe: it
    /// stays last for all others until the result is known.
    pub(super) fn tried(&self) {
        let (mut known, now) = (self.known(), Instant::now());
        if known.until.is_some_and(|until| until <= now) {
            known.until = Some(now + known.wait());
        }
    }

    /// Records that the member serves sessions.
    pub(crate) fn well(&self) {
        *self.known() = Known {
            well: Some(Instant::now()),
            ..Known::default()
        };
    }

    /// Records that it has not answered within the head start.
    pub(super) fn late(&self) {
        let mut known = self.known();
        if known.until.is_none() {
            known.until = Some(Instant::now() + FIRST);
        }
    }

    /// Records that it has answered after all, without proof yet that it serves.
    pub(super) fn reached(&self) {
        let mut known = self.known();
        if known.failures == 0 {
            known.until = None;
        }
    }

    /// Records a failure of a session that started at `since`. Simultaneous failures count once, and do not
    /// count at all if the member has served a session since.
    pub(crate) fn failed(&self, since: Instant) {
        let mut known = self.known();
        if [known.well, known.failed]
            .iter()
            .flatten()
            .any(|at| *at >= since)
        {
            return;
        }
        let now = Instant::now();
        known.failures += 1;
        known.failed = Some(now);
        known.until = Some(now + known.wait());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rest(standing: &Standing) -> Option<u64> {
        let until = standing.known().until?;
        Some(until.saturating_duration_since(Instant::now()).as_secs() + 1)
    }

    /// Moves the deadline into the past.
    fn later(standing: &Standing) {
        standing.known().until = Some(Instant::now());
    }

    #[test]
    fn a_failing_member_goes_last_for_longer_and_longer() {
        let standing = Standing::default();
        assert!(!standing.rests() && rest(&standing).is_none());
        for seconds in [5, 10, 20, 40, 80, 160, 300, 300] {
            standing.failed(Instant::now());
            assert!(standing.rests());
            standing.tried();
            assert_eq!(rest(&standing), Some(seconds));
            later(&standing);
            assert!(!standing.rests(), "a trial");
            standing.tried();
            assert!(standing.rests(), "one");
        }
        standing.well();
        assert!(!standing.rests() && rest(&standing).is_none());
        standing.failed(Instant::now());
        assert_eq!(rest(&standing), Some(5), "from the beginning");
    }

    #[test]
    fn what_fails_together_counts_once() {
        let (standing, since) = (Standing::default(), Instant::now());
        for _ in 0..50 {
            standing.failed(since);
        }
        assert_eq!(rest(&standing), Some(5));
        standing.well();
        standing.failed(since);
        assert!(!standing.rests(), "it has served somebody since");
    }

    #[test]
    fn a_slow_member_has_its_turn_again_once_it_answers() {
        let standing = Standing::default();
        standing.late();
        assert!(standing.rests());
        standing.reached();
        assert!(!standing.rests());
        standing.failed(Instant::now());
        standing.reached();
        assert!(standing.rests(), "a connection is no service");
    }
}
