//! Errors of lookups.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use adit_dns::{AnswerError, NameError, ResponseCode};

/// The reason why one server has not answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The path to the server failed.
    #[error("no connection: {0}")]
    Path(io::Error),
    /// The path to the server failed within the last second, so it was not tried again.
    #[error("{0}")]
    Unreachable(Arc<str>),
    /// TLS failed, for example because the certificate is not valid for the server.
    #[error("no TLS: {0}")]
    Tls(io::Error),
    /// The client has no settings for TLS.
    #[error(transparent)]
    TlsSettings(#[from] crate::tls::TlsError),
    /// The connection ended before the answer.
    #[error("the connection ended before the answer: {0}")]
    Closed(io::Error),
    /// The message is not the answer, or not a valid one.
    #[error(transparent)]
    Answer(#[from] AnswerError),
    /// HTTP failed.
    #[error("HTTP: {0}")]
    Http(String),
    /// The server answered that it failed, or that it refuses.
    #[error("it answered {0}")]
    Code(ResponseCode),
    /// No answer in time.
    #[error("no answer within {} s", .0.as_secs())]
    Late(Duration),
}

impl ServerError {
    /// True if every other query would fail as well, for any name and any client.
    pub(crate) fn is_about_the_path(&self) -> bool {
        match self {
            Self::Path(why) => why.kind() != io::ErrorKind::QuotaExceeded,
            Self::Tls(_) | Self::TlsSettings(_) => true,
            _ => false,
        }
    }
}

/// The reason why a lookup failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum LookupError {
    /// The name cannot be sent to a server.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Too many lookups of this client, or of all, are waiting.
    #[error("too many lookups are waiting")]
    TooMany,
    /// No server has answered; the reasons, by server.
    #[error("no DNS server answered: {0}")]
    NoAnswer(Arc<str>),
    /// The name does not exist, or has no address.
    #[error("{name} {}", if *exists { "has no address" } else { "does not exist (NXDOMAIN)" })]
    NoAddress {
        /// The name.
        name: Arc<str>,
        /// True if the name exists.
        exists: bool,
    },
    /// The lookup was aborted.
    #[error("the lookup was aborted")]
    Aborted,
}

impl From<LookupError> for io::Error {
    /// As an unreachable host, which is what clients are answered; too many lookups are an exceeded quota.
    fn from(why: LookupError) -> Self {
        let kind = match why {
            LookupError::Name(_) => io::ErrorKind::InvalidInput,
            LookupError::TooMany => io::ErrorKind::QuotaExceeded,
            _ => io::ErrorKind::HostUnreachable,
        };
        Self::new(kind, why)
    }
}
