//! Limits on key trials for datagrams that no key opens.
//!
//! Where users are found by trial, an invalid datagram costs as many trial decryptions as there are users.
//! Each source, an IPv4 address or an IPv6 /64, may cause a number of such datagrams in one batch and per
//! second. Beyond that, its datagrams are only opened with the key of its last known user, if there is
//! one.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use adit_wire::{Time, source_network};

/// Number of invalid datagrams of one source on which all keys are tried without a pause.
const MAX_TRIALS: u32 = 64;
/// Interval after which a source may send one more.
const REFILL_INTERVAL: Duration = Duration::from_millis(125);
/// Maximum number of sources that are remembered.
const MAX_SOURCES: usize = 16_384;

/// The trials that sources have used.
#[derive(Debug, Default)]
pub(super) struct TrialLimiter {
    sources: HashMap<IpAddr, SpentTrials>,
}

#[derive(Debug, Clone, Copy)]
struct SpentTrials {
    count: u32,
    /// Time up to which refills have been deducted from the count.
    refilled_until: Time,
}

impl SpentTrials {
    fn apply_refill(&mut self, now: Time) {
        let refilled =
            now.duration_since(self.refilled_until).as_micros() / REFILL_INTERVAL.as_micros();
        let refilled = u32::try_from(refilled).unwrap_or(u32::MAX);
        self.count = self.count.saturating_sub(refilled);
        self.refilled_until = match self.count {
            0 => now,
            _ => self.refilled_until + REFILL_INTERVAL * refilled,
        };
    }
}

impl TrialLimiter {
    /// Returns true if all keys may be tried on a datagram from `from`.
    pub(super) fn may_try_all(&mut self, from: IpAddr, now: Time) -> bool {
        // The common case: nothing to look up.
        if self.sources.is_empty() {
            return true;
        }
        let Some(spent) = self.sources.get_mut(&source_network(from)) else {
            return true;
        };
        spent.apply_refill(now);
        spent.count < MAX_TRIALS
    }

    /// Records that all keys failed on a datagram from `from`.
    pub(super) fn record_failure(&mut self, from: IpAddr, now: Time) {
        if self.sources.len() >= MAX_SOURCES {
            self.sources.retain(|_, spent| {
                spent.apply_refill(now);
                spent.count > 0
            });
            if self.sources.len() >= MAX_SOURCES {
                // Source addresses can be forged, so that no entry is worth more than another.
                self.sources.clear();
            }
        }
        let spent = SpentTrials {
            count: 0,
            refilled_until: now,
        };
        let spent = self.sources.entry(source_network(from)).or_insert(spent);
        spent.apply_refill(now);
        spent.count = spent.count.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_has_a_burst_and_a_rate() {
        let mut trials = TrialLimiter::default();
        let (ip, other) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        let start = Time(5_000_000);
        let mut spend = |from, now, most: u32| {
            let tried = (0..most).take_while(|_| {
                let may = trials.may_try_all(from, now);
                if may {
                    trials.record_failure(from, now);
                }
                may
            });
            u32::try_from(tried.count()).unwrap()
        };
        assert_eq!(spend(ip, start, 1000), MAX_TRIALS);
        assert_eq!(spend(other, start, 10), 10);
        assert_eq!(spend(ip, start + Duration::from_secs(1), 1000), 8);
        assert_eq!(
            spend(ip, start + Duration::from_secs(600), 1000),
            MAX_TRIALS
        );
    }

    #[test]
    fn forged_sources_take_no_memory() {
        let mut trials = TrialLimiter::default();
        for n in 0..3 * u32::try_from(MAX_SOURCES).unwrap() {
            trials.record_failure(IpAddr::V4(n.into()), Time(1));
        }
        assert!(trials.sources.len() <= MAX_SOURCES);
    }
}
