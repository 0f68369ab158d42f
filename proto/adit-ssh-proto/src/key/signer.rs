//! Signers: local keys with or without certificates, alone or in a set.

use super::certificate::Certificate;
use super::error::KeyError;
use super::private_key::PrivateKey;
use crate::algorithm::KeyAlgorithm;
use crate::error::SshError;

/// A key that signs immediately. An agent is not one, because it has to be asked: there, send the
/// data with [`super::agent`] and receive the signature later.
pub trait Signer: Send + Sync {
    /// Returns the supported algorithms, most preferred first.
    fn algorithms(&self) -> Vec<KeyAlgorithm>;

    /// Returns the blob of the key or certificate for an algorithm; empty if it is not supported.
    fn public_blob(&self, algorithm: KeyAlgorithm) -> Vec<u8>;

    /// Signs `data`; returns the signature with its algorithm name.
    ///
    /// # Errors
    /// [`SshError`] if the algorithm is not supported, or if the provider fails.
    fn sign_data(&self, algorithm: KeyAlgorithm, data: &[u8]) -> Result<Vec<u8>, SshError>;

    /// Returns the blobs of all plain keys without duplicates, which a host announces to its
    /// clients. It may contain several keys of the same type, the first of which [`Signer::public_blob`]
    /// returns.
    fn plain_blobs(&self) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        for algorithm in self.algorithms() {
            let blob = self.public_blob(algorithm);
            if !algorithm.is_certificate() && !all.contains(&blob) {
                all.push(blob);
            }
        }
        all
    }

    /// Signs `data` with the key of this blob.
    ///
    /// # Errors
    /// The errors of [`Signer::sign_data`]; also if there is no such key.
    fn sign_with_key(
        &self,
        blob: &[u8],
        algorithm: KeyAlgorithm,
        data: &[u8],
    ) -> Result<Vec<u8>, SshError> {
        if self.public_blob(algorithm) != blob {
            return Err(KeyError::WrongAlgorithm.into());
        }
        self.sign_data(algorithm, data)
    }
}

impl Signer for PrivateKey {
    fn algorithms(&self) -> Vec<KeyAlgorithm> {
        self.public_key().algorithms().to_vec()
    }

    fn public_blob(&self, algorithm: KeyAlgorithm) -> Vec<u8> {
        if self.public_key().algorithms().contains(&algorithm) {
            self.public_key().to_blob()
        } else {
            Vec::new()
        }
    }

    fn sign_data(&self, algorithm: KeyAlgorithm, data: &[u8]) -> Result<Vec<u8>, SshError> {
        if algorithm.is_certificate() {
            return Err(KeyError::WrongAlgorithm.into());
        }
        Ok(Self::sign(self, algorithm, data)?)
    }
}

/// A key with an optional certificate; it signs as both.
#[derive(Debug)]
pub struct CertifiedKey {
    key: PrivateKey,
    certificate: Option<Certificate>,
}

impl CertifiedKey {
    /// Combines a key with its certificate.
    ///
    /// # Errors
    /// [`KeyError::Malformed`] if the certificate belongs to another key.
    pub fn new(key: PrivateKey, certificate: Option<Certificate>) -> Result<Self, KeyError> {
        match &certificate {
            Some(certificate) if certificate.key() != key.public_key() => Err(KeyError::Malformed(
                "certificate: it belongs to another key",
            )),
            _ => Ok(Self { key, certificate }),
        }
    }

    /// Returns the key.
    #[must_use]
    pub const fn key(&self) -> &PrivateKey {
        &self.key
    }

    /// Returns the certificate.
    #[must_use]
    pub const fn certificate(&self) -> Option<&Certificate> {
        self.certificate.as_ref()
    }
}

impl Signer for CertifiedKey {
    fn algorithms(&self) -> Vec<KeyAlgorithm> {
        let certified = self.certificate.as_ref().map(Certificate::algorithms);
        let mut all = certified.unwrap_or_default();
        all.extend(self.key.public_key().algorithms());
        all
    }

    fn public_blob(&self, algorithm: KeyAlgorithm) -> Vec<u8> {
        match &self.certificate {
            Some(certificate) if certificate.algorithms().contains(&algorithm) => {
                certificate.blob().to_vec()
            }
            _ => self.key.public_blob(algorithm),
        }
    }

    fn sign_data(&self, algorithm: KeyAlgorithm, data: &[u8]) -> Result<Vec<u8>, SshError> {
        if !self.algorithms().contains(&algorithm) {
            return Err(KeyError::WrongAlgorithm.into());
        }
        Ok(self.key.sign(algorithm, data)?)
    }
}

/// A set of keys; for each algorithm, the first key that supports it is used, as for host keys.
#[derive(Debug, Default)]
pub struct KeySet(Vec<CertifiedKey>);

impl KeySet {
    /// Creates a set of these keys.
    #[must_use]
    pub const fn new(keys: Vec<CertifiedKey>) -> Self {
        Self(keys)
    }

    /// Iterates over the keys.
    pub fn iter(&self) -> impl Iterator<Item = &CertifiedKey> {
        self.0.iter()
    }

    fn key_for(&self, algorithm: KeyAlgorithm) -> Option<&CertifiedKey> {
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
        let any = |a: &KeyAlgorithm| self.key_for(*a).is_some();
        KeyAlgorithm::ALL.iter().copied().filter(any).collect()
    }

    fn public_blob(&self, algorithm: KeyAlgorithm) -> Vec<u8> {
        self.key_for(algorithm)
            .map_or_else(Vec::new, |key| key.public_blob(algorithm))
    }

    fn sign_data(&self, algorithm: KeyAlgorithm, data: &[u8]) -> Result<Vec<u8>, SshError> {
        let key = self.key_for(algorithm).ok_or(KeyError::WrongAlgorithm)?;
        Signer::sign_data(key, algorithm, data)
    }

    fn plain_blobs(&self) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        for blob in self.0.iter().map(|key| key.key.public_key().to_blob()) {
            if !all.contains(&blob) {
                all.push(blob);
            }
        }
        all
    }

    fn sign_with_key(
        &self,
        blob: &[u8],
        algorithm: KeyAlgorithm,
        data: &[u8],
    ) -> Result<Vec<u8>, SshError> {
        let key = self
            .0
            .iter()
            .find(|key| key.key.public_key().to_blob() == blob);
        let key = key.ok_or(KeyError::WrongAlgorithm)?;
        Signer::sign_data(&key.key, algorithm, data)
    }
}
