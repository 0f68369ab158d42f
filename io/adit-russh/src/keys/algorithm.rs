//! Key algorithms.

use std::fmt;
use std::str::FromStr;

use adit_crypto::NistCurve;
use adit_ssh_proto::algorithm::KeyAlgorithm;
use adit_ssh_proto::key::PublicKey;

use super::error::SshKeyError;

/// An ECDSA curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EcdsaCurve {
    /// P-256.
    NistP256,
    /// P-384.
    NistP384,
    /// P-521.
    NistP521,
}

impl EcdsaCurve {
    pub(super) const fn to_ec_curve(self) -> NistCurve {
        match self {
            Self::NistP256 => NistCurve::P256,
            Self::NistP384 => NistCurve::P384,
            Self::NistP521 => NistCurve::P521,
        }
    }

    const fn from_ec_curve(curve: NistCurve) -> Self {
        match curve {
            NistCurve::P256 => Self::NistP256,
            NistCurve::P384 => Self::NistP384,
            NistCurve::P521 => Self::NistP521,
        }
    }
}

/// A hash function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum HashAlg {
    /// SHA-256.
    #[default]
    Sha256,
    /// SHA-512.
    Sha512,
}

/// A key or signature algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Algorithm {
    /// ECDSA.
    Ecdsa {
        /// The curve.
        curve: EcdsaCurve,
    },
    /// Ed25519.
    Ed25519,
    /// RSA.
    Rsa {
        /// The hash of signatures; `None` where there is no signature, as in a key. (In a signature
        /// `None` would mean SHA-1, which is neither created nor accepted.)
        hash: Option<HashAlg>,
    },
    /// ECDSA on P-256 in a security token.
    SkEcdsaSha2NistP256,
    /// Ed25519 in a security token.
    SkEd25519,
}

impl Algorithm {
    /// Returns the algorithm's name; for RSA without a hash that of the key type.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Rsa { hash: None } => "ssh-rsa",
            Self::Rsa {
                hash: Some(HashAlg::Sha256),
            } => "rsa-sha2-256",
            Self::Rsa {
                hash: Some(HashAlg::Sha512),
            } => "rsa-sha2-512",
            Self::Ed25519 => "ssh-ed25519",
            Self::Ecdsa { curve } => match curve {
                EcdsaCurve::NistP256 => "ecdsa-sha2-nistp256",
                EcdsaCurve::NistP384 => "ecdsa-sha2-nistp384",
                EcdsaCurve::NistP521 => "ecdsa-sha2-nistp521",
            },
            Self::SkEcdsaSha2NistP256 => "sk-ecdsa-sha2-nistp256@openssh.com",
            Self::SkEd25519 => "sk-ssh-ed25519@openssh.com",
        }
    }

    /// Returns true for RSA.
    #[must_use]
    pub const fn is_rsa(&self) -> bool {
        matches!(self, Self::Rsa { .. })
    }

    /// Returns the signature algorithm; `None` for RSA without a hash.
    pub(crate) fn signature_algorithm(&self) -> Option<KeyAlgorithm> {
        KeyAlgorithm::by_name(self.as_str())
    }

    /// Returns the algorithm's variant for certificates.
    pub(crate) fn certificate_algorithm(&self) -> Option<KeyAlgorithm> {
        let plain = self.signature_algorithm()?;
        let mut all = KeyAlgorithm::ALL.iter().copied();
        all.find(|a| a.is_certificate() && a.without_certificate() == plain)
    }

    /// Converts a signature algorithm, of a certificate or not.
    pub(crate) fn from_key_algorithm(algorithm: KeyAlgorithm) -> Self {
        match algorithm.without_certificate() {
            KeyAlgorithm::EcdsaP256 => Self::from_ecdsa_curve(EcdsaCurve::NistP256),
            KeyAlgorithm::EcdsaP384 => Self::from_ecdsa_curve(EcdsaCurve::NistP384),
            KeyAlgorithm::EcdsaP521 => Self::from_ecdsa_curve(EcdsaCurve::NistP521),
            KeyAlgorithm::SkEd25519 => Self::SkEd25519,
            KeyAlgorithm::SkEcdsaP256 => Self::SkEcdsaSha2NistP256,
            KeyAlgorithm::RsaSha512 => Self::Rsa {
                hash: Some(HashAlg::Sha512),
            },
            KeyAlgorithm::RsaSha256 => Self::Rsa {
                hash: Some(HashAlg::Sha256),
            },
            _ => Self::Ed25519,
        }
    }

    /// Returns the algorithm of a key.
    pub(super) fn from_key(key: &PublicKey) -> Self {
        match key {
            PublicKey::Ecdsa { curve, .. } => {
                Self::from_ecdsa_curve(EcdsaCurve::from_ec_curve(*curve))
            }
            PublicKey::Rsa(_) => Self::Rsa { hash: None },
            PublicKey::SkEd25519 { .. } => Self::SkEd25519,
            PublicKey::SkEcdsaP256 { .. } => Self::SkEcdsaSha2NistP256,
            _ => Self::Ed25519,
        }
    }

    const fn from_ecdsa_curve(curve: EcdsaCurve) -> Self {
        Self::Ecdsa { curve }
    }
}

impl AsRef<str> for Algorithm {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Algorithm {
    type Err = SshKeyError;

    fn from_str(name: &str) -> Result<Self, SshKeyError> {
        if name == "ssh-rsa" {
            return Ok(Self::Rsa { hash: None });
        }
        let known = KeyAlgorithm::by_name(name).filter(|a| !a.is_certificate());
        known
            .map(Self::from_key_algorithm)
            .ok_or(SshKeyError::UnknownAlgorithm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        for below in KeyAlgorithm::ALL.iter().filter(|a| !a.is_certificate()) {
            let algorithm = Algorithm::from_key_algorithm(*below);
            assert_eq!(algorithm.signature_algorithm(), Some(*below));
            assert_eq!(below.name().parse::<Algorithm>().unwrap(), algorithm);
        }
        let rsa = "ssh-rsa".parse::<Algorithm>().unwrap();
        assert!(rsa.is_rsa() && rsa.signature_algorithm().is_none());
        assert!("ssh-dss".parse::<Algorithm>().is_err());
    }
}
