//! Durations: whole numbers with a unit.

use core::time::Duration;

/// Units of durations, in milliseconds, the largest first.
const UNITS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1000),
    ("ms", 1),
];
/// Longest duration, in milliseconds: one year.
const LONGEST: u64 = 365 * 86_400_000;

/// Formats a duration as `10s`, `500ms`, `2m`, `1h` or `1d`, in the largest unit that divides it.
#[must_use]
pub fn format_duration(duration: Duration) -> String {
    let millis = duration.as_millis();
    UNITS
        .into_iter()
        .find(|(_, unit)| millis > 0 && millis.is_multiple_of(u128::from(*unit)))
        .map_or_else(
            || format!("{millis}ms"),
            |(name, unit)| format!("{}{name}", millis / u128::from(unit)),
        )
}

/// Returns a regular expression for the form of durations.
#[must_use]
pub fn duration_pattern() -> String {
    let units = UNITS.map(|(unit, _)| unit).join("|");
    format!("^[0-9]+({units})$")
}

/// Parses `10s`, `500ms`, `2m`, `1h` or `1d`. Returns `None` for other forms and for more than a year.
#[must_use]
pub fn parse_duration(text: &str) -> Option<Duration> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits)?;
    let (_, millis) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
    let millis = number.parse::<u64>().ok()?.checked_mul(millis)?;
    (millis <= LONGEST).then_some(Duration::from_millis(millis))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_are_read_and_written_in_the_largest_unit() {
        for (text, canonical) in [
            ("10s", "10s"),
            ("120s", "2m"),
            ("90s", "90s"),
            ("60m", "1h"),
            ("48h", "2d"),
            ("1500ms", "1500ms"),
            ("1000ms", "1s"),
        ] {
            assert_eq!(format_duration(parse_duration(text).unwrap()), canonical);
        }
        for text in [
            "",
            "10",
            "s",
            "-1s",
            "1.5s",
            "1m30s",
            "366d",
            "99999999999999999999s",
            "1 s",
        ] {
            assert!(parse_duration(text).is_none(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn durations_round_trip(millis in 1..=LONGEST) {
            let duration = Duration::from_millis(millis);
            prop_assert_eq!(parse_duration(&format_duration(duration)), Some(duration));
        }

        #[test]
        fn no_text_panics(text in "[0-9a-z.-]{0,24}") {
            let _ = parse_duration(&text);
        }
    }
}
