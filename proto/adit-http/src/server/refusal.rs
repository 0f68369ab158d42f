//! Refusals and their responses.

use adit_wire::ProtocolError;

use crate::MAX_HEAD;
use crate::head::{HeadError, is_token};

/// The first answer to a missing or wrong password; the connection stays open.
pub(super) const PASSWORD_CHALLENGE: &[u8] = b"HTTP/1.1 407 Proxy Authentication Required\r\n\
    Proxy-Authenticate: Basic realm=\"proxy\"\r\nContent-Length: 0\r\n\r\n";

/// The reason a handshake ended without a request. The response has been appended to `tx`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The head violates the grammar, or requests something a proxy does not do. Answered with 400.
    #[error("malformed {0}")]
    Malformed(&'static str),
    /// The head exceeds a limit. Answered with 431.
    #[error("the {0} is too large")]
    TooLarge(&'static str),
    /// The password is missing or wrong. Answered with 407.
    #[error("missing or wrong credentials (user `{user}`)")]
    BadCredentials {
        /// The attempted user name, at most 255 bytes of it, escaped for printing; may be empty.
        user: Box<str>,
    },
}

impl Refusal {
    /// Returns the status code of the response.
    #[must_use]
    pub const fn status(&self) -> u16 {
        match self {
            Self::Malformed(_) => 400,
            Self::TooLarge(_) => 431,
            Self::BadCredentials { .. } => 407,
        }
    }

    pub(super) fn bad_credentials(user: &[u8]) -> Self {
        let shown = user.get(..255).unwrap_or(user);
        Self::BadCredentials {
            user: shown.escape_ascii().to_string().into(),
        }
    }
}

impl From<HeadError> for Refusal {
    fn from(why: HeadError) -> Self {
        match why {
            HeadError::Malformed(what) => Self::Malformed(what),
            HeadError::TooLarge(what) => Self::TooLarge(what),
        }
    }
}

impl From<Refusal> for ProtocolError {
    fn from(why: Refusal) -> Self {
        match why {
            Refusal::Malformed(what) => Self::Malformed(what),
            Refusal::TooLarge(what) => Self::TooLong {
                what,
                limit: MAX_HEAD,
            },
            Refusal::BadCredentials { .. } => Self::Unauthentic,
        }
    }
}

/// Returns a complete response without a body, after which the connection must be closed.
///
/// `token` is sent in `X-Adit-Error`, for listeners that tell their clients the reason; it is
/// omitted if it is not a token (RFC 9110 section 5.6.2).
#[must_use]
pub fn failure_response(status: u16, token: Option<&str>) -> Vec<u8> {
    explained_failure(status, token, "")
}

/// Returns the same response with `why` as a body of one line, unless `why` is empty.
#[must_use]
pub fn explained_failure(status: u16, token: Option<&str>, why: &str) -> Vec<u8> {
    let reason = match status {
        400 => "Bad Request",
        403 => "Forbidden",
        407 => "Proxy Authentication Required",
        431 => "Request Header Fields Too Large",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Error",
    };
    let mut out = format!("HTTP/1.1 {status:03} {reason}\r\n");
    if status == 407 {
        out.push_str("Proxy-Authenticate: Basic realm=\"proxy\"\r\n");
    }
    if let Some(token) = token.filter(|t| is_token(t.as_bytes())) {
        out.push_str("X-Adit-Error: ");
        out.push_str(token);
        out.push_str("\r\n");
    }
    if why.is_empty() {
        out.push_str("Content-Length: 0\r\nConnection: close\r\n\r\n");
        return out.into_bytes();
    }
    let length = why.len() + 1;
    out.push_str(&format!(
        "Content-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{why}\n"
    ));
    out.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_whole_responses() {
        assert_eq!(
            failure_response(502, None),
            b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        let text = String::from_utf8(failure_response(504, Some("connect-timeout"))).unwrap();
        assert!(text.contains("\r\nX-Adit-Error: connect-timeout\r\n"));
        let text = String::from_utf8(failure_response(502, Some("a\r\nb: c"))).unwrap();
        assert!(!text.contains("X-Adit-Error"));
        let text = String::from_utf8(failure_response(407, None)).unwrap();
        assert!(text.contains("\r\nProxy-Authenticate: Basic realm=\"proxy\"\r\n"));
        for status in [400, 403, 407, 431, 502, 503, 504] {
            let text = String::from_utf8(failure_response(status, None)).unwrap();
            assert!(
                !text.contains(" Error"),
                "{status} has its own reason phrase"
            );
        }
    }
}
