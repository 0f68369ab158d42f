//! Private keys.

use std::fmt;
use std::sync::Arc;

use adit_crypto::Secret;
use adit_net::system::ThreadRng;
use adit_ssh_proto::key::{Encryption, KeyType, PrivateKey as Below};
use adit_wire::Entropy;
use rand_core::CryptoRng;

use super::algorithm::{Algorithm, HashAlg};
use super::error::SshKeyError;
use super::public::{Fingerprint, PublicKey};

/// Size of a new RSA key, in bits.
const RSA_BITS: usize = 4096;
/// Rounds of a key file's KDF, as in OpenSSH.
const KDF_ROUNDS: u32 = 24;

/// A private key. Clones share the key, which is erased when the last one is dropped.
#[derive(Clone)]
pub struct PrivateKey {
    key: Arc<Below>,
    public: PublicKey,
}

impl PrivateKey {
    fn from_inner(key: Below) -> Self {
        let mut public = PublicKey::from(key.public_key().clone());
        public.set_comment(key.comment());
        Self {
            key: Arc::new(key),
            public,
        }
    }

    /// Generates a key. RSA keys have 4096 bits, use the crypto provider's random numbers, and take a
    /// while.
    ///
    /// # Errors
    /// Keys in security tokens cannot be generated; or the provider failed.
    pub fn random<R: CryptoRng + ?Sized>(
        rng: &mut R,
        algorithm: Algorithm,
    ) -> Result<Self, SshKeyError> {
        let kind = match algorithm {
            Algorithm::Ed25519 => KeyType::Ed25519,
            Algorithm::Ecdsa { curve } => KeyType::Ecdsa(curve.to_ec_curve()),
            Algorithm::Rsa { .. } => KeyType::Rsa { bits: RSA_BITS },
            Algorithm::SkEcdsaSha2NistP256 | Algorithm::SkEd25519 => {
                return Err(SshKeyError::UnknownAlgorithm);
            }
        };
        Ok(Self::from_inner(Below::generate(
            kind,
            &mut CryptoRngAdapter(rng),
        )?))
    }

    /// Parses the text of an unencrypted key file.
    ///
    /// # Errors
    /// The text is not a key file, or it is encrypted.
    pub fn from_openssh(text: impl AsRef<str>) -> Result<Self, SshKeyError> {
        Self::read_key(text.as_ref(), None)
    }

    pub(super) fn read_key(text: &str, passphrase: Option<&str>) -> Result<Self, SshKeyError> {
        let key = Below::from_text(text, passphrase.map(str::as_bytes))?;
        Ok(Self::from_inner(key))
    }

    /// Returns the text of an OpenSSH key file, encrypted if there is a passphrase.
    ///
    /// # Errors
    /// The passphrase is empty.
    pub fn to_openssh(&self, passphrase: Option<&str>) -> Result<Secret<String>, SshKeyError> {
        let encryption = passphrase.map(|passphrase| Encryption {
            passphrase: passphrase.as_bytes(),
            rounds: KDF_ROUNDS,
        });
        Ok(self.key.to_openssh(encryption, &mut ThreadRng)?)
    }

    /// Returns the public key.
    #[must_use]
    pub const fn public_key(&self) -> &PublicKey {
        &self.public
    }

    /// Returns the key's algorithm.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.public.algorithm()
    }

    /// Returns the comment.
    #[must_use]
    pub fn comment(&self) -> &str {
        self.public.comment()
    }

    /// Returns the fingerprint of the public key.
    #[must_use]
    pub fn fingerprint(&self, hash: HashAlg) -> Fingerprint {
        self.public.fingerprint(hash)
    }

    pub(crate) const fn inner(&self) -> &Arc<Below> {
        &self.key
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PrivateKey").field(&self.public).finish()
    }
}

impl From<&PrivateKey> for PublicKey {
    fn from(key: &PrivateKey) -> Self {
        key.public.clone()
    }
}

/// A generator of `rand`, for adit's cores.
struct CryptoRngAdapter<'a, R: ?Sized>(&'a mut R);

impl<R: CryptoRng + ?Sized> Entropy for CryptoRngAdapter<'_, R> {
    fn fill(&mut self, out: &mut [u8]) {
        self.0.fill_bytes(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::EcdsaCurve;

    #[test]
    fn keys_come_back_from_their_files() {
        let curve = EcdsaCurve::NistP384;
        for algorithm in [Algorithm::Ed25519, Algorithm::Ecdsa { curve }] {
            let key = PrivateKey::random(&mut rand::rng(), algorithm).unwrap();
            assert_eq!(key.algorithm(), algorithm);
            let plain = key.to_openssh(None).unwrap();
            let read = PrivateKey::from_openssh(plain.expose()).unwrap();
            assert_eq!(read.public_key(), key.public_key());
            let other = PrivateKey::random(&mut rand::rng(), algorithm).unwrap();
            assert_ne!(other.public_key(), key.public_key());
        }
        let shown = format!(
            "{:?}",
            PrivateKey::random(&mut rand::rng(), Algorithm::Ed25519)
        );
        assert!(!shown.contains("Ed25519Key"), "{shown}");
        assert!(PrivateKey::random(&mut rand::rng(), Algorithm::SkEd25519).is_err());
    }
}
