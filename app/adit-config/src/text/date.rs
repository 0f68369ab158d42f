//! Dates of the UTC calendar.

use adit_wire::UnixTime;

/// Seconds of a day.
const DAY: u64 = 86_400;
/// Days from March 1 of year 0 to January 1, 1970.
const EPOCH: u64 = 719_468;
/// The last year of a date.
const LAST_YEAR: u64 = 9999;

/// Parses `2027-01-01`: the time at which the day begins (UTC), in seconds since 1970. Returns `None` for other forms,
/// days that do not exist, and years before 1970.
#[must_use]
pub fn parse_date(text: &str) -> Option<u64> {
    let mut parts = text.split('-');
    let mut number = |digits: usize| {
        let part = parts.next()?;
        let is_number = part.len() == digits && part.bytes().all(|b| b.is_ascii_digit());
        is_number.then(|| part.parse::<u64>().ok())?
    };
    let (year, month, day) = (number(4)?, number(2)?, number(2)?);
    if parts.next().is_some() || !(1..=12).contains(&month) || !(1970..=LAST_YEAR).contains(&year) {
        return None;
    }
    // Years begin in March here, so that leap days are at the end of a year.
    let (shifted, from_march) = match month {
        1 | 2 => (year - 1, month + 9),
        _ => (year, month - 3),
    };
    let before = 365 * shifted + shifted / 4 - shifted / 100 + shifted / 400;
    let days = before + (153 * from_march + 2) / 5 + day.checked_sub(1)?;
    let seconds = days.checked_sub(EPOCH)? * DAY;
    // February 30 would be a day of March.
    (format_date(seconds) == text).then_some(seconds)
}

/// Formats the day of a time (UTC), in seconds since 1970, as `2027-01-01`.
#[must_use]
pub fn format_date(seconds: u64) -> String {
    let (year, month, day) = UnixTime(seconds).utc_date();
    format!("{year}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn dates_are_days_of_the_calendar() {
        for (text, seconds) in [
            ("1970-01-01", 0),
            ("2000-02-29", 951_782_400),
            ("2027-01-01", 1_798_761_600),
            ("2100-03-01", 4_107_542_400),
        ] {
            assert_eq!(parse_date(text), Some(seconds), "{text}");
            assert_eq!(format_date(seconds + DAY - 1), text);
        }
        for text in [
            "",
            "2027",
            "2027-1-1",
            "2027-13-01",
            "2027-00-01",
            "2027-01-00",
            "2027-02-29",
            "2100-02-29",
            "2027-04-31",
            "1969-12-31",
            "2027-01-01T00:00",
            "20270-01-01",
        ] {
            assert_eq!(parse_date(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn dates_round_trip(day in 0..2_932_896u64) {
            prop_assert_eq!(parse_date(&format_date(day * DAY)), Some(day * DAY));
        }

        #[test]
        fn no_text_panics(text in "[0-9-]{0,16}") {
            let _ = parse_date(&text);
        }
    }
}
