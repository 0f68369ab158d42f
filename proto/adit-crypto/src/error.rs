//! The error type of the primitives.

use adit_wire::ProtocolError;

/// The reason why an operation failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CryptoError {
    /// The key has the wrong length.
    #[error("the key has {found} bytes, but {expected} are required")]
    KeyLength {
        /// Required length, in bytes.
        expected: usize,
        /// Actual length, in bytes.
        found: usize,
    },
    /// The nonce has the wrong length.
    #[error("the nonce has {found} bytes, but {expected} are required")]
    NonceLength {
        /// Required length, in bytes.
        expected: usize,
        /// Actual length, in bytes.
        found: usize,
    },
    /// The tag does not match the message.
    #[error("authentication failed")]
    Unauthentic,
    /// A message or an output is longer than the primitive allows.
    #[error("the message is longer than the primitive allows")]
    TooLong,
    /// The packet lacks the space that sealing it needs.
    #[error("not enough space around the packet")]
    NoRoom,
    /// The data does not consist of whole blocks.
    #[error("the message does not consist of whole blocks")]
    PartialBlock,
    /// No cipher has this name.
    #[error("no cipher has this name")]
    UnknownCipher,
    /// Every nonce of a key has been used.
    #[error("every nonce of this key has been used")]
    Exhausted,
    /// The numbers are not a key of the algorithm, or a key of an unsupported size; or a peer's public
    /// value or ciphertext is invalid.
    #[error("not a valid key")]
    InvalidKey,
    /// The provider of an algorithm failed, for example for lack of memory or randomness.
    #[error("the provider of the algorithm failed")]
    Provider,
}

impl From<CryptoError> for ProtocolError {
    fn from(why: CryptoError) -> Self {
        match why {
            CryptoError::Exhausted => Self::Exhausted("the nonce counter"),
            CryptoError::TooLong | CryptoError::PartialBlock => Self::Malformed("message length"),
            CryptoError::UnknownCipher => Self::Malformed("cipher name"),
            CryptoError::KeyLength { .. } | CryptoError::NonceLength { .. } => {
                Self::Malformed("key or nonce length")
            }
            CryptoError::NoRoom => Self::NoRoom("a packet's nonce and tag"),
            CryptoError::InvalidKey => Self::Malformed("key"),
            CryptoError::Provider => Self::Exhausted("the provider of an algorithm"),
            CryptoError::Unauthentic => Self::Unauthentic,
        }
    }
}
