//! Who signs: local keys, with or without certificates, alone or as a set.

use super::certificate::Certificate;
use super::error::KeyError;
use super::private::PrivateKey;
use crate::algorithm::KeyAlgorithm;
use crate::error::SshError;

/// Something that signs at once. An agent, which has to be asked, is not one: there the data goes
/// out with [`super::agent`] and the signature comes back later.
pub trait Signer: Send + Sync {
    /// The algorithms, the best first.
    fn algorithms(&self) -> Vec<KeyAlgorithm>;

    /// The key's blob, or the certificate's, for one of the algorithms; empty for others.
    fn blob(&self, algorithm: KeyAlgorithm) -> Vec<u8>;

    /// The signature of `data` with its name.
    ///
    /// # Errors
    /// [`SshError`] for an algorithm that is not one of these, and if the provider fails.
    fn sign(&self, algorithm: KeyAlgorithm, data: &[u8]) -> Result<Vec<u8>, SshError>;

    /// The blobs of all plain keys, each once: what a host tells its clients. More than one may be
    /// of the same kind, of which [`Signer::blob`] knows the first.
    fn blobs(&self) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        for algorithm in self.algorithms() {
            let blob = self.blob(algorithm);
            if !algorithm.is_certificate() && !all.contains(&blob) {
                all.push(blob);
            }
        }
        all
    }

    /// The signature of `data` by the key of this blob.
    ///
    /// # Errors
    /// As [`Signer::sign`], and for a key that is not there.
    fn sign_by(
        &self,
        blob: &[u8],
        algorithm: KeyAlgorithm,
        data: &[u8],
    ) -> Result<Vec<u8>, SshError> {
        if self.blob(algorithm) != blob {
            return Err(KeyError::WrongAlgorithm.into());
        }
        self.sign(algorithm, data)
    }
}

impl Signer for PrivateKey {
    fn algorithms(&self) -> Vec<KeyAlgorithm> {
        self.public().algorithms().to_vec()
    }

    fn blob(&self, algorithm: KeyAlgorithm) -> Vec<u8> {
        if self.public().algorithms().contains(&algorithm) {
            self.public().to_blob()
        } else {
            Vec::new()
        }
    }

    fn sign(&self, algorithm: KeyAlgorithm, data: &[u8]) -> Result<Vec<u8>, SshError> {
        if algorithm.is_certificate() {
            return Err(KeyError::WrongAlgorithm.into());
        }
        Ok(Self::sign(self, algorithm, data)?)
    }
}

/// A key with its certificate, if it has one; it then signs as both.
#[derive(Debug)]
pub struct CertifiedKey {
    key: PrivateKey,
    certificate: Option<Certificate>,
}

impl CertifiedKey {
    /// # Errors
    /// [`KeyError::Malformed`] if the certificate is another key's.
    pub fn new(key: PrivateKey, certificate: Option<Certificate>) -> Result<Self, KeyError> {
        match &certificate {
            Some(certificate) if certificate.key() != key.public() => {
                Err(KeyError::Malformed("certificate: it is another key's"))
            }
            _ => Ok(Self { key, certificate }),
        }
    }

    /// The key.
    #[must_use]
    pub const fn key(&self) -> &PrivateKey {
        &self.key
    }

    /// The certificate.
    #[must_use]
    pub const fn certificate(&self) -> Option<&Certificate> {
        self.certificate.as_ref()
    }
}

impl Signer for CertifiedKey {
    fn algorithms(&self) -> Vec<KeyAlgorithm> {
        let certified = self.certificate.as_ref().map(Certificate::algorithms);
        let mut all = certified.unwrap_or_default();
        all.extend(self.key.public().algorithms());
        all
    }

    fn blob(&self, algorithm: KeyAlgorithm) -> Vec<u8> {
        match &self.certificate {
            Some(certificate) if certificate.algorithms().contains(&algorithm) => {
                certificate.blob().to_vec()
            }
            _ => self.key.blob(algorithm),
        }
    }

    fn sign(&self, algorithm: KeyAlgorithm, data: &[u8]) -> Result<Vec<u8>, SshError> {
        if !self.algorithms().contains(&algorithm) {
            return Err(KeyError::WrongAlgorithm.into());
        }
        Ok(self.key.sign(algorithm, data)?)
    }
}

/// Keys of which each algorithm is taken from the first that has it, as a host has them.
#[derive(Debug, Default)]
pub struct KeySet(Vec<CertifiedKey>);

impl KeySet {
    /// The set of these.
    #[must_use]
    pub const fn new(keys: Vec<CertifiedKey>) -> Self {
        Self(keys)
    }

    /// The keys.
    pub fn iter(&self) -> impl Iterator<Item = &CertifiedKey> {
        self.0.iter()
    }

    fn with(&self, algorithm: KeyAlgorithm) -> Option<&CertifiedKey> {
        self.0.iter().find(|k| k.algorithms().contains(&algorithm))
    }
}

impl From<Vec<PrivateKey>> for KeySet {
    fn from(keys: Vec<PrivateKey>) -> Self {
        let plain = |key| CertifiedKey {
            key,
            certificate: None,
        };
        Self(keys.into_iter().map(plain).collect())
    }
}

impl Signer for KeySet {
    fn algorithms(&self) -> Vec<KeyAlgorithm> {
        let any = |a: &KeyAlgorithm| self.with(*a).is_some();
        KeyAlgorithm::ALL.iter().copied().filter(any).collect()
    }

    fn blob(&self, algorithm: KeyAlgorithm) -> Vec<u8> {
        self.with(algorithm)
            .map_or_else(Vec::new, |key| key.blob(algorithm))
    }

    fn sign(&self, algorithm: KeyAlgorithm, data: &[u8]) -> Result<Vec<u8>, SshError> {
        let key = self.with(algorithm).ok_or(KeyError::WrongAlgorithm)?;
        Signer::sign(key, algorithm, data)
    }

    fn blobs(&self) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        for blob in self.0.iter().map(|key| key.key.public().to_blob()) {
            if !all.contains(&blob) {
                all.push(blob);
            }
        }
        all
    }

    fn sign_by(
        &self,
        blob: &[u8],
        algorithm: KeyAlgorithm,
        data: &[u8],
    ) -> Result<Vec<u8>, SshError> {
        let key = self.0.iter().find(|key| key.key.public().to_blob() == blob);
        let key = key.ok_or(KeyError::WrongAlgorithm)?;
        Signer::sign(&key.key, algorithm, data)
    }
}
