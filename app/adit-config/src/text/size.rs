//! Amounts of data, and rates: numbers with a unit.

/// Units of sizes, in bytes.
const UNITS: [(&str, u64); 10] = [
    ("B", 1),
    ("kB", 1000),
    ("KB", 1000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];
/// Units of rates that are written in bits, in bits per second.
const BIT_UNITS: [(&str, u64); 3] = [("kbit", 1000), ("Mbit", 1_000_000), ("Gbit", 1_000_000_000)];
/// The decimal units in which sizes are shown, the largest first.
const SHOWN: [(&str, u64); 4] = [
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1000),
];

/// Parses `50GB`, `1.5GB`, `512MiB` or `0B`: decimal and binary units, in bytes. Returns `None` for other forms.
#[must_use]
pub fn parse_size(text: &str) -> Option<u64> {
    parse_with_units(text, &UNITS)
}

/// Parses `10MB/s`, `512KiB/s` or `100Mbit/s`, in bytes per second. Returns `None` for other forms.
#[must_use]
pub fn parse_rate(text: &str) -> Option<u64> {
    let amount = text.strip_suffix("/s")?;
    let bits = || Some(parse_with_units(amount, &BIT_UNITS)? / 8);
    parse_size(amount).or_else(bits)
}

fn parse_with_units(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at_checked(end)?;
    let (_, factor) = units.iter().find(|(name, _)| *name == unit.trim_start())?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    // More digits than a size can have would be lost without a word.
    if whole.is_empty() || !(1..=9).contains(&fraction.len()) || fraction.contains('.') {
        return None;
    }
    let scale = 10u64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let part = u128::from(fraction.parse::<u64>().ok()?) * u128::from(*factor) / u128::from(scale);
    let whole = u128::from(whole.parse::<u64>().ok()?) * u128::from(*factor);
    u64::try_from(whole + part).ok()
}

/// Formats a size with three digits at least, such as `0 B`, `950 kB`, `1.50 GB` or `50.0 GB`.
#[must_use]
pub fn format_size(bytes: u64) -> String {
    for (name, unit) in SHOWN {
        if bytes >= unit {
            let hundredths = u128::from(bytes) * 100 / u128::from(unit);
            return match hundredths {
                ..1000 => format!("{}.{:02} {name}", hundredths / 100, hundredths % 100),
                ..10_000 => format!("{}.{} {name}", hundredths / 100, hundredths / 10 % 10),
                _ => format!("{} {name}", hundredths / 100),
            };
        }
    }
    format!("{bytes} B")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_have_decimal_and_binary_units() {
        for (text, bytes) in [
            ("0B", 0),
            ("50GB", 50_000_000_000),
            ("1.5GB", 1_500_000_000),
            ("0.001kB", 1),
            ("512 MiB", 512 << 20),
            ("18446744073709551615B", u64::MAX),
        ] {
            assert_eq!(parse_size(text), Some(bytes), "{text}");
        }
        for text in [
            "",
            "50",
            "GB",
            "-1GB",
            ".5GB",
            "1.GB",
            "1.2.3GB",
            "50gb",
            "50G",
            "18446744073709551616B",
            "99999999TiB",
            "10MB/s",
        ] {
            assert_eq!(parse_size(text), None, "{text}");
        }
    }

    #[test]
    fn rates_are_bytes_or_bits() {
        for (text, bytes) in [
            ("10MB/s", 10_000_000),
            ("512KiB/s", 512 << 10),
            ("100Mbit/s", 12_500_000),
            ("0.5Gbit/s", 62_500_000),
        ] {
            assert_eq!(parse_rate(text), Some(bytes), "{text}");
        }
        for text in ["10MB", "10/s", "10Mbit", "10Mb/s", "/s", ""] {
            assert_eq!(parse_rate(text), None, "{text}");
        }
    }

    #[test]
    fn sizes_are_short() {
        for (bytes, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.00 kB"),
            (12_345, "12.3 kB"),
            (999_999, "999 kB"),
            (50_000_000_000, "50.0 GB"),
            (u64::MAX, "18446744 TB"),
        ] {
            assert_eq!(format_size(bytes), text);
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[0-9.a-zA-Z/ ]{0,40}") {
            let _ = (parse_size(&text), parse_rate(&text));
        }
    }
}
