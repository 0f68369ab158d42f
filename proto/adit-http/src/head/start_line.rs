//! Start lines (RFC 9112 sections 3 and 4).

use super::fields::{is_text, is_token};

/// The minor version of HTTP/1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MinorVersion {
    Zero,
    One,
}

impl MinorVersion {
    fn parse(text: &[u8]) -> Option<Self> {
        match text {
            b"HTTP/1.0" => Some(Self::Zero),
            b"HTTP/1.1" => Some(Self::One),
            _ => None,
        }
    }

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Zero => "HTTP/1.0",
            Self::One => "HTTP/1.1",
        }
    }
}

/// `METHOD SP TARGET SP VERSION`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RequestLine<'a> {
    pub(crate) method: &'a str,
    /// Visible ASCII, not empty.
    pub(crate) target: &'a str,
    pub(crate) version: MinorVersion,
}

impl<'a> RequestLine<'a> {
    /// Parses a line with one blank between the parts and no other blanks.
    pub(crate) fn parse(line: &'a [u8]) -> Result<Self, &'static str> {
        let mut parts = line.split(|b| *b == b' ');
        let (Some(method), Some(target), Some(version), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err("request line");
        };
        // On a port for several protocols the first byte decides; all methods in use are upper
        // case.
        if !is_token(method) || !method.first().is_some_and(u8::is_ascii_uppercase) {
            return Err("method");
        }
        if target.is_empty() || !target.iter().all(u8::is_ascii_graphic) {
            return Err("request target");
        }
        Ok(Self {
            method: core::str::from_utf8(method).map_err(|_| "method")?,
            target: core::str::from_utf8(target).map_err(|_| "request target")?,
            version: MinorVersion::parse(version).ok_or("version")?,
        })
    }
}

/// `VERSION SP STATUS SP REASON`; if the reason is missing, the last blank may be missing too.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StatusLine<'a> {
    pub(crate) version: MinorVersion,
    /// 100 to 999.
    pub(crate) status: u16,
    pub(crate) reason: &'a [u8],
}

impl<'a> StatusLine<'a> {
    pub(crate) fn parse(line: &'a [u8]) -> Result<Self, &'static str> {
        let (version, rest) = line.split_at_checked(8).ok_or("status line")?;
        let version = MinorVersion::parse(version).ok_or("version")?;
        let (status, reason) = match rest {
            [
                b' ',
                a @ b'1'..=b'9',
                b @ b'0'..=b'9',
                c @ b'0'..=b'9',
                reason @ ..,
            ] => {
                let digits = [a, b, c].map(|d| u16::from(d - b'0'));
                (digits.iter().fold(0, |n, d| n * 10 + d), reason)
            }
            _ => return Err("status code"),
        };
        let reason = match reason {
            [] => reason,
            [b' ', reason @ ..] if reason.iter().all(|b| is_text(*b)) => reason,
            _ => return Err("reason phrase"),
        };
        Ok(Self {
            version,
            status,
            reason,
        })
    }
}
