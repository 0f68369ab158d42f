//! Reasons for the end of a session.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use adit_wire::ProtocolError;

use super::SnappyError;

/// The reason for the end of a session, as far as this end can tell.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum EndReason {
    /// It was closed at this end.
    #[error("the session was closed")]
    Closed,
    /// The stream below ended.
    #[error("the peer closed the connection")]
    Ended,
    /// The stream below failed.
    #[error("{0}")]
    Below(Arc<io::Error>),
    /// The peer uses another version of smux.
    #[error("the peer uses smux version {theirs}, this end version {ours}")]
    Version {
        /// The version of this end.
        ours: u8,
        /// The version in the peer's first frame.
        theirs: u8,
    },
    /// Only one end compresses.
    #[error(
        "the peer {}, this end {}", 
        if *.theirs { "compresses" } else { "does not compress" },
        if *.theirs { "does not" } else { "does" }
    )]
    Compression {
        /// True if it is the peer.
        theirs: bool,
    },
    /// The received bytes cannot be decompressed.
    #[error(transparent)]
    Snappy(#[from] SnappyError),
    /// The received bytes are not smux.
    #[error("not smux: {0}")]
    Protocol(ProtocolError),
    /// The peer counts as dead.
    #[error("the peer was silent for {} s", .0.as_secs())]
    Silent(Duration),
}

impl From<ProtocolError> for EndReason {
    fn from(why: ProtocolError) -> Self {
        Self::Protocol(why)
    }
}

impl From<io::Error> for EndReason {
    fn from(why: io::Error) -> Self {
        Self::Below(Arc::new(why))
    }
}

impl EndReason {
    /// Returns the error of the streams that were interrupted by it.
    pub(super) fn to_io_error(&self) -> io::Error {
        let kind = match self {
            Self::Below(why) => why.kind(),
            Self::Silent(_) => io::ErrorKind::TimedOut,
            _ => io::ErrorKind::ConnectionReset,
        };
        io::Error::new(kind, self.clone())
    }
}
