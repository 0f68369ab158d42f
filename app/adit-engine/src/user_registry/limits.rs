//! The limits of a user, and the periods of their quota.

use adit_wire::UnixTime;

use crate::usage::{ByteCounts, Usage};

/// Seconds of a day.
const DAY: u64 = 86_400;
/// The number of days before the first Monday after 1970-01-01, a Thursday.
const FIRST_MONDAY: u64 = 4;

/// The limits of a user. A user without limits has the default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UserLimits {
    /// Payload bytes of both directions together in each period.
    pub quota: Option<u64>,
    /// The period of the quota.
    pub period: QuotaPeriod,
    /// The time from which on the user is refused.
    pub expires: Option<UnixTime>,
    /// Payload bytes per second, in each direction.
    pub rate: Option<u64>,
    /// Maximum number of sessions that are open at once: streams, and associations of datagrams.
    pub sessions: Option<u32>,
    /// Maximum number of client addresses at once: IPv4 addresses, and IPv6 networks of 64 bits.
    pub devices: Option<u32>,
}

/// The period of a quota. Periods begin at midnight UTC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum QuotaPeriod {
    /// All time: the quota is used up once.
    #[default]
    Total,
    /// A day.
    Day,
    /// A week, from Monday on.
    Week,
    /// A month of the calendar.
    Month,
}

impl QuotaPeriod {
    /// All periods with their names.
    const NAMES: [(&'static str, Self); 4] = [
        ("total", Self::Total),
        ("day", Self::Day),
        ("week", Self::Week),
        ("month", Self::Month),
    ];

    /// Returns the names of all periods.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Self::NAMES.iter().map(|(name, _)| *name)
    }

    /// Returns the name of the period: `total`, `day`, `week` or `month`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Total => "total",
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
        }
    }

    /// Returns the period with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let found = Self::NAMES.iter().find(|(known, _)| *known == name);
        found.map(|(_, period)| *period)
    }

    /// Returns the start of the period that contains `now`.
    #[must_use]
    pub const fn start(self, now: UnixTime) -> UnixTime {
        let days = now.0 / DAY;
        let first = match self {
            Self::Total => 0,
            Self::Day => days,
            // The first days of 1970 are those of a week that began before.
            Self::Week => days.saturating_sub((days + 7 - FIRST_MONDAY) % 7),
            Self::Month => days + 1 - now.utc_date().2,
        };
        UnixTime(first * DAY)
    }

    /// Returns the start of the period after the one that contains `now`; `None` if it has no end.
    #[must_use]
    pub const fn next_start(self, now: UnixTime) -> Option<UnixTime> {
        let start = self.start(now).0;
        let next = match self {
            Self::Total => return None,
            Self::Day => start + DAY,
            Self::Week if start == 0 => FIRST_MONDAY * DAY,
            Self::Week => start + 7 * DAY,
            // No month has more than 31 days.
            Self::Month => self.start(UnixTime(start + 31 * DAY)).0,
        };
        Some(UnixTime(next))
    }
}

/// The state of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum UserState {
    /// The user may start sessions.
    Active,
    /// The quota of the period is used up.
    OverQuota,
    /// The time of the user has expired.
    Expired,
}

impl UserState {
    /// Returns the name of the state: `active`, `over-quota` or `expired`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::OverQuota => "over-quota",
            Self::Expired => "expired",
        }
    }
}

/// A user, with their limits and their usage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserReport {
    /// The name of the user.
    pub name: String,
    /// The limits.
    pub limits: UserLimits,
    /// Usage since the start of the period, or since it was last reset.
    pub used_in_period: ByteCounts,
    /// All usage.
    pub total: Usage,
    /// Number of open sessions.
    pub sessions: u32,
    /// Number of client addresses with an open session.
    pub devices: u32,
    /// The state.
    pub state: UserState,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2024-02-29 12:34:56 UTC, a Thursday.
    const LEAP_DAY: UnixTime = UnixTime(1_709_210_096);

    #[test]
    fn periods_follow_the_calendar() {
        let of = |period: QuotaPeriod, now| (period.start(now), period.next_start(now));
        let midnight = 1_709_164_800;
        assert_eq!(
            of(QuotaPeriod::Day, LEAP_DAY),
            (UnixTime(midnight), Some(UnixTime(midnight + DAY)))
        );
        // Monday the 26th.
        assert_eq!(
            of(QuotaPeriod::Week, LEAP_DAY),
            (
                UnixTime(midnight - 3 * DAY),
                Some(UnixTime(midnight + 4 * DAY))
            )
        );
        assert_eq!(
            of(QuotaPeriod::Month, LEAP_DAY),
            (
                UnixTime(midnight - 28 * DAY),
                Some(UnixTime(midnight + DAY))
            )
        );
        assert_eq!(of(QuotaPeriod::Total, LEAP_DAY), (UnixTime(0), None));
    }

    #[test]
    fn each_period_begins_where_the_last_one_ends() {
        for period in [QuotaPeriod::Day, QuotaPeriod::Week, QuotaPeriod::Month] {
            let mut start = period.start(UnixTime(0));
            for _ in 0..6000 {
                let next = period.next_start(start).unwrap();
                assert!(next > start, "{period:?}");
                assert_eq!(period.start(UnixTime(next.0 - 1)), start, "{period:?}");
                assert_eq!(period.start(next), next, "{period:?}");
                start = next;
            }
        }
    }

    #[test]
    fn names_are_read_as_they_are_shown() {
        for name in QuotaPeriod::names() {
            assert_eq!(QuotaPeriod::from_name(name).unwrap().name(), name);
        }
        assert_eq!(QuotaPeriod::from_name("year"), None);
    }
}
