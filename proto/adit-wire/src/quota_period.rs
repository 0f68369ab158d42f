//! The periods of quotas.

use crate::time::UnixTime;

/// Seconds of a day.
const DAY: u64 = 86_400;
/// The number of days before the first Monday after 1970-01-01, a Thursday.
const FIRST_MONDAY: u64 = 4;

/// The period of a quota. Periods begin at midnight UTC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
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
    /// All periods.
    pub const ALL: [Self; 4] = [Self::Total, Self::Day, Self::Week, Self::Month];

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
        Self::ALL.into_iter().find(|period| period.name() == name)
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
        for period in QuotaPeriod::ALL {
            assert_eq!(QuotaPeriod::from_name(period.name()), Some(period));
        }
        assert_eq!(QuotaPeriod::from_name("year"), None);
    }
}
