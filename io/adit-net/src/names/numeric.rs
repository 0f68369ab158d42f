//! IPv4 addresses in the notations that `inet_aton` accepts.

use std::net::Ipv4Addr;

/// Parses notations such as `127.1`, `2130706433`, `0x7f.1` and `0177.0.0.1` to an address: one to four
/// parts, each decimal, octal or hexadecimal, of which the last one fills the remaining bits.
///
/// Resolvers of C libraries parse them before they ask a server, so these are addresses and not names.
#[must_use]
pub fn parse_numeric_v4(text: &str) -> Option<Ipv4Addr> {
    // Most names are not numeric, and parsing ends after their first letter.
    let (mut bytes, mut places, mut parts) = (0, 0, text.split('.').peekable());
    let last = loop {
        let part = parse_number(parts.next()?)?;
        if parts.peek().is_none() {
            break part;
        }
        if part > 0xff || places == 3 {
            return None;
        }
        bytes = bytes << 8 | part;
        places += 1;
    };
    let room = 32 - 8 * places;
    let fits = room == 32 || last >> room == 0;
    let high = if room == 32 { 0 } else { bytes << room };
    fits.then(|| Ipv4Addr::from(high | last))
}

fn parse_number(part: &str) -> Option<u32> {
    let (digits, radix) = match part.as_bytes() {
        [b'0', b'x' | b'X', ..] => (part.get(2..)?, 16),
        [b'0', _, ..] => (part.get(1..)?, 8),
        _ => (part, 10),
    };
    // `from_str_radix` accepts a sign.
    let digits = Some(digits).filter(|digits| !digits.starts_with(['+', '-']))?;
    u32::from_str_radix(digits, radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_is_one_address() {
        for text in [
            "127.0.0.1",
            "127.1",
            "127.0.1",
            "2130706433",
            "0x7f000001",
            "0x7f.1",
            "0177.0.0.1",
            "017700000001",
            "0X7F.0x0.0.1",
        ] {
            assert_eq!(parse_numeric_v4(text), Some(Ipv4Addr::LOCALHOST), "{text}");
        }
        assert_eq!(parse_numeric_v4("0"), Some(Ipv4Addr::UNSPECIFIED));
        assert_eq!(parse_numeric_v4("4294967295"), Some(Ipv4Addr::BROADCAST));
        for name in [
            "",
            ".",
            "1.",
            "1.2.3.4.5",
            "256.1",
            "1.2.3.256",
            "4294967296",
            "0x",
            "08",
            "+1",
            "1.+1",
            "a",
            "1.2.x",
            "127.16777216",
            "example.com",
        ] {
            assert_eq!(parse_numeric_v4(name), None, "{name}");
        }
    }
}
