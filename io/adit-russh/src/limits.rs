//! Limits for key re-exchange.

use std::time::Duration;

use adit_wire::u64_from;

/// Limits for key re-exchange: whichever is reached first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Number of bytes sent.
    pub rekey_write_limit: usize,
    /// Number of bytes received. The smaller one of the two applies to both directions.
    pub rekey_read_limit: usize,
    /// Time since the last key exchange.
    pub rekey_time_limit: Duration,
}

impl Limits {
    /// Creates limits.
    #[must_use]
    pub const fn new(write_limit: usize, read_limit: usize, time_limit: Duration) -> Self {
        Self {
            rekey_write_limit: write_limit,
            rekey_read_limit: read_limit,
            rekey_time_limit: time_limit,
        }
    }

    pub(crate) fn rekey_bytes(&self) -> u64 {
        let least = self.rekey_write_limit.min(self.rekey_read_limit);
        u64_from(least)
    }
}

impl Default for Limits {
    /// One GiB and one hour (RFC 4253 section 9).
    fn default() -> Self {
        Self::new(1 << 30, 1 << 30, Duration::from_secs(3600))
    }
}
