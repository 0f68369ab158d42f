//! When new keys are made.

use std::time::Duration;

use adit_wire::u64_from;

/// When new keys are made: whatever comes first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Octets that were sent.
    pub rekey_write_limit: usize,
    /// Octets that were received. The smaller one of the two counts for both directions.
    pub rekey_read_limit: usize,
    /// Time since the last keys.
    pub rekey_time_limit: Duration,
}

impl Limits {
    /// The limits as they are given.
    #[must_use]
    pub const fn new(write_limit: usize, read_limit: usize, time_limit: Duration) -> Self {
        Self {
            rekey_write_limit: write_limit,
            rekey_read_limit: read_limit,
            rekey_time_limit: time_limit,
        }
    }

    pub(crate) fn octets(&self) -> u64 {
        let least = self.rekey_write_limit.min(self.rekey_read_limit);
        u64_from(least)
    }
}

impl Default for Limits {
    /// A GiB, an hour (RFC 4253 section 9).
    fn default() -> Self {
        Self::new(1 << 30, 1 << 30, Duration::from_hours(1))
    }
}
