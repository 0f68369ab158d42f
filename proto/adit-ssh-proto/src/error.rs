//! What ends a connection, and the reason code that the peer is told.

/// Why a connection cannot go on. Everything of the peer's doing is here; nothing is retried.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SshError {
    /// A message that does not have the form its number promises.
    #[error("malformed {0}")]
    Malformed(&'static str),
    /// A length, a count or a window is above its bound.
    #[error("{what} is above {limit}")]
    TooMuch {
        /// What was too much.
        what: &'static str,
        /// Its bound, in octets or in number.
        limit: usize,
    },
    /// A message that must not come at this point.
    #[error("message {0} at a point where it must not come")]
    Unexpected(u8),
    /// A tag is wrong: altered bytes, or keys that differ.
    #[error("a packet's tag is wrong")]
    BadTag,
    /// No algorithm in common; what each side offered is told.
    #[error("no common {what}: we offer {ours}; the peer offers {theirs}")]
    NoCommon {
        /// The list, such as `cipher (client to server)`.
        what: &'static str,
        /// Our names, with commas.
        ours: String,
        /// The peer's names, with commas, printable characters only.
        theirs: String,
    },
    /// The key exchange failed: a point, a key or a signature is not valid.
    #[error("key exchange: {0}")]
    Kex(&'static str),
    /// The policy forbids what the peer wants or is.
    #[error("refused: {0}")]
    Policy(&'static str),
    /// The peer ended the connection.
    #[error("the peer disconnected (reason {reason}): {text}")]
    Disconnected {
        /// Its reason code (RFC 4253 section 11.1).
        reason: u32,
        /// Its words, printable characters only.
        text: String,
    },
    /// Own randomness or cryptography failed.
    #[error("cryptography: {0}")]
    Crypto(&'static str),
}

/// Reason codes of DISCONNECT (RFC 4253 section 11.1) that we send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Disconnect {
    /// The peer's host may not connect.
    HostNotAllowed = 1,
    /// The peer broke the protocol.
    ProtocolError = 2,
    /// No common algorithm, or the exchange failed.
    KeyExchangeFailed = 3,
    /// A tag was wrong.
    MacError = 5,
    /// Compressed bytes that cannot be read.
    CompressionError = 6,
    /// A service that we don't have.
    ServiceNotAvailable = 7,
    /// A version of the protocol that we don't speak.
    VersionNotSupported = 8,
    /// The host key is not the expected one.
    HostKeyNotVerifiable = 9,
    /// The connection is lost or given up.
    ConnectionLost = 10,
    /// Nothing went wrong.
    ByApplication = 11,
    /// Too many connections.
    TooManyConnections = 12,
    /// The user has given up.
    CancelledByUser = 13,
    /// No further method of authentication.
    NoMoreAuthMethods = 14,
    /// A name that no user can have.
    IllegalUserName = 15,
}

impl SshError {
    /// The reason the peer is told; `None` when it is the peer that left.
    #[must_use]
    pub const fn disconnect(&self) -> Option<Disconnect> {
        match self {
            Self::Malformed(_) | Self::TooMuch { .. } | Self::Unexpected(_) | Self::Policy(_) => {
                Some(Disconnect::ProtocolError)
            }
            Self::BadTag => Some(Disconnect::MacError),
            Self::NoCommon { .. } | Self::Kex(_) | Self::Crypto(_) => {
                Some(Disconnect::KeyExchangeFailed)
            }
            Self::Disconnected { .. } => None,
        }
    }
}
