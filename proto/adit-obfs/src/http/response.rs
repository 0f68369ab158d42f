//! A server's response head, and the code with which a client skips it.

use adit_wire::{Opened, ProtocolError, UnixTime, narrow_int};

use super::{MAX_HEAD, head_end};

/// Returns the head in front of a server's first bytes.
pub(crate) fn response_head(now: UnixTime) -> Vec<u8> {
    format!(
        "HTTP/1.1 200 OK\r\n\
         Connection: keep-alive\r\n\
         Content-Encoding: gzip\r\n\
         Content-Type: text/html\r\n\
         Date: {}\r\n\
         Server: nginx\r\n\
         Vary: Accept-Encoding\r\n\
         \r\n",
        format_date(now)
    )
    .into_bytes()
}

/// Formats `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, section 5.6.7).
fn format_date(now: UnixTime) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let (days, second) = (now.0 / 86_400, now.0 % 86_400);
    let (year, month, day) = now.utc_date();
    format!(
        "{}, {day:02} {} {year} {:02}:{:02}:{:02} GMT",
        DAYS[narrow_int::<usize>(days % 7)],
        MONTHS[narrow_int::<usize>(month - 1)],
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

/// Skips a response head as it arrives, without storing it.
#[derive(Debug, Default)]
pub(crate) struct HeadSkipper {
    dropped: usize,
}

impl HeadSkipper {
    /// True if any byte of the head was skipped.
    pub(crate) const fn has_begun(&self) -> bool {
        self.dropped > 0
    }

    /// Skips as much as possible at the front of `wire`; returns true if that was the end of the
    /// head.
    pub(crate) fn skip_head(&mut self, wire: &[u8]) -> Result<(Opened, bool), ProtocolError> {
        let end = head_end(wire, 0);
        // The last three bytes may be the start of the blank line.
        let consumed = end.unwrap_or_else(|| wire.len().saturating_sub(3));
        self.dropped += consumed;
        if self.dropped > MAX_HEAD {
            let what = "http: the head";
            let limit = MAX_HEAD;
            return Err(ProtocolError::TooLong { what, limit });
        }
        if consumed == 0 {
            let total = wire.len() + 1;
            return Ok((Opened::NeedMore { total }, false));
        }
        let payload = consumed..consumed;
        Ok((Opened::Record { consumed, payload }, end.is_some()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        for (now, text) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (1_709_164_800, "Thu, 29 Feb 2024 00:00:00 GMT"),
            (1_735_689_599, "Tue, 31 Dec 2024 23:59:59 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
        ] {
            assert_eq!(format_date(UnixTime(now)), text);
        }
        assert!(format_date(UnixTime(u64::MAX)).ends_with("GMT"));
    }

    #[test]
    fn a_head_without_an_end_is_refused() {
        let mut skip = HeadSkipper::default();
        let mut left = MAX_HEAD;
        while left > 0 {
            let n = left.min(1000);
            assert!(
                matches!(skip.skip_head(&vec![b'a'; n + 3]), Ok((Opened::Record { consumed, .. }, false)) if consumed == n)
            );
            left -= n;
        }
        assert!(skip.skip_head(b"aaaa").is_err());
    }
}
