//! Requests to targets (a web server, a DNS server), and the time in a response.

use adit_engine::probe::ProbeRequest;
use adit_wire::{Host, Target};

/// A web server and the HEAD request to it.
#[derive(Debug, Clone)]
pub(super) struct WebTarget {
    pub(super) target: Target,
    request: String,
}

impl WebTarget {
    pub(super) fn new(target: Target) -> Self {
        let host = match &target.host {
            Host::Ip(ip) => ip.to_string(),
            Host::Name(name) => name.as_str().to_owned(),
        };
        let request = format!("HEAD / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        Self { target, request }
    }

    pub(super) fn probe_request(&self) -> ProbeRequest<'_> {
        ProbeRequest::for_target(self.target.clone(), self.request.as_bytes(), b"HTTP/")
    }
}

/// Returns the time of the `Date` header of a response, in Unix seconds (the IMF-fixdate format of
/// RFC 9110 section 5.6.7).
pub(super) fn parse_date_header(answer: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(answer);
    let value = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("date").then(|| value.trim())
    })?;
    // `Sun, 06 Nov 1994 08:49:37 GMT`
    let mut parts = value.split([' ', ':']).skip(1);
    let day = parse_bounded(parts.next(), 31).filter(|day| *day > 0)?;
    let name = parts.next()?;
    let month = u64::try_from(MONTHS.iter().position(|known| *known == name)?).ok()? + 1;
    let year = parse_bounded(parts.next(), 9999)?;
    let (hour, minute) = (
        parse_bounded(parts.next(), 23)?,
        parse_bounded(parts.next(), 59)?,
    );
    let second = parse_bounded(parts.next(), 60)?;
    // Days since March of the year 0: the leap day is then the last day of the year.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year.checked_sub(1)?, month + 9)
    };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    let since_1970 = days.checked_sub(719_468)?;
    Some(since_1970 * 86_400 + hour * 3600 + minute * 60 + second)
}

fn parse_bounded(text: Option<&str>, max: u64) -> Option<u64> {
    text?.parse().ok().filter(|n| *n <= max)
}

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// Returns a query for the IPv4 address of `example.com` (RFC 1035 section 4.1).
pub(super) fn dns_query(id: u16) -> Vec<u8> {
    let mut bytes = id.to_be_bytes().to_vec();
    bytes.extend_from_slice(&[1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    bytes.extend_from_slice(b"\x07example\x03com\x00\x00\x01\x00\x01");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read() {
        for (text, unix) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
            ("Thu, 29 Feb 2024 23:59:59 GMT", 1_709_251_199),
        ] {
            let answer = format!("HTTP/1.1 200 OK\r\nServer: x\r\ndate: {text}\r\n\r\n");
            assert_eq!(parse_date_header(answer.as_bytes()), Some(unix), "{text}");
        }
        for bad in [
            "",
            "HTTP/1.1 200 OK\r\n",
            "Date: yesterday",
            "Date: Sun, 40 Nov 1994 08:49:37",
        ] {
            assert_eq!(parse_date_header(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn the_query_is_well_formed() {
        let query = dns_query(0x1234);
        assert_eq!(query.len(), 12 + 13 + 4);
        assert_eq!(query[..4], [0x12, 0x34, 1, 0]);
    }
}
