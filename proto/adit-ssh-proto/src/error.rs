//! Errors that end a connection, and the reason codes sent in DISCONNECT.

/// Error that ends a connection. Everything that a peer can cause is here; nothing is retried.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SshError {
    /// A message does not have the form that its number requires.
    #[error("malformed {0}")]
    Malformed(&'static str),
    /// A length, a count or a window exceeds its limit.
    #[error("{what} exceeds the limit of {limit}")]
    TooMuch {
        /// Name of the quantity.
        what: &'static str,
        /// Its limit, in bytes or as a count.
        limit: usize,
    },
    /// A message arrived in a state that does not allow it.
    #[error("unexpected message {0} in this state")]
    Unexpected(u8),
    /// A packet's tag is wrong: the bytes were altered, or the keys differ.
    #[error("packet authentication failed: wrong tag")]
    BadTag,
    /// The two sides have no algorithm in common.
    #[error("no common {what}: we offer {ours}; the peer offers {theirs}")]
    NoCommon {
        /// Name of the list, such as `cipher (client to server)`.
        what: &'static str,
        /// Local names, separated by commas.
        ours: String,
        /// The peer's names, separated by commas, printable characters only.
        theirs: String,
    },
    /// The key exchange failed: a point, a key or a signature is not valid.
    #[error("key exchange failed: {0}")]
    Kex(&'static str),
    /// The policy forbids what the peer requested, or the peer itself.
    #[error("refused: {0}")]
    Policy(&'static str),
    /// The peer ended the connection.
    #[error("the peer disconnected (reason {reason}): {text}")]
    Disconnected {
        /// Reason code (RFC 4253 section 11.1).
        reason: u32,
        /// The peer's description, printable characters only.
        text: String,
    },
    /// The local random source or cryptography failed.
    #[error("cryptography failed: {0}")]
    Crypto(&'static str),
}

/// Reason codes of DISCONNECT (RFC 4253 section 11.1) that adit sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Disconnect {
    /// The peer's host may not connect.
    HostNotAllowed = 1,
    /// The peer violated the protocol.
    ProtocolError = 2,
    /// No algorithm in common, or the exchange failed.
    KeyExchangeFailed = 3,
    /// A tag was wrong.
    MacError = 5,
    /// Compressed data could not be decompressed.
    CompressionError = 6,
    /// The requested service is not available.
    ServiceNotAvailable = 7,
    /// The peer's protocol version is not supported.
    VersionNotSupported = 8,
    /// The host key is not the expected one.
    HostKeyNotVerifiable = 9,
    /// The connection was lost or abandoned.
    ConnectionLost = 10,
    /// The application ended the connection normally.
    ByApplication = 11,
    /// Too many connections.
    TooManyConnections = 12,
    /// The user cancelled.
    CancelledByUser = 13,
    /// No authentication method is left.
    NoMoreAuthMethods = 14,
    /// The user name is not valid.
    IllegalUserName = 15,
}

impl SshError {
    /// Returns the reason code to send to the peer; `None` if the peer disconnected.
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
