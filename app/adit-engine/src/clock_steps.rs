//! Steps of the wall clock while this process runs.
//!
//! A server of the 2022 edition refuses requests of a clock that differs by more than 30 s, just as if the key were
//! wrong. A clock that was set by hours is far from all that a check can try, but its earlier time is known: the
//! monotonic clock was not set. A machine that was suspended appears to have such a step, too, so a server decides if
//! the earlier time is the right one.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use adit_net::system;

/// Minimum step, in seconds. Smaller ones are accepted by servers.
const MIN_STEP: u64 = 25;
/// Maximum number of times that are stored.
const MAX_STORED: usize = 3;

/// The recent wall clocks, the newest at the end.
static CLOCKS: Mutex<WallClocks> = Mutex::new(WallClocks(VecDeque::new()));

/// Wall clocks as their differences to the monotonic clock, in seconds. Two neighbours differ by a step.
#[derive(Debug)]
struct WallClocks(VecDeque<i64>);

impl WallClocks {
    fn record(&mut self, now: i64) {
        if self
            .0
            .back()
            .is_some_and(|last| last.abs_diff(now) < MIN_STEP)
        {
            return;
        }
        // The clock may have been set back to an earlier time.
        self.0.retain(|known| known.abs_diff(now) >= MIN_STEP);
        self.0.push_back(now);
        if self.0.len() > MAX_STORED {
            self.0.pop_front();
        }
    }

    /// Returns the differences of the earlier clocks to the newest one, that of the latest first.
    fn earlier(&self) -> Vec<i64> {
        let (now, earlier) = match self.0.iter().rev().collect::<Vec<_>>().split_first() {
            Some((now, earlier)) => (**now, earlier.iter().map(|at| **at).collect()),
            None => (0, Vec::new()),
        };
        earlier.into_iter().map(|at| at - now).collect()
    }
}

/// Records the wall clock. Called when connections are opened, so that a step is between two of them.
pub(crate) fn record_wall_clock() {
    let now = difference_now();
    let mut clocks = CLOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    clocks.record(now);
}

/// Returns the differences of the clocks before recent steps to the present one in seconds, the latest first.
pub(crate) fn earlier_clocks() -> Vec<i64> {
    let now = difference_now();
    let mut clocks = CLOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    clocks.record(now);
    clocks.earlier()
}

/// Returns true if the clock was set by about this number of seconds.
pub(crate) fn was_set_by(seconds: i64) -> bool {
    let mut earlier = earlier_clocks().into_iter();
    earlier.any(|at| at.abs_diff(-seconds) < MIN_STEP)
}

/// Returns the wall clock minus the monotonic clock, in seconds.
fn difference_now() -> i64 {
    let running = system::monotonic_now().0 / 1_000_000;
    let wall = system::unix_now().0;
    wall.cast_signed().saturating_sub(running.cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_steps_are_stored_and_few() {
        let mut clocks = WallClocks(VecDeque::new());
        assert_eq!(clocks.earlier(), [0; 0]);
        for drift in [1000, 1001, 999, 1010] {
            clocks.record(drift);
        }
        assert_eq!(clocks.earlier(), [0; 0]);
        clocks.record(4600);
        assert_eq!(clocks.earlier(), [-3600]);
        clocks.record(-86_400);
        assert_eq!(clocks.earlier(), [91_000, 87_400]);
        // Back to the first: it is not an earlier clock any more.
        clocks.record(1003);
        assert_eq!(clocks.earlier(), [-87_403, 3597]);
        clocks.record(2000);
        assert_eq!(clocks.earlier(), [-997, -88_400]);
    }
}
