//! Errors, with russh's names.

use adit_ssh::{ConnectError, OpenError, RequestError, SessionEnd};
use adit_ssh_proto::SshError;
use adit_ssh_proto::connection::ChannelCallError;

use crate::ChannelOpenFailure;

/// A kind of algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlgorithmKind {
    /// Key exchange.
    Kex,
    /// Host key.
    Key,
    /// Cipher.
    Cipher,
    /// Compression.
    Compression,
    /// Message authentication code.
    Mac,
}

/// An error of a session, a channel or a key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The two sides have no algorithm in common.
    #[error("no common {kind:?} algorithm: this end offers {ours:?}, the peer {theirs:?}")]
    NoCommonAlgo {
        /// The kind of algorithm.
        kind: AlgorithmKind,
        /// The algorithms that this end offered.
        ours: Vec<String>,
        /// The algorithms that the peer offered.
        theirs: Vec<String>,
    },
    /// The key exchange failed.
    #[error("the key exchange failed")]
    Kex,
    /// A packet failed authentication.
    #[error("packet authentication failed")]
    PacketAuth,
    /// A call, or a message of the peer, that is not valid at this point.
    #[error("the call or message is not valid at this point")]
    Inconsistent,
    /// The call requires an authenticated user.
    #[error("the user is not authenticated yet")]
    NotAuthenticated,
    /// The handler refused the server's host key.
    #[error("the server's host key was refused")]
    UnknownKey,
    /// A signature of the server is invalid.
    #[error("the server's signature is invalid")]
    WrongServerSig,
    /// The channel is not open.
    #[error("the channel is not open")]
    WrongChannel,
    /// The peer refused the channel.
    #[error("the channel was refused: {0:?}")]
    ChannelOpenFailure(ChannelOpenFailure),
    /// The session is over.
    #[error("the session is over")]
    Disconnect,
    /// The underlying stream ended.
    #[error("the peer closed the connection")]
    HUP,
    /// The peer did not answer keepalive requests.
    #[error("the peer did not answer keepalive requests")]
    KeepaliveTimeout,
    /// The session was idle for the configured time.
    #[error("the session was idle for too long")]
    InactivityTimeout,
    /// The session's task accepts no more messages.
    #[error("the session accepts no more messages")]
    SendError,
    /// Too much data waits to be sent.
    #[error("too much data waits to be sent")]
    Pending,
    /// The peer refused the request.
    #[error("the peer refused the request")]
    RequestDenied,
    /// The session's task sends no more messages.
    #[error("the session sends no more messages")]
    RecvError,
    /// An error of a key or of a key file.
    #[error(transparent)]
    Keys(#[from] crate::keys::Error),
    /// An error of a key.
    #[error(transparent)]
    SshKey(#[from] crate::keys::ssh_key::Error),
    /// The underlying stream failed.
    #[error(transparent)]
    IO(#[from] std::io::Error),
    /// Text that is not valid UTF-8.
    #[error(transparent)]
    Utf8(#[from] std::str::Utf8Error),
    /// The session's task was cancelled or has panicked.
    #[error(transparent)]
    Join(#[from] tokio::task::JoinError),
    /// A time limit was exceeded.
    #[error(transparent)]
    Elapsed(#[from] tokio::time::error::Elapsed),
    /// The configuration is invalid.
    #[error("invalid configuration: {0}")]
    InvalidConfig(String),
    /// One side violated the protocol, or exceeded its limits.
    #[error(transparent)]
    Ssh(SshError),
}

/// The error of a send to a session whose task has ended.
#[derive(Debug, thiserror::Error)]
#[error("the session accepts no more messages")]
pub struct SendError {}

impl From<SshError> for Error {
    fn from(why: SshError) -> Self {
        match why {
            SshError::NoCommon { what, ours, theirs } => Self::NoCommonAlgo {
                kind: algorithm_kind(what),
                ours: split_names(&ours),
                theirs: split_names(&theirs),
            },
            SshError::BadTag => Self::PacketAuth,
            SshError::Disconnected { .. } => Self::Disconnect,
            other => Self::Ssh(other),
        }
    }
}

impl From<ChannelCallError> for Error {
    fn from(why: ChannelCallError) -> Self {
        match why {
            ChannelCallError::Gone | ChannelCallError::NotNow | ChannelCallError::Ended => {
                Self::WrongChannel
            }
            ChannelCallError::TooMany | ChannelCallError::Full => Self::Pending,
            _ => Self::Inconsistent,
        }
    }
}

impl From<ConnectError> for Error {
    fn from(why: ConnectError) -> Self {
        match why {
            ConnectError::Io(why) => why.into(),
            ConnectError::Ended(_) => Self::HUP,
            ConnectError::Ssh(why) => why.into(),
            ConnectError::HostKey(_) => Self::UnknownKey,
            ConnectError::Timeout { .. } => Self::InactivityTimeout,
            _ => Self::NotAuthenticated,
        }
    }
}

impl From<SessionEnd> for Error {
    /// Converts the error of a call after the end of the session.
    fn from(_: SessionEnd) -> Self {
        Self::Disconnect
    }
}

impl From<OpenError> for Error {
    fn from(why: OpenError) -> Self {
        match why {
            OpenError::Refused { reason, text } => {
                Self::ChannelOpenFailure(ChannelOpenFailure::from_open_failure(reason, &text))
            }
            OpenError::Call(why) => why.into(),
            OpenError::End(why) => why.into(),
            _ => Self::Inconsistent,
        }
    }
}

impl From<RequestError> for Error {
    fn from(why: RequestError) -> Self {
        match why {
            RequestError::Refused(_) => Self::RequestDenied,
            RequestError::Call(why) => why.into(),
            RequestError::Closed => Self::WrongChannel,
            RequestError::End(why) => why.into(),
            _ => Self::Inconsistent,
        }
    }
}

fn algorithm_kind(what: &str) -> AlgorithmKind {
    let kinds = [
        ("cipher", AlgorithmKind::Cipher),
        ("MAC", AlgorithmKind::Mac),
        ("compression", AlgorithmKind::Compression),
        ("host key", AlgorithmKind::Key),
    ];
    let found = kinds.into_iter().find(|(word, _)| what.contains(word));
    found.map_or(AlgorithmKind::Kex, |(_, kind)| kind)
}

fn split_names(names: &str) -> Vec<String> {
    names
        .split(',')
        .map(|name| name.trim().to_owned())
        .collect()
}
