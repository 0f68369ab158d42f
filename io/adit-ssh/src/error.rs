//! Errors of sessions, channels and requests.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use adit_ssh_proto::SshError;
use adit_ssh_proto::connection::{ChannelCallError, CustomMessageError, OpenFailureReason};

/// The reason why a session is over, as far as this end can tell.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SessionEnd {
    /// This end closed the session.
    #[error("the session was closed")]
    Closed,
    /// The underlying stream ended.
    #[error("the peer ended the connection")]
    PeerClosed,
    /// The underlying stream failed.
    #[error("{0}")]
    Io(Arc<io::Error>),
    /// The peer sent a disconnect message, or one side violated the protocol.
    #[error(transparent)]
    Ssh(#[from] SshError),
    /// The session was idle for the configured time.
    #[error("the session was idle for {} s", .0.as_secs())]
    Idle(Duration),
    /// The peer did not answer keepalive requests.
    #[error("the peer sent nothing for {} s", .0.as_secs())]
    PeerSilent(Duration),
}

impl From<io::Error> for SessionEnd {
    fn from(why: io::Error) -> Self {
        Self::Io(Arc::new(why))
    }
}

impl SessionEnd {
    /// Converts this into the error of a channel that was cut off with the session.
    pub(super) fn to_io_error(&self) -> io::Error {
        let kind = match self {
            Self::Io(why) => why.kind(),
            Self::PeerSilent(_) | Self::Idle(_) => io::ErrorKind::TimedOut,
            _ => io::ErrorKind::ConnectionReset,
        };
        io::Error::new(kind, self.clone())
    }
}

/// An error while a session was established.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The underlying stream failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The underlying stream ended.
    #[error("the peer ended the connection while {0}")]
    Ended(&'static str),
    /// A protocol error: no common algorithm, a disconnect by the peer, data that is not SSH.
    #[error(transparent)]
    Ssh(#[from] SshError),
    /// On a client: the policy refused the server's host key.
    #[error("host key: {0}")]
    HostKey(HostKeyRefused),
    /// On a client: no authentication method is left to try. On a server: the client failed to
    /// authenticate.
    #[error("authentication failed{}", format_methods(.methods))]
    Auth {
        /// The methods that the server would accept next.
        methods: Vec<String>,
    },
    /// The peer took too long.
    #[error("the peer did not answer for {} s while {doing}", .limit.as_secs())]
    Timeout {
        /// The time limit.
        limit: Duration,
        /// The step that timed out, such as `exchanging keys`.
        doing: &'static str,
    },
}

impl From<HostKeyRefused> for ConnectError {
    fn from(why: HostKeyRefused) -> Self {
        Self::HostKey(why)
    }
}

fn format_methods(methods: &[String]) -> String {
    if methods.is_empty() {
        String::new()
    } else {
        format!(" (the server accepts: {})", methods.join(", "))
    }
}

/// The reason why a policy refused a host key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HostKeyRefused(pub String);

/// An error while a channel was opened.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The peer refused the channel.
    #[error("{}{}", refusal_message(.reason), if .text.is_empty() { String::new() } else { format!(": {text}") })]
    Refused {
        /// The reason code.
        reason: OpenFailureReason,
        /// The peer's explanation, printable characters only.
        text: String,
    },
    /// Too many channels are open, or the type name is reserved for the library.
    #[error(transparent)]
    Call(#[from] ChannelCallError),
    /// The name or the data of an application-defined type is malformed.
    #[error(transparent)]
    Own(#[from] CustomMessageError),
    /// The session is over.
    #[error(transparent)]
    End(#[from] SessionEnd),
}

fn refusal_message(reason: &OpenFailureReason) -> String {
    match reason {
        OpenFailureReason::Prohibited => "the peer does not allow this channel".to_owned(),
        OpenFailureReason::ConnectFailed => "the peer could not connect".to_owned(),
        OpenFailureReason::UnknownType => {
            "the peer does not support this type of channel".to_owned()
        }
        OpenFailureReason::Shortage => "the peer has no resources for another channel".to_owned(),
        OpenFailureReason::Other(code) => format!("the peer refused the channel (reason {code})"),
    }
}

impl OpenError {
    /// Converts this into the error of a failed connection.
    #[must_use]
    pub fn into_io(self) -> io::Error {
        let kind = match &self {
            Self::Refused { reason, .. } => match reason {
                OpenFailureReason::Prohibited => io::ErrorKind::PermissionDenied,
                OpenFailureReason::ConnectFailed => io::ErrorKind::ConnectionRefused,
                OpenFailureReason::UnknownType => io::ErrorKind::Unsupported,
                _ => io::ErrorKind::Other,
            },
            Self::Own(_) | Self::Call(ChannelCallError::Reserved) => io::ErrorKind::InvalidInput,
            Self::Call(_) => io::ErrorKind::QuotaExceeded,
            Self::End(_) => io::ErrorKind::NotConnected,
        };
        io::Error::new(kind, self)
    }
}

impl RequestError {
    /// Converts this into the error of a program that could not be started.
    #[must_use]
    pub fn into_io(self) -> io::Error {
        let kind = match &self {
            Self::Refused(_) => io::ErrorKind::PermissionDenied,
            Self::Own(_) | Self::Call(ChannelCallError::Reserved) => io::ErrorKind::InvalidInput,
            Self::Call(_) => io::ErrorKind::QuotaExceeded,
            Self::Closed => io::ErrorKind::BrokenPipe,
            Self::End(_) => io::ErrorKind::NotConnected,
        };
        io::Error::new(kind, self)
    }
}

/// An error of a request.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The peer refused the request.
    #[error("the peer refused the request `{0}`")]
    Refused(String),
    /// The request could not be sent.
    #[error(transparent)]
    Call(#[from] ChannelCallError),
    /// The name or the data of an application-defined request is malformed.
    #[error(transparent)]
    Own(#[from] CustomMessageError),
    /// The channel closed before the answer arrived.
    #[error("the channel closed before the peer answered")]
    Closed,
    /// The session is over.
    #[error(transparent)]
    End(#[from] SessionEnd),
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::*;

    /// Returns the messages of an error and all its sources, as programs print them.
    fn chain(error: &dyn Error) -> Vec<String> {
        let next = error.source().map(chain).unwrap_or_default();
        [vec![error.to_string()], next].concat()
    }

    #[test]
    fn nothing_is_said_twice() {
        let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
        let broken = SshError::Malformed("packet length");
        let errors: [Box<dyn Error>; 10] = [
            Box::new(SessionEnd::from(refused())),
            Box::new(SessionEnd::Ssh(broken.clone())),
            Box::new(ConnectError::Io(refused())),
            Box::new(ConnectError::Ssh(broken.clone())),
            Box::new(OpenError::End(SessionEnd::Ssh(broken.clone()))),
            Box::new(OpenError::Call(ChannelCallError::TooMany)),
            Box::new(RequestError::End(SessionEnd::Closed)),
            Box::new(RequestError::Call(ChannelCallError::TooMany)),
            Box::new(OpenError::Own(CustomMessageError::Name)),
            Box::new(RequestError::Own(CustomMessageError::Name)),
        ];
        for error in errors {
            let said = chain(&*error);
            assert_eq!(said.len(), 1, "{said:?}");
        }
    }
}
