//! How often keys are tried on datagrams that are nobody's.
//!
//! Where users are found by trial, a datagram of garbage costs as many openings as there are users.
//! A source, an IPv4 address or an IPv6 /64, may have so many of those at once and so many in a
//! second; beyond that a datagram of it is opened with the key of the user it was last known to be,
//! or not at all.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use adit_wire::{Time, source_network};

/// Datagrams of one source that are nobody's, and on which every key is tried at once.
const BURST: u32 = 64;
/// The time in which a source may have one more.
const REFILL: Duration = Duration::from_millis(125);
/// Sources that are remembered.
const SOURCES: usize = 16_384;

/// What sources have used up.
#[derive(Debug, Default)]
pub(super) struct Trials {
    sources: HashMap<IpAddr, Spent>,
}

#[derive(Debug, Clone, Copy)]
struct Spent {
    count: u32,
    /// Up to when what was refilled is taken off the count.
    at: Time,
}

impl Spent {
    fn refill(&mut self, now: Time) {
        let refilled = now.since(self.at).as_micros() / REFILL.as_micros();
        let refilled = u32::try_from(refilled).unwrap_or(u32::MAX);
        self.count = self.count.saturating_sub(refilled);
        self.at = match self.count {
            0 => now,
            _ => self.at + REFILL * refilled,
        };
    }
}

impl Trials {
    /// Whether every key may be tried on a datagram from `from`.
    pub(super) fn may_try_all(&mut self, from: IpAddr, now: Time) -> bool {
        // Nearly always there is nothing to look up.
        if self.sources.is_empty() {
            return true;
        }
        let Some(spent) = self.sources.get_mut(&source_network(from)) else {
            return true;
        };
        spent.refill(now);
        spent.count < BURST
    }

    /// Every key was tried in vain on a datagram from `from`.
    pub(super) fn failed(&mut self, from: IpAddr, now: Time) {
        if self.sources.len() >= SOURCES {
            self.sources.retain(|_, spent| {
                spent.refill(now);
                spent.count > 0
            });
            if self.sources.len() >= SOURCES {
                // Addresses can be forged: none of them is worth more than another.
                self.sources.clear();
            }
        }
        let spent = Spent { count: 0, at: now };
        let spent = self.sources.entry(source_network(from)).or_insert(spent);
        spent.refill(now);
        spent.count = spent.count.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_has_a_burst_and_a_rate() {
        let mut trials = Trials::default();
        let (ip, other) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        let start = Time(5_000_000);
        let mut spend = |from, now, most: u32| {
            let tried = (0..most).take_while(|_| {
                let may = trials.may_try_all(from, now);
                if may {
                    trials.failed(from, now);
                }
                may
            });
            u32::try_from(tried.count()).unwrap()
        };
        assert_eq!(spend(ip, start, 1000), BURST);
        assert_eq!(spend(other, start, 10), 10);
        assert_eq!(spend(ip, start + Duration::from_secs(1), 1000), 8);
        assert_eq!(spend(ip, start + Duration::from_secs(600), 1000), BURST);
    }

    #[test]
    fn forged_sources_take_no_memory() {
        let mut trials = Trials::default();
        for n in 0..3 * u32::try_from(SOURCES).unwrap() {
            trials.failed(IpAddr::V4(n.into()), Time(1));
        }
        assert!(trials.sources.len() <= SOURCES);
    }
}
