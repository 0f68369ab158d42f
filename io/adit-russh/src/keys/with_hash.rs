//! A key together with the hash of its signatures.

use std::ops::Deref;
use std::sync::Arc;

use super::{Algorithm, HashAlg, PrivateKey};

/// A private key, and for RSA the hash of its signatures.
#[derive(Debug, Clone)]
pub struct PrivateKeyWithHashAlg {
    key: Arc<PrivateKey>,
    hash: Option<HashAlg>,
}

impl PrivateKeyWithHashAlg {
    /// For keys other than RSA the hash is left out. An RSA key without one signs with what the
    /// server takes, SHA-512 first; with SHA-1 it never signs.
    #[must_use]
    pub fn new(key: Arc<PrivateKey>, hash_alg: Option<HashAlg>) -> Self {
        let hash = hash_alg.filter(|_| key.algorithm().is_rsa());
        Self { key, hash }
    }

    /// What it signs with.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        match self.key.algorithm() {
            Algorithm::Rsa { .. } => Algorithm::Rsa { hash: self.hash },
            other => other,
        }
    }

    /// The hash, of RSA alone.
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
