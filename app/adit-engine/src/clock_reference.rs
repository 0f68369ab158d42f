//! The clock of this machine, compared with that of a web server.
//!
//! A Shadowsocks server of the 2022 edition does not answer clients whose clock differs, just as if the key were
//! wrong. The `Date` of any HTTP response (RFC 9110 section 6.6.1) tells the two causes apart. adit requests one only
//! where the user names a web server for it.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use adit_net::dial::{self, Family};
use adit_net::system;
use adit_wire::{Host, Target};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

/// Smallest difference that is reported, in seconds. A response can be late, and `Date` has whole seconds.
const MIN_REPORTED: u64 = 20;
/// Time for which a difference counts.
const MAX_AGE: Duration = Duration::from_secs(3600);
/// Maximum length of the head of a response, in bytes.
const MAX_HEAD: usize = 16 << 10;

/// The newest difference, and when it was recorded.
static NEWEST: Mutex<Option<(Instant, ClockOffset)>> = Mutex::new(None);

/// The difference between the clocks of this machine and of a web server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClockOffset {
    /// The web server's clock minus the local one, in seconds.
    pub seconds: i64,
    /// The web server.
    pub source: String,
}

impl ClockOffset {
    /// Compares the clock with the value of a `Date` header, in Unix seconds.
    #[must_use]
    pub fn from_date(source: impl fmt::Display, date: u64) -> Self {
        let ours = system::unix_now().0;
        let seconds = i64::try_from(date).unwrap_or(i64::MAX);
        let ours = i64::try_from(ours).unwrap_or(i64::MAX);
        Self {
            seconds: seconds.saturating_sub(ours),
            source: source.to_string(),
        }
    }

    /// Returns true if the clocks differ by at least 20 s, so that the local clock is likely wrong.
    #[must_use]
    pub const fn is_off(&self) -> bool {
        self.seconds.unsigned_abs() >= MIN_REPORTED
    }

    /// Stores the difference for later messages about servers that do not answer.
    pub fn record(&self) {
        let newest = Some((Instant::now(), self.clone()));
        *NEWEST.lock().unwrap_or_else(PoisonError::into_inner) = newest;
    }
}

impl fmt::Display for ClockOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let off = self.seconds.unsigned_abs();
        match self.seconds {
            0 => write!(f, "your clock agrees with that of {}", self.source),
            1.. => write!(f, "your clock is {off} s behind that of {}", self.source),
            _ => write!(f, "your clock is {off} s ahead of that of {}", self.source),
        }
    }
}

/// Returns the last difference, if it is at least 20 s and at most an hour old.
#[must_use]
pub fn last_offset() -> Option<ClockOffset> {
    let newest = NEWEST.lock().unwrap_or_else(PoisonError::into_inner);
    let (at, offset) = newest.as_ref()?;
    (at.elapsed() < MAX_AGE && offset.is_off()).then(|| offset.clone())
}

/// Requests the time of a web server by HTTP, directly from this machine, and records the difference. Returns `None`
/// if the response has no valid `Date`, or comes from a cache.
///
/// # Errors
///
/// The server does not answer within `patience`, and the errors of the connection.
pub async fn ask_web_server(
    server: &Target,
    patience: Duration,
) -> io::Result<Option<ClockOffset>> {
    let head = timeout(patience, request_head(server, patience)).await;
    let head = head.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    let offset = parse_date_header(&head).map(|date| ClockOffset::from_date(server, date));
    if let Some(offset) = &offset {
        offset.record();
    }
    Ok(offset)
}

async fn request_head(server: &Target, patience: Duration) -> io::Result<Vec<u8>> {
    let (addresses, host) = match &server.host {
        Host::Ip(ip) => (vec![SocketAddr::new(*ip, server.port)], ip.to_string()),
        Host::Name(name) => {
            let found = dial::resolve(name.as_str(), server.port, Family::Any).await?;
            (found, name.as_str().to_owned())
        }
    };
    let mut socket = dial::connect_first(&addresses, patience).await?;
    let request = format!("HEAD / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).await?;
    let mut head = Vec::with_capacity(MAX_HEAD);
    while head.len() < MAX_HEAD && !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if socket.read_buf(&mut head).await? == 0 {
            break;
        }
    }
    Ok(head)
}

/// Returns the time of the `Date` header of a response, in Unix seconds. `None` if there is none, or if the response
/// comes from a cache (`Age`), so that its date is that of an earlier time.
#[must_use]
pub fn parse_date_header(answer: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(answer);
    let head = text.split("\r\n\r\n").next().unwrap_or_default();
    let value = |wanted: &str| {
        head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case(wanted).then(|| value.trim())
        })
    };
    if value("age").is_some() {
        return None;
    }
    parse_http_date(value("date")?)
}

/// Parses a date in the IMF-fixdate format of RFC 9110 section 5.6.7, and returns it in Unix seconds.
#[must_use]
pub fn parse_http_date(value: &str) -> Option<u64> {
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
            "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nAge: 60\r\n",
            "HTTP/1.1 200 OK\r\n\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT",
        ] {
            assert_eq!(parse_date_header(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn a_difference_is_named_from_20_s_on() {
        let offset = |seconds| ClockOffset {
            seconds,
            source: "web.example:80".to_owned(),
        };
        assert!(!offset(19).is_off() && offset(20).is_off() && offset(-20).is_off());
        offset(5).record();
        assert_eq!(last_offset(), None);
        offset(-61).record();
        let text = last_offset().map(|offset| offset.to_string());
        let expected = "your clock is 61 s ahead of that of web.example:80";
        assert_eq!(text.as_deref(), Some(expected));
    }
}
