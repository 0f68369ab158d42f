//! A key as sent on the wire: plain, or with its certificate.

use super::certificate::Certificate;
use super::error::KeyError;
use super::public_key::PublicKey;
use crate::algorithm::KeyAlgorithm;
use crate::wire::MessageReader;

/// Maximum length of the blob of a key or certificate, in bytes.
pub const MAX_KEY_BLOB: usize = 65_536;

/// A plain key, or a certificate with its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnyKey {
    /// A plain key.
    Plain(PublicKey),
    /// A certificate. Only its format was checked.
    Certificate(Box<Certificate>),
}

impl AnyKey {
    /// Parses a blob of either type.
    ///
    /// # Errors
    /// The errors of [`PublicKey::parse`] and [`Certificate::parse`]; [`KeyError::TooMuch`] if the
    /// blob is longer than [`MAX_KEY_BLOB`].
    pub fn parse(blob: &[u8]) -> Result<Self, KeyError> {
        if blob.len() > MAX_KEY_BLOB {
            return Err(KeyError::TooMuch {
                what: "length of a key",
                limit: MAX_KEY_BLOB,
            });
        }
        let name = MessageReader::new(blob, "public key").read_text()?;
        if name.ends_with("-cert-v01@openssh.com") {
            Certificate::parse(blob).map(|c| Self::Certificate(Box::new(c)))
        } else {
            PublicKey::parse(blob).map(Self::Plain)
        }
    }

    /// Parses a blob for use with `algorithm`.
    ///
    /// # Errors
    /// The errors of [`AnyKey::parse`]; [`KeyError::WrongAlgorithm`] if the key does not support
    /// it.
    pub fn parse_for(algorithm: KeyAlgorithm, blob: &[u8]) -> Result<Self, KeyError> {
        let key = Self::parse(blob)?;
        if key.algorithms().contains(&algorithm) {
            Ok(key)
        } else {
            Err(KeyError::WrongAlgorithm)
        }
    }

    /// Returns the key; for a certificate, the key in it.
    #[must_use]
    pub fn key(&self) -> &PublicKey {
        match self {
            Self::Plain(key) => key,
            Self::Certificate(certificate) => certificate.key(),
        }
    }

    /// Returns the certificate, if it is one.
    #[must_use]
    pub fn certificate(&self) -> Option<&Certificate> {
        match self {
            Self::Plain(_) => None,
            Self::Certificate(certificate) => Some(certificate),
        }
    }

    /// Returns the supported algorithms, most preferred first.
    #[must_use]
    pub fn algorithms(&self) -> Vec<KeyAlgorithm> {
        match self {
            Self::Plain(key) => key.algorithms().to_vec(),
            Self::Certificate(certificate) => certificate.algorithms(),
        }
    }

    /// Returns the blob.
    #[must_use]
    pub fn to_blob(&self) -> Vec<u8> {
        match self {
            Self::Plain(key) => key.to_blob(),
            Self::Certificate(certificate) => certificate.blob().to_vec(),
        }
    }
}

/// Verifies that the key of `blob`, plain or in a certificate, made `signature` of `data` with
/// `algorithm`. A client verifies a host's signature of the exchange with it. It does not check to
/// whom the key belongs.
///
/// # Errors
/// The errors of [`AnyKey::parse_for`] and [`PublicKey::verify_with`].
pub fn verify_with_blob(
    rsa_min_bits: usize,
    algorithm: KeyAlgorithm,
    blob: &[u8],
    data: &[u8],
    signature: &[u8],
) -> Result<AnyKey, KeyError> {
    let key = AnyKey::parse_for(algorithm, blob)?;
    key.key()
        .verify_with(rsa_min_bits, algorithm, data, signature)?;
    Ok(key)
}
