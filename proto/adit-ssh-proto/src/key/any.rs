//! A key as it comes over the wire: plain, or with its certificate.

use super::certificate::Certificate;
use super::error::KeyError;
use super::public::PublicKey;
use crate::algorithm::KeyAlgorithm;
use crate::wire::Reader;

/// The longest blob of a key or a certificate, octets.
pub const MAX_KEY_BLOB: usize = 65_536;

/// A key, or a certificate with the key in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnyKey {
    /// A key.
    Plain(PublicKey),
    /// A certificate. Nothing of it is checked but its form.
    Certificate(Box<Certificate>),
}

impl AnyKey {
    /// Reads a blob of either kind.
    ///
    /// # Errors
    /// See [`PublicKey::parse`] and [`Certificate::parse`]; [`KeyError::TooMuch`] above
    /// [`MAX_KEY_BLOB`].
    pub fn parse(blob: &[u8]) -> Result<Self, KeyError> {
        if blob.len() > MAX_KEY_BLOB {
            return Err(KeyError::TooMuch {
                what: "a key",
                limit: MAX_KEY_BLOB,
            });
        }
        let name = Reader::new(blob, "public key").text()?;
        if name.ends_with("-cert-v01@openssh.com") {
            Certificate::parse(blob).map(|c| Self::Certificate(Box::new(c)))
        } else {
            PublicKey::parse(blob).map(Self::Plain)
        }
    }

    /// Reads a blob that is to be used with `algorithm`.
    ///
    /// # Errors
    /// See [`AnyKey::parse`]; [`KeyError::WrongAlgorithm`] if the two don't go together.
    pub fn parse_for(algorithm: KeyAlgorithm, blob: &[u8]) -> Result<Self, KeyError> {
        let key = Self::parse(blob)?;
        if key.algorithms().contains(&algorithm) {
            Ok(key)
        } else {
            Err(KeyError::WrongAlgorithm)
        }
    }

    /// The key, which for a certificate is the one inside.
    #[must_use]
    pub fn key(&self) -> &PublicKey {
        match self {
            Self::Plain(key) => key,
            Self::Certificate(certificate) => certificate.key(),
        }
    }

    /// The certificate, if it is one.
    #[must_use]
    pub fn certificate(&self) -> Option<&Certificate> {
        match self {
            Self::Plain(_) => None,
            Self::Certificate(certificate) => Some(certificate),
        }
    }

    /// The algorithms it is used with, the best first.
    #[must_use]
    pub fn algorithms(&self) -> Vec<KeyAlgorithm> {
        match self {
            Self::Plain(key) => key.algorithms().to_vec(),
            Self::Certificate(certificate) => certificate.algorithms(),
        }
    }

    /// The blob.
    #[must_use]
    pub fn to_blob(&self) -> Vec<u8> {
        match self {
            Self::Plain(key) => key.to_blob(),
            Self::Certificate(certificate) => certificate.blob().to_vec(),
        }
    }
}

/// Checks that the key of `blob`, in a certificate or not, made `signature` of `data` with
/// `algorithm`: what a client does with a host's signature over the exchange. Whose key it is, is
/// another question.
///
/// # Errors
/// See [`AnyKey::parse_for`] and [`PublicKey::verify_with`].
pub fn verify_blob(
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
