//! Parsers for values: switches, numbers, times, sizes.

use adit_wire::substr;

use core::time::Duration;

/// Parses `yes` or `no`; like OpenSSH, also `true` and `false`.
pub(super) fn parse_switch(text: &str) -> Result<bool, String> {
    match text {
        "yes" | "true" => Ok(true),
        "no" | "false" => Ok(false),
        _ => Err("expected `yes` or `no`".to_owned()),
    }
}

/// Parses a port from 1 to 65535.
pub(super) fn parse_port(text: &str) -> Result<u16, String> {
    parse_digits(text)
        .and_then(|port| u16::try_from(port).ok())
        .filter(|port| *port > 0)
        .ok_or_else(|| "expected a port from 1 to 65535".to_owned())
}

/// Parses a number from 0 to `i32::MAX`.
pub(super) fn parse_count(text: &str) -> Result<u32, String> {
    parse_digits(text)
        .and_then(|count| i32::try_from(count).ok())
        .and_then(|count| u32::try_from(count).ok())
        .ok_or_else(|| "expected a number".to_owned())
}

fn parse_digits(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().ok())?
}

/// Parses a sum of numbers with a unit (`s`, `m`, `h`, `d` or `w`); seconds if there is none.
pub(super) fn parse_time(text: &str) -> Result<Duration, String> {
    let wrong = || "expected a time like `30`, `90s`, `10m` or `1h30m`".to_owned();
    let mut rest = text;
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (value, tail) = rest.split_at_checked(digits).ok_or_else(wrong)?;
        let mut tail = tail.chars();
        let unit = match tail.next() {
            None | Some('s' | 'S') => 1,
            Some('m' | 'M') => 60,
            Some('h' | 'H') => 3600,
            Some('d' | 'D') => 86_400,
            Some('w' | 'W') => 604_800,
            Some(_) => return Err(wrong()),
        };
        total = parse_digits(value)
            .and_then(|value| value.checked_mul(unit))
            .and_then(|value| total.checked_add(value))
            .ok_or_else(wrong)?;
        rest = tail.as_str();
    }
    // OpenSSH has the same limit.
    if text.is_empty() || i32::try_from(total).is_err() {
        return Err(wrong());
    }
    Ok(Duration::from_secs(total))
}

/// Parses a number of bytes, optionally with `K`, `M` or `G`.
pub(super) fn parse_size(text: &str) -> Result<u64, String> {
    let unit = match text.as_bytes().last() {
        Some(b'k' | b'K') => 1 << 10,
        Some(b'm' | b'M') => 1 << 20,
        Some(b'g' | b'G') => 1 << 30,
        _ => 1,
    };
    let digits = match unit {
        1 => text,
        _ => substr(text, ..text.len() - 1),
    };
    parse_digits(digits)
        .and_then(|value| value.checked_mul(unit))
        .filter(|size| i64::try_from(*size).is_ok())
        .ok_or_else(|| "expected a number of bytes like `512M` or `1G`".to_owned())
}

/// Returns the value of the word that matches `text`, ignoring case.
pub(super) fn parse_one_of<T: Copy>(words: &[(&str, T)], text: &str) -> Result<T, String> {
    let found = words
        .iter()
        .find(|(word, _)| word.eq_ignore_ascii_case(text));
    found.map(|(_, value)| *value).ok_or_else(|| {
        let all: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
        format!("expected one of {}", all.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_and_sizes() {
        for (text, seconds) in [
            ("0", 0),
            ("90", 90),
            ("1m30s", 90),
            ("1h5", 3605),
            ("2w", 1_209_600),
        ] {
            assert_eq!(parse_time(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "s", "-1", "1x", "99999999999", "3000000000", "1 m"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
        assert_eq!(parse_size("1G"), Ok(1 << 30));
        assert_eq!(parse_size("512"), Ok(512));
        for text in ["", "G", "-1", "9999999999999999999", "99999999999G"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
        assert!(
            parse_port("0").is_err() && parse_port("65536").is_err() && parse_port("+22").is_err()
        );
    }

    proptest! {
        #[test]
        fn no_text_panics(text: String) {
            let _ = (parse_time(&text), parse_size(&text), parse_port(&text), parse_count(&text), parse_switch(&text));
        }
    }
}
