//! Status codes of requests whose reply is not data (draft section 7).

use super::reply::StatusReply;
use crate::error::SshError;

/// Status code of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SftpStatus {
    /// The request succeeded.
    Ok,
    /// End of a file or directory.
    Eof,
    /// The file does not exist.
    NoSuchFile,
    /// The user lacks permission.
    PermissionDenied,
    /// Any other failure.
    Failure,
    /// The request could not be parsed.
    BadMessage,
    /// There is no connection (never sent).
    NoConnection,
    /// The connection was lost (never sent).
    ConnectionLost,
    /// The operation is not supported.
    Unsupported,
    /// A code of a later protocol version.
    Other(u32),
}

impl SftpStatus {
    /// Returns the status for a code.
    #[must_use]
    pub const fn from_code(code: u32) -> Self {
        match code {
            0 => Self::Ok,
            1 => Self::Eof,
            2 => Self::NoSuchFile,
            3 => Self::PermissionDenied,
            4 => Self::Failure,
            5 => Self::BadMessage,
            6 => Self::NoConnection,
            7 => Self::ConnectionLost,
            8 => Self::Unsupported,
            other => Self::Other(other),
        }
    }

    /// Returns the code on the wire.
    #[must_use]
    pub const fn code(self) -> u32 {
        match self {
            Self::Ok => 0,
            Self::Eof => 1,
            Self::NoSuchFile => 2,
            Self::PermissionDenied => 3,
            Self::Failure => 4,
            Self::BadMessage => 5,
            Self::NoConnection => 6,
            Self::ConnectionLost => 7,
            Self::Unsupported => 8,
            Self::Other(code) => code,
        }
    }

    /// Returns the default message.
    #[must_use]
    pub const fn default_message(self) -> &'static str {
        match self {
            Self::Ok => "Success",
            Self::Eof => "End of file",
            Self::NoSuchFile => "No such file",
            Self::PermissionDenied => "Permission denied",
            Self::Failure => "Failure",
            Self::BadMessage => "Bad message",
            Self::NoConnection => "No connection",
            Self::ConnectionLost => "Connection lost",
            Self::Unsupported => "Operation unsupported",
            Self::Other(_) => "Unknown status",
        }
    }
}

impl core::fmt::Display for SftpStatus {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.pad(self.default_message())
    }
}

/// Failure of a request, reported by the server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{status}{}{text}", if text.is_empty() { "" } else { ": " })]
pub struct SftpRefused {
    /// Status code.
    pub status: SftpStatus,
    /// Message of the server: printable characters only, from at most 256 bytes; empty if it only
    /// repeats the status.
    pub text: String,
}

impl From<StatusReply<'_>> for SftpRefused {
    fn from(reply: StatusReply<'_>) -> Self {
        let words = reply.message.get(..256).unwrap_or(reply.message);
        let text: String = String::from_utf8_lossy(words)
            .chars()
            .filter(|c| c.is_ascii_graphic() || *c == ' ' || c.is_alphanumeric())
            .collect();
        Self {
            status: reply.status,
            text: if text.eq_ignore_ascii_case(reply.status.default_message()) {
                String::new()
            } else {
                text
            },
        }
    }
}

/// Error that ends a file transfer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransferError {
    /// The server refused the request; the channel stays usable.
    #[error(transparent)]
    Refused(#[from] SftpRefused),
    /// The server violated the protocol.
    #[error(transparent)]
    Protocol(#[from] SshError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_lead_back() {
        for code in [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 31, u32::MAX] {
            assert_eq!(SftpStatus::from_code(code).code(), code);
        }
    }

    #[test]
    fn hostile_words_are_made_harmless() {
        let refused = |message| {
            SftpRefused::from(StatusReply {
                status: SftpStatus::Failure,
                message,
            })
        };
        assert_eq!(
            refused(b"a\x1b[2Jb\xff\n c").to_string(),
            "Failure: a[2Jb c"
        );
        assert_eq!(refused(b"failure").to_string(), "Failure");
        assert_eq!(refused(&[b'x'; 4000]).text.len(), 256);
    }
}
