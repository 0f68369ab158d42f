//! State that must be remembered for as long as a timestamp may be valid, in two generations.
//!
//! Used for the salts of streams and the sessions of datagrams: insertions go into the current
//! generation, and lookups search both.

use adit_wire::UnixTime;

use crate::timestamp::MAX_CLOCK_SKEW;

/// Length of a generation in seconds. An entry stays for one to two generations, and a stamp is valid for one: from the
/// maximum skew before its time to the same after.
pub(crate) const GENERATION_SECS: u64 = 2 * MAX_CLOCK_SKEW;

/// Two tables, rotated by time.
#[derive(Default)]
pub(crate) struct Generations<T> {
    /// The time the current generation began.
    since: UnixTime,
    pub(crate) current: T,
    pub(crate) previous: T,
}

impl<T: Default> Generations<T> {
    /// Drops entries that are too old at `now`. Call it before every lookup and insertion.
    pub(crate) fn rotate_at(&mut self, now: UnixTime) {
        let Some(age) = now.0.checked_sub(self.since.0) else {
            // The clock went back, so the period starts anew. Waiting until the clock has caught up
            // would fill the tables and refuse all clients.
            self.since = now;
            return;
        };
        if age >= GENERATION_SECS {
            self.previous = core::mem::take(&mut self.current);
            if age >= 2 * GENERATION_SECS {
                self.previous = T::default();
            }
            self.since = UnixTime(now.0 - age % GENERATION_SECS);
        }
    }

    /// Begins a new generation early, because the current one is full.
    pub(crate) fn rotate_early(&mut self, now: UnixTime) {
        self.previous = core::mem::take(&mut self.current);
        self.since = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(now: u64, since: u64) -> (Vec<u8>, Vec<u8>, u64) {
        let mut both = Generations {
            since: UnixTime(since),
            current: vec![2],
            previous: vec![1],
        };
        both.rotate_at(UnixTime(now));
        (both.current, both.previous, both.since.0)
    }

    #[test]
    fn what_is_added_stays_for_one_to_two_generations() {
        assert_eq!(at(1059, 1000), (vec![2], vec![1], 1000));
        assert_eq!(at(1060, 1000), (vec![], vec![2], 1060));
        assert_eq!(at(1119, 1000), (vec![], vec![2], 1060));
        assert_eq!(at(1120, 1000), (vec![], vec![], 1120));
        assert_eq!(
            at(999, 1000),
            (vec![2], vec![1], 999),
            "the clock went back"
        );
    }

    #[test]
    fn a_full_generation_ends_before_its_time() {
        let mut both = Generations {
            since: UnixTime(1000),
            current: vec![2],
            previous: vec![1],
        };
        both.rotate_early(UnixTime(1030));
        assert_eq!((both.current.len(), &both.previous[..]), (0, &[2][..]));
        both.rotate_at(UnixTime(1089));
        assert_eq!(both.previous, [2]);
    }
}
