//! What a protocol core reports when the bytes cannot be right.

/// Why a peer's bytes were refused.
///
/// The core does not know whether the peer is our client or our upstream; the engine does, and
/// turns this into the party at fault. Variants are named by what the caller can do about them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Broken {
    /// The stream ended inside a message or a record.
    #[error("the stream ended in the middle of {0}")]
    Truncated(&'static str),
    /// A field has a value the protocol does not allow.
    #[error("malformed {0}")]
    Malformed(&'static str),
    /// A length field is beyond the protocol's or our limit.
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
    /// An authentic message that was seen before.
    #[error("replayed message")]
    Replayed,
    /// An authentic message whose timestamp is out of the window.
    #[error("the peer's clock differs by {skew} s")]
    Clock {
        /// Peer's clock minus ours, in seconds, saturated.
        skew: i64,
    },
    /// The peer answered with a refusal.
    #[error("refused by the peer: {0}")]
    Refused(&'static str),
    /// A counter is used up; the session must end.
    #[error("{0} is exhausted")]
    Exhausted(&'static str),
    /// The caller gave less room than [`crate::Room`] asks for.
    #[error("no room for {0}")]
    NoRoom(&'static str),
}
