//! Time as an argument.

use core::ops::Add;
use core::time::Duration;

/// A point in time on a monotonic clock, in microseconds since any fixed start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// Returns the time elapsed since `earlier`, or zero if `earlier` is later.
    #[must_use]
    pub fn duration_since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        // A span of more than 2⁶⁴ µs saturates.
        Self(
            self.0
                .saturating_add(u64::try_from(span.as_micros()).unwrap_or(u64::MAX)),
        )
    }
}

/// Wall-clock time in seconds since 1970-01-01 UTC, for protocols that transmit a timestamp.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixTime(pub u64);

impl UnixTime {
    /// Returns `self - other` in seconds, saturated: the peer chooses all 64 bits of its timestamp.
    #[must_use]
    pub fn skew_from(self, other: Self) -> i64 {
        let distance = i64::try_from(self.0.abs_diff(other.0)).unwrap_or(i64::MAX);
        if self.0 >= other.0 {
            distance
        } else {
            -distance
        }
    }

    /// Returns year, month and day in UTC, in the Gregorian calendar.
    #[must_use]
    pub const fn utc_date(self) -> (u64, u64, u64) {
        // Years start in March of year 0, so that the leap day is the last day; an era has 400 years.
        let days = self.0 / 86_400 + 719_468;
        let (era, day) = (days / 146_097, days % 146_097);
        let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let of_month = day - (153 * month + 2) / 5 + 1;
        let (month, next) = if month < 10 {
            (month + 3, 0)
        } else {
            (month - 9, 1)
        };
        (era * 400 + year + next, month, of_month)
    }
}

/// A wall clock, for codecs that check a timestamp which may arrive minutes after they were created.
///
/// Applications pass the system's clock; tests pass a fixed [`UnixTime`].
pub trait Clock: Send + Sync {
    /// Returns the current wall-clock time.
    fn unix_time(&self) -> UnixTime;
}

impl Clock for UnixTime {
    fn unix_time(&self) -> UnixTime {
        *self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skew_never_overflows() {
        assert_eq!(UnixTime(u64::MAX).skew_from(UnixTime(0)), i64::MAX);
        assert_eq!(UnixTime(0).skew_from(UnixTime(u64::MAX)), -i64::MAX);
        assert_eq!(UnixTime(10).skew_from(UnixTime(12)), -2);
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, date) in [
            (0, (1970, 1, 1)),
            (86_399, (1970, 1, 1)),
            (951_782_400, (2000, 2, 29)),
            (951_868_800, (2000, 3, 1)),
            (1_704_067_200, (2024, 1, 1)),
            (1_709_251_199, (2024, 2, 29)),
            (4_107_542_400, (2100, 3, 1)),
        ] {
            assert_eq!(UnixTime(seconds).utc_date(), date, "{seconds}");
        }
    }

    #[test]
    fn time_saturates() {
        assert_eq!(Time(5).duration_since(Time(9)), Duration::ZERO);
        assert_eq!(Time(u64::MAX) + Duration::from_secs(1), Time(u64::MAX));
    }
}
