//! Errors of keys, signatures and lines of key files.

use std::sync::Arc;

use adit_crypto::CryptoError;

use crate::error::SshError;

/// Error of reading a key, signing, or verifying a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The bytes do not have the required form.
    #[error("malformed {0}")]
    Malformed(&'static str),
    /// The type of the key or file is not supported.
    #[error("{0} is not supported")]
    Unsupported(&'static str),
    /// A count or a length exceeds its limit.
    #[error("{what} exceeds the limit of {limit}")]
    TooMuch {
        /// Name of the quantity.
        what: &'static str,
        /// Its limit.
        limit: usize,
    },
    /// The file requires a passphrase, and none was passed.
    #[error("the key file is encrypted: a passphrase is required")]
    Encrypted,
    /// The passphrase does not decrypt the file.
    #[error("the passphrase is wrong")]
    WrongPassphrase,
    /// The key does not support this algorithm, or the signature was made with another one.
    #[error("the key does not support this algorithm")]
    WrongAlgorithm,
    /// The modulus of an RSA key is shorter than the policy requires.
    #[error("the RSA key has {bits} bits; at least {least} are required")]
    ShortRsa {
        /// Size of the modulus, in bits.
        bits: usize,
        /// Required size, in bits.
        least: usize,
    },
    /// The signature was not made by the key.
    #[error("the signature is wrong")]
    BadSignature,
    /// The cryptography provider failed.
    #[error("cryptography failed")]
    Crypto,
}

impl From<SshError> for KeyError {
    fn from(why: SshError) -> Self {
        match why {
            SshError::Malformed(what) => Self::Malformed(what),
            SshError::TooMuch { what, limit } => Self::TooMuch { what, limit },
            _ => Self::Malformed("key"),
        }
    }
}

impl From<CryptoError> for KeyError {
    fn from(why: CryptoError) -> Self {
        match why {
            CryptoError::Unauthentic => Self::BadSignature,
            CryptoError::InvalidKey => Self::Malformed("key"),
            _ => Self::Crypto,
        }
    }
}

impl From<KeyError> for SshError {
    fn from(why: KeyError) -> Self {
        match why {
            KeyError::Malformed(what) => Self::Malformed(what),
            KeyError::TooMuch { what, limit } => Self::TooMuch { what, limit },
            KeyError::Unsupported(what) => Self::Policy(what),
            KeyError::Encrypted | KeyError::WrongPassphrase => {
                Self::Policy("the key file cannot be decrypted")
            }
            KeyError::WrongAlgorithm => {
                Self::Kex("the signature's algorithm does not match the key")
            }
            KeyError::ShortRsa { .. } => Self::Policy("the RSA key is too short"),
            KeyError::BadSignature => Self::Kex("the signature is wrong"),
            KeyError::Crypto => Self::Crypto("creating or verifying a signature failed"),
        }
    }
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinePosition {
    /// File name, as passed by the caller.
    pub file: Arc<str>,
    /// Line number, starting at 1.
    pub line: usize,
}

impl core::fmt::Display for LinePosition {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A line that was skipped, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedLine {
    /// Position of the line.
    pub place: LinePosition,
    /// Reason.
    pub why: &'static str,
}

impl core::fmt::Display for SkippedLine {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}: {}", self.place, self.why)
    }
}
