//! How much strangers may ask of a public listener (SEC limits: handshakes, failed logins).

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use adit_net::ambient;
use adit_wire::{Time, unmap};

/// Connections of a listener that have not made their request yet.
const STRANGERS: usize = 4096;
/// The same from one source.
const STRANGERS_EACH: u32 = 64;
/// Failed logins of one source within [`WINDOW`] that are put up with.
const FAILURES: u32 = 10;
/// What a failed login counts, and what a key exchange does that no login came of: clients that only
/// look at the host key are no attack, clients that do so all the time are.
const LOGIN: u32 = 4;
const EXCHANGE: u32 = 1;
/// Over what time failures are counted, and for how long the source is turned away then.
const WINDOW: Duration = Duration::from_secs(60);
/// Sources remembered for their failures.
const REMEMBERED: usize = 65_536;

/// Counts handshakes and failed logins by source: an IPv4 address or an IPv6 /64.
///
/// Listeners on loopback have none: their clients are this machine's own programs.
#[derive(Debug, Default)]
pub(crate) struct Guard {
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    strangers: usize,
    sources: HashMap<IpAddr, Source>,
}

#[derive(Debug, Default)]
struct Source {
    strangers: u32,
    /// Failed logins and wasted key exchanges, by their weight.
    failures: u32,
    /// When the first of the failures was.
    since: Time,
}

impl Source {
    fn is_penalised(&self, now: Time) -> bool {
        self.failures > FAILURES * LOGIN && now.since(self.since) < WINDOW
    }

    fn is_forgotten(&self, now: Time) -> bool {
        self.strangers == 0 && (self.failures == 0 || now.since(self.since) >= WINDOW)
    }
}

impl Guard {
    /// Lets a connection begin its handshake, or turns it away.
    pub(crate) fn enter(self: &Arc<Self>, from: IpAddr) -> Option<Stranger> {
        let (from, now) = (prefix(from), ambient::now());
        let mut table = self.lock();
        if table.strangers >= STRANGERS {
            return None;
        }
        let source = table.sources.entry(from).or_default();
        if source.strangers >= STRANGERS_EACH || source.is_penalised(now) {
            return None;
        }
        source.strangers += 1;
        table.strangers += 1;
        Some(Stranger {
            guard: self.clone(),
            from,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that has not made its request yet; ends when dropped.
#[derive(Debug)]
pub(crate) struct Stranger {
    guard: Arc<Guard>,
    from: IpAddr,
}

impl Stranger {
    /// A login failed.
    pub(crate) fn failed(&self) {
        self.count(LOGIN);
    }

    /// A key exchange was computed, and no login came of it.
    pub(crate) fn wasted(&self) {
        self.count(EXCHANGE);
    }

    fn count(&self, weight: u32) {
        let now = ambient::now();
        if let Some(source) = self.guard.lock().sources.get_mut(&self.from) {
            if now.since(source.since) >= WINDOW {
                (source.failures, source.since) = (0, now);
            }
            source.failures = source.failures.saturating_add(weight);
        }
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let now = ambient::now();
        let mut table = self.guard.lock();
        table.strangers = table.strangers.saturating_sub(1);
        let full = table.sources.len() > REMEMBERED;
        if let Some(source) = table.sources.get_mut(&self.from) {
            source.strangers = source.strangers.saturating_sub(1);
            if source.is_forgotten(now) || (full && source.strangers == 0) {
                table.sources.remove(&self.from);
            }
        }
    }
}

/// What one customer of a provider usually has.
pub(crate) fn prefix(ip: IpAddr) -> IpAddr {
    match unmap(ip) {
        IpAddr::V6(v6) => Ipv6Addr::from(u128::from(v6) >> 64 << 64).into(),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_source_has_its_share_and_leaves_no_trace() {
        let guard = Arc::new(Guard::default());
        let mine: Vec<_> = (0..STRANGERS_EACH)
            .filter_map(|_| guard.enter(ip("192.0.2.1")))
            .collect();
        assert_eq!(mine.len(), 64);
        assert!(
            guard.enter(ip("::ffff:192.0.2.1")).is_none(),
            "the same source"
        );
        let other = guard.enter(ip("192.0.2.2"));
        assert!(other.is_some());
        drop((mine, other));
        let table = guard.lock();
        assert!(table.sources.is_empty() && table.strangers == 0);
    }

    #[test]
    fn all_sources_together_have_a_limit() {
        let guard = Arc::new(Guard::default());
        let all: Vec<_> = (0..STRANGERS as u32)
            .filter_map(|i| guard.enter(IpAddr::V4((0x0a00_0000 + i).into())))
            .collect();
        assert_eq!(all.len(), STRANGERS);
        assert!(guard.enter(ip("192.0.2.1")).is_none());
    }

    #[test]
    fn guessing_is_slowed_down() {
        let guard = Arc::new(Guard::default());
        for _ in 0..=FAILURES {
            guard.enter(ip("2001:db8::1")).unwrap().failed();
        }
        assert!(guard.enter(ip("2001:db8::2")).is_none(), "the same /64");
        assert!(guard.enter(ip("2001:db8:0:1::2")).is_some(), "another /64");
    }

    #[test]
    fn key_exchanges_without_a_login_are_counted() {
        let guard = Arc::new(Guard::default());
        let from = ip("192.0.2.1");
        let exchanges = (0..1000).take_while(|_| {
            let stranger = guard.enter(from);
            stranger.is_some_and(|stranger| {
                stranger.wasted();
                true
            })
        });
        assert_eq!(exchanges.count(), 41);
        assert!(guard.enter(ip("192.0.2.2")).is_some());
    }
}
