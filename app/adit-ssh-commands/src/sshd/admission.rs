//! Admission of unauthenticated connections: their number, and penalties after failed logins.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use adit_net::system::{self, ThreadRng};
use adit_ssh_proto::key::AddressRange;
use adit_wire::{Entropy, Time, narrow_int, source_network, unmap_ipv4};

/// Sum of penalties from which a source is refused.
const PENALTY_THRESHOLD: Duration = Duration::from_secs(15);
/// Maximum penalty of a source.
const MAX_PENALTY: Duration = Duration::from_secs(600);
/// Maximum number of sources with penalties, for each address family.
const MAX_PENALIZED_SOURCES: usize = 65_536;
/// Minimum time between searches of a full table for expired penalties.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum number of connections of a source that count against other sources. Hosts behind one NAT, or one
/// that opens several sessions, have that many at a time.
const MAX_SHARE: u32 = 4;

/// Limits for unauthenticated connections, `start:percent:full`, like OpenSSH's MaxStartups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StartupLimits {
    start: u32,
    percent: u32,
    full: u32,
}

impl StartupLimits {
    /// Parses `N:PERCENT:N`, or a single number that stands for both limits.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let numbers: Vec<u32> = text
            .split(':')
            .map(|word| word.parse().ok())
            .collect::<Option<_>>()?;
        let startups = match *numbers {
            [full] => Self {
                start: full,
                percent: 100,
                full,
            },
            [start, percent, full] => Self {
                start,
                percent,
                full,
            },
            _ => return None,
        };
        let fine = startups.full >= startups.start.max(1) && startups.percent <= 100;
        fine.then_some(startups)
    }

    /// Returns the percentage of new connections that are refused while `strangers` are unauthenticated.
    fn refusal_percent(self, strangers: u32) -> u32 {
        if strangers < self.start {
            return 0;
        }
        if strangers >= self.full {
            return 100;
        }
        let (over, span) = (strangers - self.start, self.full - self.start);
        let more = u64::from(100 - self.percent) * u64::from(over) / u64::from(span);
        self.percent + narrow_int::<u32>(more)
    }
}

/// The way in which an unauthenticated connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoginFailure {
    /// A key or the user was refused.
    Refused,
    /// The time limit expired.
    TimedOut,
    /// The client violated the protocol.
    ProtocolError,
    /// The client left after the key exchange, without trying to log in.
    AbandonedKeyExchange,
    /// The client left before the key exchange.
    Disconnected,
}

impl LoginFailure {
    /// Returns the penalty, as a time.
    const fn penalty(self) -> Duration {
        Duration::from_secs(match self {
            Self::Refused => 5,
            Self::TimedOut => 10,
            Self::ProtocolError => 5,
            // Scanning the keys of a host causes one of these for each type of key.
            Self::AbandonedKeyExchange => 2,
            Self::Disconnected => 1,
        })
    }
}

/// Admission control, shared by all listeners.
#[derive(Debug)]
pub(super) struct AdmissionControl {
    startups: StartupLimits,
    exempt: Vec<AddressRange>,
    state: Mutex<AdmissionState>,
}

#[derive(Debug, Default)]
struct AdmissionState {
    pending: PendingConnections,
    v4: PenaltyTable,
    v6: PenaltyTable,
}

/// Unauthenticated connections, by source.
#[derive(Debug, Default)]
struct PendingConnections {
    /// Connections by source; at most twice [`StartupLimits::full`] entries.
    by_source: HashMap<IpAddr, u32>,
    all: u32,
    /// Number of connections, counting at most [`MAX_SHARE`] of each source.
    shared_load: u32,
}

impl PendingConnections {
    /// Returns the number of connections of a source.
    fn count_from(&self, source: IpAddr) -> u32 {
        self.by_source.get(&source).copied().unwrap_or_default()
    }

    /// Returns the load that applies to a new connection of `source`: its own connections count fully, those of
    /// other sources up to their share, so that a single source with idle connections does not lock out others.
    /// OpenSSH counts all alike, unless PerSourceMaxStartups is set.
    fn load_for(&self, source: IpAddr, startups: StartupLimits) -> u32 {
        let own = self.count_from(source);
        let full = startups.full;
        if self.all >= full.saturating_mul(2) || (self.all >= full && own > 0) {
            return full;
        }
        self.shared_load - own.min(MAX_SHARE) + own
    }

    fn add_connection(&mut self, source: IpAddr) {
        let own = self.by_source.entry(source).or_default();
        self.shared_load += u32::from(*own < MAX_SHARE);
        *own += 1;
        self.all += 1;
    }

    fn remove_connection(&mut self, source: IpAddr) {
        let Some(own) = self.by_source.get_mut(&source) else {
            debug_assert!(false, "the connection was counted before");
            return;
        };
        *own -= 1;
        self.shared_load -= u32::from(*own < MAX_SHARE);
        self.all -= 1;
        if *own == 0 {
            self.by_source.remove(&source);
        }
    }
}

#[derive(Debug, Default)]
struct PenaltyTable {
    penalties: HashMap<IpAddr, Penalty>,
    swept: Time,
}

#[derive(Debug, Clone, Copy)]
struct Penalty {
    until: Time,
    /// True once the penalty has reached the threshold; then the source is refused until `until`.
    is_enforced: bool,
}

/// The reason for refusing a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum AdmissionError {
    /// The limit for unauthenticated connections.
    #[error("too many unauthenticated connections")]
    TooMany,
    /// The penalties of the source.
    #[error("refused because of failed logins")]
    Penalty,
}

impl AdmissionControl {
    pub(super) fn new(startups: StartupLimits, exempt: Vec<AddressRange>) -> Arc<Self> {
        Arc::new(Self {
            startups,
            exempt,
            state: Mutex::default(),
        })
    }

    /// Admits or refuses a new connection.
    pub(super) fn admit(
        self: &Arc<Self>,
        from: IpAddr,
    ) -> Result<PendingConnection, AdmissionError> {
        self.admit_at(from, system::monotonic_now(), random_percent())
    }

    /// Admits or refuses a connection at a given time, with a random number `random` from 0 to 99.
    fn admit_at(
        self: &Arc<Self>,
        from: IpAddr,
        now: Time,
        random: u32,
    ) -> Result<PendingConnection, AdmissionError> {
        let source = source_network(from);
        let mut state = self.lock_state();
        let known = state.penalties_for(from).penalties.get(&source);
        if known.is_some_and(|penalty| penalty.is_enforced && now < penalty.until) {
            return Err(AdmissionError::Penalty);
        }
        let load = state.pending.load_for(source, self.startups);
        if random < self.startups.refusal_percent(load) {
            return Err(AdmissionError::TooMany);
        }
        state.pending.add_connection(source);
        drop(state);
        Ok(PendingConnection {
            admission: Arc::clone(self),
            from,
        })
    }

    fn lock_state(&self) -> MutexGuard<'_, AdmissionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AdmissionState {
    /// Returns the penalties of the address family.
    fn penalties_for(&mut self, from: IpAddr) -> &mut PenaltyTable {
        match unmap_ipv4(from) {
            IpAddr::V4(_) => &mut self.v4,
            IpAddr::V6(_) => &mut self.v6,
        }
    }
}

impl PenaltyTable {
    /// Adds the penalty of a failure to a source.
    fn add_penalty(&mut self, from: IpAddr, what: LoginFailure, now: Time) {
        if self.penalties.len() >= MAX_PENALIZED_SOURCES
            && now.duration_since(self.swept) >= SWEEP_INTERVAL
        {
            self.penalties.retain(|_, penalty| now < penalty.until);
            self.swept = now;
        }
        if self.penalties.len() >= MAX_PENALIZED_SOURCES && !self.penalties.contains_key(&from) {
            return;
        }
        let penalty = self.penalties.entry(from).or_insert(Penalty {
            until: now,
            is_enforced: false,
        });
        if penalty.until < now {
            *penalty = Penalty {
                until: now,
                is_enforced: false,
            };
        }
        let sum = (penalty.until.duration_since(now) + what.penalty()).min(MAX_PENALTY);
        penalty.until = now + sum;
        penalty.is_enforced |= sum >= PENALTY_THRESHOLD;
    }
}

/// An unauthenticated connection, counted until dropped.
#[derive(Debug)]
pub(super) struct PendingConnection {
    admission: Arc<AdmissionControl>,
    from: IpAddr,
}

impl PendingConnection {
    /// Records a failed login, with the penalty for its source.
    pub(super) fn record_failure(self, what: LoginFailure) {
        self.record_failure_at(what, system::monotonic_now());
    }

    fn record_failure_at(self, what: LoginFailure, now: Time) {
        if self
            .admission
            .exempt
            .iter()
            .any(|net| net.contains(self.from))
        {
            return;
        }
        let mut state = self.admission.lock_state();
        state
            .penalties_for(self.from)
            .add_penalty(source_network(self.from), what, now);
    }
}

impl Drop for PendingConnection {
    fn drop(&mut self) {
        let mut state = self.admission.lock_state();
        state.pending.remove_connection(source_network(self.from));
    }
}

/// Returns a random number from 0 to 99.
fn random_percent() -> u32 {
    let mut bytes = [0; 4];
    ThreadRng.fill(&mut bytes);
    u32::from_le_bytes(bytes) % 100
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn at(seconds: u64) -> Time {
        Time(seconds * 1_000_000)
    }

    fn control(startups: &str) -> Arc<AdmissionControl> {
        let exempt = vec![AddressRange::parse("127.0.0.0/8").unwrap()];
        AdmissionControl::new(StartupLimits::parse(startups).unwrap(), exempt)
    }

    #[test]
    fn startups_are_read() {
        for bad in ["", "0", "1:2", "5:30:4", "1:101:2", "a:b:c", "1:2:3:4"] {
            assert_eq!(StartupLimits::parse(bad), None, "{bad}");
        }
        let usual = StartupLimits::parse("10:30:100").unwrap();
        let wanted = [(0, 0), (9, 0), (10, 30), (55, 65), (99, 99), (100, 100)];
        for (strangers, percent) in wanted {
            assert_eq!(usual.refusal_percent(strangers), percent, "{strangers}");
        }
        assert_eq!(StartupLimits::parse("4").unwrap().refusal_percent(4), 100);
    }

    #[test]
    fn a_crowd_is_turned_away_until_it_shrinks() {
        let control = control("2:50:4");
        let from = ip("192.0.2.1");
        let enter = |random| control.admit_at(from, at(0), random);
        let mut inside = vec![enter(0).unwrap(), enter(0).unwrap()];
        assert_eq!(enter(49).unwrap_err(), AdmissionError::TooMany);
        inside.push(enter(50).unwrap());
        assert_eq!(enter(74).unwrap_err(), AdmissionError::TooMany);
        inside.push(enter(75).unwrap());
        assert_eq!(enter(99).unwrap_err(), AdmissionError::TooMany);
        inside.clear();
        assert!(enter(0).is_ok());
    }

    #[test]
    fn a_source_with_many_silent_connections_costs_others_nothing() {
        let control = control("10:30:100");
        let greedy = ip("192.0.2.1");
        let inside: Vec<_> = (0..110)
            .filter_map(|_| control.admit_at(greedy, at(0), 99).ok())
            .collect();
        assert_eq!(inside.len(), 100);
        // For others, four of them count; 30 % would be refused from ten on.
        let others: Vec<_> = (0..6)
            .map(|n| control.admit_at(ip(&format!("198.51.{n}.1")), at(0), 0))
            .collect();
        assert!(others.iter().all(Result::is_ok));
        let next = ip("203.0.113.1");
        assert_eq!(
            control.admit_at(next, at(0), 29).unwrap_err(),
            AdmissionError::TooMany
        );
        drop(inside);
        assert!(control.admit_at(next, at(0), 0).is_ok());
        drop(others);
        assert!(control.lock_state().pending.by_source.is_empty());
    }

    #[test]
    fn many_sources_fill_it_all_the_same() {
        let control = control("4");
        let inside: Vec<_> = (0..20)
            .filter_map(|n| {
                control
                    .admit_at(ip(&format!("198.51.{n}.1")), at(0), 0)
                    .ok()
            })
            .collect();
        assert_eq!(inside.len(), 4);
        let control = self::control("100");
        let inside: Vec<_> = (0..400)
            .filter_map(|n| {
                let source = ip(&format!("198.51.{}.1", n % 4));
                control.admit_at(source, at(0), 0).ok()
            })
            .collect();
        assert_eq!(
            inside.len(),
            100,
            "sources with connections are held to the total"
        );
    }

    #[test]
    fn failures_add_up_and_are_forgotten() {
        let control = control("100");
        let from = ip("2001:db8::1");
        let beside = ip("2001:db8::2");
        let fail = |now| {
            let stranger = control.admit_at(from, at(now), 0);
            stranger
                .unwrap()
                .record_failure_at(LoginFailure::Refused, at(now));
        };
        fail(0);
        fail(0);
        assert!(
            control.admit_at(beside, at(0), 0).is_ok(),
            "10 s are below the threshold"
        );
        fail(0);
        assert_eq!(
            control.admit_at(beside, at(1), 0).unwrap_err(),
            AdmissionError::Penalty
        );
        assert!(control.admit_at(ip("192.0.2.1"), at(1), 0).is_ok());
        assert_eq!(
            control.admit_at(from, at(14), 0).unwrap_err(),
            AdmissionError::Penalty
        );
        assert!(control.admit_at(from, at(15), 0).is_ok());
        // After it has expired, it starts from zero.
        fail(20);
        assert!(control.admit_at(from, at(20), 0).is_ok());
    }

    #[test]
    fn the_longest_penalty_and_those_who_have_none() {
        let control = control("100");
        let (from, home) = (ip("192.0.2.1"), ip("127.0.0.1"));
        let mut inside: Vec<_> = (0..200)
            .map(|n| control.admit_at(if n % 2 == 0 { from } else { home }, at(0), 0))
            .filter_map(Result::ok)
            .collect();
        inside
            .drain(..)
            .for_each(|one| one.record_failure_at(LoginFailure::TimedOut, at(0)));
        assert!(control.admit_at(home, at(0), 0).is_ok());
        assert_eq!(
            control.admit_at(from, at(499), 0).unwrap_err(),
            AdmissionError::Penalty
        );
        assert!(control.admit_at(from, at(600), 0).is_ok());
    }
}
