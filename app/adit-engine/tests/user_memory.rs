//! The memory of users with limits, in a process of its own: the system's figure for all of its anonymous pages.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::fs;

use adit_engine::{UserLimits, UserRegistry};
use adit_wire::{QuotaPeriod, UnixTime};

/// The promise, in bytes per user, the allocator's share included.
const LIMIT: u64 = 300;

/// Returns the anonymous memory of this process, in bytes.
fn resident() -> u64 {
    adit_net::memory::release_free_pages();
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:"));
    let kib: u64 = line
        .unwrap()
        .split_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap();
    kib * 1024
}

#[test]
fn a_user_with_limits_is_small() {
    let limits = UserLimits {
        quota: Some(1 << 40),
        period: QuotaPeriod::Month,
        expires: Some(UnixTime(4_000_000_000)),
        sessions: Some(8),
        devices: Some(3),
        ..UserLimits::default()
    };
    // The runtime of a first registry, and what the allocator keeps.
    UserRegistry::default().set_limits("first", limits);
    for count in [10_000_u64, 100_000] {
        let before = resident();
        let registry = UserRegistry::default();
        for number in 0..count {
            registry.set_limits(&format!("user{number:06}@example"), limits);
        }
        let each = resident().saturating_sub(before) / count;
        eprintln!("{count} users: {each} bytes each");
        assert!(each <= LIMIT, "{count} users: {each} bytes each");
        assert_eq!(registry.reports().len() as u64, count);
    }
}
