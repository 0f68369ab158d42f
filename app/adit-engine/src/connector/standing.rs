//! What a group remembers of one member.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a member goes last after it has failed once; twice as long after each further failure.
const FIRST: Duration = Duration::from_secs(5);
/// The longest time.
const LAST: Duration = Duration::from_secs(300);

/// Whether a member of a group has its turn. Shared by all sessions of the group.
#[derive(Debug, Default)]
pub struct Standing(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// Failures in a row.
    failures: u32,
    failed: Option<Instant>,
    /// When it last served somebody.
    well: Option<Instant>,
    /// Until when it goes last.
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

    /// Whether the member goes last.
    pub(super) fn rests(&self) -> bool {
        self.known()
            .until
            .is_some_and(|until| Instant::now() < until)
    }

    /// The member is tried. If it has gone last until now this is a trial, and it goes last for all
    /// others until it is known what comes of it.
    pub(super) fn tried(&self) {
        let (mut known, now) = (self.known(), Instant::now());
        if known.until.is_some_and(|until| until <= now) {
            known.until = Some(now + known.wait());
        }
    }

    /// It serves.
    pub(crate) fn well(&self) {
        *self.known() = Known {
            well: Some(Instant::now()),
            ..Known::default()
        };
    }

    /// It has not answered within a head start.
    pub(super) fn late(&self) {
        let mut known = self.known();
        if known.until.is_none() {
            known.until = Some(Instant::now() + FIRST);
        }
    }

    /// It has answered after all; whether it serves is not known yet.
    pub(super) fn reached(&self) {
        let mut known = self.known();
        if known.failures == 0 {
            known.until = None;
        }
    }

    /// It has failed somebody who began at `since`. What failed together counts once, and not at
    /// all if it has served somebody since.
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

    /// As if its time were over.
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
