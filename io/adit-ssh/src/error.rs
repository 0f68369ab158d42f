//! Why something of a session did not come about, or came to its end.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use adit_ssh_proto::SshError;
use adit_ssh_proto::connection::{CallError, OpenFailure, OwnError};

/// Why a session is over, as far as this end can tell.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum End {
    /// It was closed here.
    #[error("the session was closed")]
    Closed,
    /// The stream below ended.
    #[error("the peer ended the connection")]
    Ended,
    /// The stream below failed.
    #[error("{0}")]
    Below(Arc<io::Error>),
    /// The peer said that it ends, or one side broke the protocol.
    #[error(transparent)]
    Ssh(#[from] SshError),
    /// Nothing was done with it for as long as it may be quiet.
    #[error("nothing has happened for {} s", .0.as_secs())]
    Idle(Duration),
    /// The peer is taken for dead.
    #[error("nothing came from the peer for {} s", .0.as_secs())]
    Silent(Duration),
}

impl From<io::Error> for End {
    fn from(why: io::Error) -> Self {
        Self::Below(Arc::new(why))
    }
}

impl End {
    /// As the error of a channel that was cut off by it.
    pub(super) fn error(&self) -> io::Error {
        let kind = match self {
            Self::Below(why) => why.kind(),
            Self::Silent(_) | Self::Idle(_) => io::ErrorKind::TimedOut,
            _ => io::ErrorKind::ConnectionReset,
        };
        io::Error::new(kind, self.clone())
    }
}

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The stream below failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The stream below ended.
    #[error("the peer ended the connection while {0}")]
    Ended(&'static str),
    /// The protocol: no common algorithm, a peer that left, bytes that are no SSH.
    #[error(transparent)]
    Ssh(#[from] SshError),
    /// Client: the policy does not take the server's key.
    #[error("host key: {0}")]
    HostKey(HostKeyRefused),
    /// Client: nothing is left to try. Server: the client did not get in.
    #[error("authentication failed{}", would_take(.methods))]
    Auth {
        /// The methods that the server would go on with.
        methods: Vec<String>,
    },
    /// The peer took too long.
    #[error("the peer did not answer for {} s while {doing}", .limit.as_secs())]
    Timeout {
        /// How long was waited.
        limit: Duration,
        /// What for.
        doing: &'static str,
    },
}

impl From<HostKeyRefused> for ConnectError {
    fn from(why: HostKeyRefused) -> Self {
        Self::HostKey(why)
    }
}

fn would_take(methods: &[String]) -> String {
    if methods.is_empty() {
        String::new()
    } else {
        format!(" (the server would take: {})", methods.join(", "))
    }
}

/// Why a host key is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HostKeyRefused(pub String);

/// Why a channel was not opened.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The peer refused it.
    #[error("{}{}", refusal(.reason), if .text.is_empty() { String::new() } else { format!(": {text}") })]
    Refused {
        /// Why.
        reason: OpenFailure,
        /// The peer's words, printable characters only.
        text: String,
    },
    /// There are as many as there may be, or the type's name is one that the library handles.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The name or the data of an own type have not the form.
    #[error(transparent)]
    Own(#[from] OwnError),
    /// The session is over.
    #[error(transparent)]
    End(#[from] End),
}

fn refusal(reason: &OpenFailure) -> String {
    match reason {
        OpenFailure::Prohibited => "the peer does not allow this channel".to_owned(),
        OpenFailure::ConnectFailed => "the peer could not connect".to_owned(),
        OpenFailure::UnknownType => "the peer does not know this kind of channel".to_owned(),
        OpenFailure::Shortage => "the peer has no room for another channel".to_owned(),
        OpenFailure::Other(code) => format!("the peer refused the channel (reason {code})"),
    }
}

impl OpenError {
    /// As the error of a connection that did not come about.
    #[must_use]
    pub fn into_io(self) -> io::Error {
        let kind = match &self {
            Self::Refused { reason, .. } => match reason {
                OpenFailure::Prohibited => io::ErrorKind::PermissionDenied,
                OpenFailure::ConnectFailed => io::ErrorKind::ConnectionRefused,
                OpenFailure::UnknownType => io::ErrorKind::Unsupported,
                _ => io::ErrorKind::Other,
            },
            Self::Own(_) | Self::Call(CallError::Reserved) => io::ErrorKind::InvalidInput,
            Self::Call(_) => io::ErrorKind::QuotaExceeded,
            Self::End(_) => io::ErrorKind::NotConnected,
        };
        io::Error::new(kind, self)
    }
}

impl RequestError {
    /// As the error of a program that did not come about.
    #[must_use]
    pub fn into_io(self) -> io::Error {
        let kind = match &self {
            Self::Refused(_) => io::ErrorKind::PermissionDenied,
            Self::Own(_) | Self::Call(CallError::Reserved) => io::ErrorKind::InvalidInput,
            Self::Call(_) => io::ErrorKind::QuotaExceeded,
            Self::Closed => io::ErrorKind::BrokenPipe,
            Self::End(_) => io::ErrorKind::NotConnected,
        };
        io::Error::new(kind, self)
    }
}

/// Why a request was not granted.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The peer said no.
    #[error("the peer refused the request `{0}`")]
    Refused(String),
    /// It could not be asked.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The name or the data of an own request have not the form.
    #[error(transparent)]
    Own(#[from] OwnError),
    /// The channel closed before the answer.
    #[error("the channel closed")]
    Closed,
    /// The session is over.
    #[error(transparent)]
    End(#[from] End),
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::*;

    /// As programs print it: the error, and every cause of it.
    fn chain(error: &dyn Error) -> Vec<String> {
        let next = error.source().map(chain).unwrap_or_default();
        [vec![error.to_string()], next].concat()
    }

    #[test]
    fn nothing_is_said_twice() {
        let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
        let broken = SshError::Malformed("packet length");
        let errors: [Box<dyn Error>; 10] = [
            Box::new(End::from(refused())),
            Box::new(End::Ssh(broken.clone())),
            Box::new(ConnectError::Io(refused())),
            Box::new(ConnectError::Ssh(broken.clone())),
            Box::new(OpenError::End(End::Ssh(broken.clone()))),
            Box::new(OpenError::Call(CallError::TooMany)),
            Box::new(RequestError::End(End::Closed)),
            Box::new(RequestError::Call(CallError::TooMany)),
            Box::new(OpenError::Own(OwnError::Name)),
            Box::new(RequestError::Own(OwnError::Name)),
        ];
        for error in errors {
            let said = chain(&*error);
            assert_eq!(said.len(), 1, "{said:?}");
        }
    }
}
