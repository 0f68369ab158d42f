//! A private key with the hash of its signatures.

use std::ops::Deref;
use std::sync::Arc;

use super::{Algorithm, HashAlg, PrivateKey};

/// A private key and, for RSA, the hash of its signatures.
#[derive(Debug, Clone)]
pub struct PrivateKeyWithHashAlg {
    key: Arc<PrivateKey>,
    hash: Option<HashAlg>,
}

impl PrivateKeyWithHashAlg {
    /// Creates the pair. Keys other than RSA ignore the hash. An RSA key without one signs with a hash
    /// that the server accepts, SHA-512 first, and never with SHA-1.
    #[must_use]
    pub fn new(key: Arc<PrivateKey>, hash_alg: Option<HashAlg>) -> Self {
        let hash = hash_alg.filter(|_| key.algorithm().is_rsa());
        Self { key, hash }
    }

    /// Returns the algorithm of the signatures.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        match self.key.algorithm() {
            Algorithm::Rsa { .. } => Algorithm::Rsa { hash: self.hash },
            other => other,
        }
    }

    /// Returns the hash, for RSA only.
    #[must_use]
    pub const fn hash_alg(&self) -> Option<HashAlg> {
        self.hash
    }
}

impl Deref for PrivateKeyWithHashAlg {
    type Target = PrivateKey;

    fn deref(&self) -> &PrivateKey {
        &self.key
    }
}
