//! What can go wrong with a primitive.

use adit_wire::Broken;

/// Why an operation was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CryptoError {
    /// A key of the wrong length.
    #[error("a key of {found} bytes where {expected} are needed")]
    KeyLength {
        /// Bytes the primitive takes.
        expected: usize,
        /// Bytes given.
        found: usize,
    },
    /// A nonce of the wrong length.
    #[error("a nonce of {found} bytes where {expected} are needed")]
    NonceLength {
        /// Bytes the primitive takes.
        expected: usize,
        /// Bytes given.
        found: usize,
    },
    /// The tag does not fit the message.
    #[error("authentication failed")]
    Unauthentic,
    /// A message or an output beyond what the primitive allows.
    #[error("the message is longer than the primitive allows")]
    TooLong,
    /// A packet without the room that its sealing needs.
    #[error("no room around the packet")]
    NoRoom,
    /// Data that should have been whole blocks.
    #[error("the message does not consist of whole blocks")]
    PartialBlock,
    /// A name that no cipher has.
    #[error("no cipher has this name")]
    UnknownCipher,
    /// Every nonce of a key has been used.
    #[error("every nonce of this key has been used")]
    Exhausted,
}

impl From<CryptoError> for Broken {
    fn from(why: CryptoError) -> Self {
        match why {
            CryptoError::Exhausted => Self::Exhausted("the nonce counter"),
            CryptoError::TooLong | CryptoError::PartialBlock => Self::Malformed("message length"),
            CryptoError::UnknownCipher => Self::Malformed("cipher name"),
            CryptoError::KeyLength { .. } | CryptoError::NonceLength { .. } => {
                Self::Malformed("key or nonce length")
            }
            CryptoError::NoRoom => Self::NoRoom("a packet's nonce and tag"),
            CryptoError::Unauthentic => Self::Unauthentic,
        }
    }
}
