//! The length of a message's body (RFC 9112 section 6).

use crate::head::{Fields, MinorVersion, trim_blanks};

/// The way a message's body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// There is no body.
    None,
    /// The body has this many bytes.
    Length(u64),
    /// The chunked coding marks the end.
    Chunked,
    /// The end of the stream is the end of the body. Responses only.
    UntilClose,
}

/// The framing that the fields declare, for any kind of message.
enum DeclaredFraming {
    Nothing,
    Length(u64),
    /// Transfer codings, the last of which is `chunked`.
    Chunked,
    /// Transfer codings without `chunked`.
    Coded,
}

const CODINGS: [&str; 5] = ["gzip", "x-gzip", "deflate", "compress", "x-compress"];

impl DeclaredFraming {
    /// Reads the declaration; `length` is the combined value of the `Content-Length` fields.
    fn from_fields(
        fields: &Fields<'_>,
        length: Option<&[u8]>,
        version: MinorVersion,
    ) -> Result<Self, &'static str> {
        if fields.all_values("Transfer-Encoding").next().is_none() {
            return Ok(match length {
                None => Self::Nothing,
                Some(digits) => Self::Length(parse_length(digits).ok_or("Content-Length")?),
            });
        }
        // Both at the same time, or a coding that HTTP/1.0 does not have: other parsers on the path
        // may read it differently.
        if length.is_some() || version == MinorVersion::Zero {
            return Err("Transfer-Encoding");
        }
        let mut found = Self::Coded;
        for coding in fields.list_members("Transfer-Encoding") {
            let known = |name: &str| coding.eq_ignore_ascii_case(name.as_bytes());
            found = match found {
                Self::Coded if known("chunked") => Self::Chunked,
                Self::Coded if CODINGS.iter().any(|name| known(name)) => Self::Coded,
                // Nothing may follow `chunked`, not even another `chunked`.
                _ => return Err("Transfer-Encoding"),
            };
        }
        Ok(found)
    }
}

/// Parses decimal digits and nothing else, up to 2⁶³ − 1.
fn parse_length(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let length: i64 = core::str::from_utf8(digits).ok()?.parse().ok()?;
    u64::try_from(length).ok()
}

/// Returns the digits on which all `Content-Length` fields of a response, and all members of each,
/// agree (RFC 9110 section 8.6); they are forwarded in place of all fields.
pub(crate) fn agreed_length<'a>(fields: &Fields<'a>) -> Result<Option<&'a [u8]>, &'static str> {
    let mut agreed: Option<(u64, &[u8])> = None;
    for value in fields.all_values("Content-Length") {
        for digits in value.split(|b| *b == b',').map(trim_blanks) {
            let length = parse_length(digits).ok_or("Content-Length")?;
            match agreed {
                Some((first, _)) if first != length => return Err("Content-Length"),
                Some(_) => {}
                None => agreed = Some((length, digits)),
            }
        }
    }
    Ok(agreed.map(|(_, digits)| digits))
}

/// Returns the framing of a request's body. Two lengths are refused even if they are equal.
pub(crate) fn request_framing(
    fields: &Fields<'_>,
    version: MinorVersion,
) -> Result<Framing, &'static str> {
    let length = fields.single_value("Content-Length")?;
    Ok(
        match DeclaredFraming::from_fields(fields, length, version)? {
            DeclaredFraming::Nothing => Framing::None,
            DeclaredFraming::Length(n) => Framing::Length(n),
            DeclaredFraming::Chunked => Framing::Chunked,
            DeclaredFraming::Coded => return Err("Transfer-Encoding"),
        },
    )
}

/// Returns the framing of a response's body, by the rules of RFC 9112 section 6.3 in their order.
pub(crate) fn response_framing(
    fields: &Fields<'_>,
    version: MinorVersion,
    status: u16,
    to_head: bool,
) -> Result<Framing, &'static str> {
    let declared = DeclaredFraming::from_fields(fields, agreed_length(fields)?, version)?;
    if to_head || matches!(status, 100..=199 | 204 | 304) {
        return Ok(Framing::None);
    }
    Ok(match declared {
        DeclaredFraming::Length(n) => Framing::Length(n),
        DeclaredFraming::Chunked => Framing::Chunked,
        DeclaredFraming::Nothing | DeclaredFraming::Coded => Framing::UntilClose,
    })
}
