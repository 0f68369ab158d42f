//! Why a session is over.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use adit_wire::ProtocolError;

use super::SnappyError;

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
    /// The peer speaks another version of smux.
    #[error("the peer speaks smux version {theirs}, this end version {ours}")]
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
        /// Whether it is the peer.
        theirs: bool,
    },
    /// What came cannot be decompressed.
    #[error(transparent)]
    Snappy(#[from] SnappyError),
    /// What came is no smux.
    #[error("not smux: {0}")]
    Protocol(ProtocolError),
    /// The peer is taken for dead.
    #[error("nothing came from the peer for {} s", .0.as_secs())]
    Silent(Duration),
}

impl From<ProtocolError> for End {
    fn from(why: ProtocolError) -> Self {
        Self::Protocol(why)
    }
}

impl From<io::Error> for End {
    fn from(why: io::Error) -> Self {
        Self::Below(Arc::new(why))
    }
}

impl End {
    /// As the error of a stream that was cut off by it.
    pub(super) fn error(&self) -> io::Error {
        let kind = match self {
            Self::Below(why) => why.kind(),
            Self::Silent(_) => io::ErrorKind::TimedOut,
            _ => io::ErrorKind::ConnectionReset,
        };
        io::Error::new(kind, self.clone())
    }
}
