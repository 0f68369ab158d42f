//! What is wrong with a key, a signature, or a line of a file.

use std::sync::Arc;

use adit_crypto::CryptoError;

use crate::error::SshError;

/// Why a key cannot be read, does not sign, or a signature is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// Bytes that are not what they should be.
    #[error("malformed {0}")]
    Malformed(&'static str),
    /// A key or a file of a kind that is not known here.
    #[error("{0} is not supported")]
    Unsupported(&'static str),
    /// A count or a length above its bound.
    #[error("{what} is above {limit}")]
    TooMuch {
        /// What was too much.
        what: &'static str,
        /// Its bound.
        limit: usize,
    },
    /// The file needs a passphrase, and none was given.
    #[error("the key file is encrypted: a passphrase is needed")]
    Encrypted,
    /// The passphrase does not open the file.
    #[error("the passphrase is wrong")]
    WrongPassphrase,
    /// The key cannot sign with this algorithm, or the signature names another.
    #[error("the algorithm is not one of this key")]
    WrongAlgorithm,
    /// The modulus of an RSA key is shorter than the policy wants.
    #[error("an RSA key of {bits} bits, where at least {least} are wanted")]
    ShortRsa {
        /// Bits of the modulus.
        bits: usize,
        /// What the policy wants.
        least: usize,
    },
    /// The signature is not the key's.
    #[error("the signature is wrong")]
    BadSignature,
    /// The algorithm's provider failed.
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
                Self::Policy("a key file that cannot be opened")
            }
            KeyError::WrongAlgorithm => Self::Kex("the signature's algorithm is not the key's"),
            KeyError::ShortRsa { .. } => Self::Policy("the RSA key is too short"),
            KeyError::BadSignature => Self::Kex("the signature is wrong"),
            KeyError::Crypto => Self::Crypto("a signature could not be made or checked"),
        }
    }
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file, as the caller named it.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: usize,
}

impl core::fmt::Display for Place {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A line that was left out, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub place: Place,
    /// Why.
    pub why: &'static str,
}

impl core::fmt::Display for Problem {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}: {}", self.place, self.why)
    }
}
