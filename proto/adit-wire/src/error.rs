//! The error type of the protocol cores.

/// The reason why a peer's bytes were refused.
///
/// A core does not know whether the peer is adit's client or its server; the engine does, and derives the
/// side at fault. Variants are named by what the caller can do about them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// The stream ended inside a message or a record.
    #[error("the stream ended in the middle of {0}")]
    Truncated(&'static str),
    /// A field has a value that the protocol does not allow.
    #[error("malformed {0}")]
    Malformed(&'static str),
    /// A length field exceeds the limit of the protocol or of adit.
    #[error("{what} is longer than {limit} bytes")]
    TooLong {
        /// The field.
        what: &'static str,
        /// The limit in bytes.
        limit: usize,
    },
    /// A tag or a MAC did not verify: wrong key, wrong method or altered bytes.
    #[error("authentication failed: wrong key, wrong method or altered bytes")]
    Unauthentic,
    /// An authentic message was seen before.
    #[error("replayed message")]
    Replayed,
    /// The session of an authentic message is served by the process that this one succeeds.
    #[error("a session that another process serves")]
    Elsewhere,
    /// The timestamp of an authentic message is outside the accepted window.
    #[error("the peer's clock differs by {skew} s")]
    Clock {
        /// The peer's clock minus the local clock, in seconds, saturated.
        skew: i64,
    },
    /// The peer refused the request.
    #[error("refused by the peer: {0}")]
    Refused(&'static str),
    /// A counter is exhausted; the session must end.
    #[error("{0} is exhausted")]
    Exhausted(&'static str),
    /// The buffer has less space than [`crate::Overhead`] requires.
    #[error("not enough space for {0}")]
    NoRoom(&'static str),
}
