//! Why something did not come about, in russh's words.

use adit_ssh::{ConnectError, End, OpenError, RequestError};
use adit_ssh_proto::SshError;
use adit_ssh_proto::connection::CallError;

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

/// Why something did not come about.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The two sides have no algorithm in common.
    #[error("no common algorithm of the kind {kind:?}: ours {ours:?}, theirs {theirs:?}")]
    NoCommonAlgo {
        /// Of which kind.
        kind: AlgorithmKind,
        /// What was offered here.
        ours: Vec<String>,
        /// What the peer offered.
        theirs: Vec<String>,
    },
    /// The key exchange failed.
    #[error("the key exchange failed")]
    Kex,
    /// A packet's tag is wrong.
    #[error("a packet's tag is wrong")]
    PacketAuth,
    /// A call, or a message of the peer, that does not belong at this point.
    #[error("this does not belong here")]
    Inconsistent,
    /// A call that needs a user who is in.
    #[error("the user is not authenticated yet")]
    NotAuthenticated,
    /// The handler does not take the server's key.
    #[error("the server's key is not known")]
    UnknownKey,
    /// A signature of the server is wrong.
    #[error("a signature of the server is wrong")]
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
    /// The stream below ended.
    #[error("the peer closed the connection")]
    HUP,
    /// The peer answers no signs of life.
    #[error("the peer answers no keepalives")]
    KeepaliveTimeout,
    /// Nothing has happened for as long as the configuration allows.
    #[error("nothing has happened for too long")]
    InactivityTimeout,
    /// The session took nothing more.
    #[error("the session takes no messages any more")]
    SendError,
    /// More waits to be sent than may wait.
    #[error("too much waits to be sent")]
    Pending,
    /// The peer said no.
    #[error("the peer refused the request")]
    RequestDenied,
    /// The session gives nothing more.
    #[error("the session gives no messages any more")]
    RecvError,
    /// A key or a file of keys.
    #[error(transparent)]
    Keys(#[from] crate::keys::Error),
    /// A key.
    #[error(transparent)]
    SshKey(#[from] crate::keys::ssh_key::Error),
    /// The stream below failed.
    #[error(transparent)]
    IO(#[from] std::io::Error),
    /// Text that is none.
    #[error(transparent)]
    Utf8(#[from] std::str::Utf8Error),
    /// The session's task was ended.
    #[error(transparent)]
    Join(#[from] tokio::task::JoinError),
    /// The time is over.
    #[error(transparent)]
    Elapsed(#[from] tokio::time::error::Elapsed),
    /// A configuration that cannot work.
    #[error("the configuration: {0}")]
    InvalidConfig(String),
    /// One side broke the protocol, or its bounds.
    #[error(transparent)]
    Ssh(SshError),
}

/// The session's task does not listen any more.
#[derive(Debug, thiserror::Error)]
#[error("the session takes no messages any more")]
pub struct SendError {}

impl From<SshError> for Error {
    fn from(why: SshError) -> Self {
        match why {
            SshError::NoCommon { what, ours, theirs } => Self::NoCommonAlgo {
                kind: kind_of(what),
                ours: split(&ours),
                theirs: split(&theirs),
            },
            SshError::BadTag => Self::PacketAuth,
            SshError::Disconnected { .. } => Self::Disconnect,
            other => Self::Ssh(other),
        }
    }
}

impl From<CallError> for Error {
    fn from(why: CallError) -> Self {
        match why {
            CallError::Gone | CallError::NotNow | CallError::Ended => Self::WrongChannel,
            CallError::TooMany | CallError::Full => Self::Pending,
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

impl From<End> for Error {
    /// Of a call that comes too late.
    fn from(_: End) -> Self {
        Self::Disconnect
    }
}

impl From<OpenError> for Error {
    fn from(why: OpenError) -> Self {
        match why {
            OpenError::Refused { reason, text } => {
                Self::ChannelOpenFailure(ChannelOpenFailure::of(reason, &text))
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

fn kind_of(what: &str) -> AlgorithmKind {
    let kinds = [
        ("cipher", AlgorithmKind::Cipher),
        ("MAC", AlgorithmKind::Mac),
        ("compression", AlgorithmKind::Compression),
        ("host key", AlgorithmKind::Key),
    ];
    let found = kinds.into_iter().find(|(word, _)| what.contains(word));
    found.map_or(AlgorithmKind::Kex, |(_, kind)| kind)
}

fn split(names: &str) -> Vec<String> {
    names
        .split(',')
        .map(|name| name.trim().to_owned())
        .collect()
}
