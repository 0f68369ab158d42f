//! A key or a certificate.

use adit_ssh_proto::algorithm::KeyAlgorithm;
use adit_ssh_proto::key::AnyKey;

use super::{Algorithm, Certificate, HashAlg, PrivateKeyWithHashAlg, PublicKey};

/// The host key or host certificate of a server.
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant, reason = "one per session")]
pub enum PublicKeyOrCertificate {
    /// A public key.
    PublicKey {
        /// The key.
        key: PublicKey,
        /// The hash of the signature, for RSA.
        hash_alg: Option<HashAlg>,
    },
    /// A certificate. Only its format and the server's possession of its key are checked.
    Certificate(Certificate),
}

impl PublicKeyOrCertificate {
    /// Returns the key, or that in the certificate.
    #[must_use]
    pub fn public_key(&self) -> PublicKey {
        match self {
            Self::PublicKey { key, .. } => key.clone(),
            Self::Certificate(certificate) => certificate.public_key().clone().into(),
        }
    }

    /// Returns the certificate, or `None` for a plain key.
    #[must_use]
    pub const fn certificate(&self) -> Option<&Certificate> {
        match self {
            Self::PublicKey { .. } => None,
            Self::Certificate(certificate) => Some(certificate),
        }
    }

    pub(crate) fn from_key(key: AnyKey, algorithm: KeyAlgorithm) -> Self {
        match key {
            AnyKey::Plain(key) => Self::PublicKey {
                key: key.into(),
                hash_alg: match Algorithm::from_key_algorithm(algorithm) {
                    Algorithm::Rsa { hash } => hash,
                    _ => None,
                },
            },
            AnyKey::Certificate(certificate) => Self::Certificate((*certificate).into()),
        }
    }
}

impl From<PublicKey> for PublicKeyOrCertificate {
    fn from(key: PublicKey) -> Self {
        Self::PublicKey {
            key,
            hash_alg: None,
        }
    }
}

impl From<Certificate> for PublicKeyOrCertificate {
    fn from(certificate: Certificate) -> Self {
        Self::Certificate(certificate)
    }
}

impl From<&PrivateKeyWithHashAlg> for PublicKeyOrCertificate {
    fn from(key: &PrivateKeyWithHashAlg) -> Self {
        Self::PublicKey {
            key: key.public_key().clone(),
            hash_alg: key.hash_alg(),
        }
    }
}
