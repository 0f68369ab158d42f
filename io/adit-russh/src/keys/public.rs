//! Public keys.

use std::fmt;
use std::hash::{Hash, Hasher};

use adit_crypto::Sha2;
use adit_ssh_proto::key::PublicKey as Below;
use base64::Engine;
use base64::prelude::BASE64_STANDARD_NO_PAD as STANDARD_NO_PAD;

use super::algorithm::{Algorithm, HashAlg};
use super::error::SshKeyError;

/// A public key without its comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyData(pub(crate) Below);

impl KeyData {
    /// Returns the key's algorithm.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        Algorithm::from_key(&self.0)
    }

    /// Returns the fingerprint.
    #[must_use]
    pub fn fingerprint(&self, hash: HashAlg) -> Fingerprint {
        let (name, kind) = match hash {
            HashAlg::Sha256 => ("SHA256", Sha2::Sha256),
            HashAlg::Sha512 => ("SHA512", Sha2::Sha512),
        };
        let digest = kind.hash_parts(&[&self.0.to_blob()]);
        let text = STANDARD_NO_PAD.encode(digest.expose());
        Fingerprint(format!("{name}:{text}"))
    }
}

/// A fingerprint, printed as `ssh-keygen -l` does.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Fingerprint(String);

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// A public key with its comment. Keys compare without their comments.
#[derive(Debug, Clone)]
pub struct PublicKey {
    data: KeyData,
    comment: String,
}

impl PublicKey {
    /// Creates a key with this comment.
    #[must_use]
    pub fn new(data: KeyData, comment: impl Into<String>) -> Self {
        Self {
            data,
            comment: comment.into(),
        }
    }

    /// Parses the line of a `.pub` file.
    ///
    /// # Errors
    /// The line is not a public key, or the key has an unknown type.
    pub fn from_openssh(line: &str) -> Result<Self, SshKeyError> {
        let (key, comment) = Below::from_line(line)?;
        Ok(Self::new(KeyData(key), comment))
    }

    /// Parses a key blob.
    ///
    /// # Errors
    /// The blob is not a key, or the key has an unknown type.
    pub fn from_bytes(blob: &[u8]) -> Result<Self, SshKeyError> {
        Ok(Self::from(Below::parse(blob)?))
    }

    /// Returns the line of a `.pub` file.
    ///
    /// # Errors
    /// Never fails; the signature is russh's.
    pub fn to_openssh(&self) -> Result<String, SshKeyError> {
        Ok(self.data.0.to_line(&self.comment))
    }

    /// Returns the key blob.
    ///
    /// # Errors
    /// Never fails; the signature is russh's.
    pub fn to_bytes(&self) -> Result<Vec<u8>, SshKeyError> {
        Ok(self.data.0.to_blob())
    }

    /// Returns the key's algorithm.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.data.algorithm()
    }

    /// Returns the key without its comment.
    #[must_use]
    pub const fn key_data(&self) -> &KeyData {
        &self.data
    }

    /// Returns the comment.
    #[must_use]
    pub fn comment(&self) -> &str {
        &self.comment
    }

    /// Sets the comment.
    pub fn set_comment(&mut self, comment: impl Into<String>) {
        self.comment = comment.into();
    }

    /// Returns the fingerprint.
    #[must_use]
    pub fn fingerprint(&self, hash: HashAlg) -> Fingerprint {
        self.data.fingerprint(hash)
    }

    pub(crate) const fn inner(&self) -> &Below {
        &self.data.0
    }
}

impl From<Below> for PublicKey {
    fn from(key: Below) -> Self {
        Self::new(KeyData(key), "")
    }
}

impl From<KeyData> for PublicKey {
    fn from(data: KeyData) -> Self {
        Self::new(data, "")
    }
}

impl PartialEq for PublicKey {
    fn eq(&self, other: &Self) -> bool {
        self.data == other.data
    }
}

impl Eq for PublicKey {}

impl Hash for PublicKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.data.0.to_blob().hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_those_of_the_protocol() {
        let line = "ssh-ed25519 \
            AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ me there";
        let key = PublicKey::from_openssh(line).unwrap();
        assert_eq!(key.comment(), "me there");
        assert_eq!(key.to_openssh().unwrap(), line);
        let own = key.inner().fingerprint();
        assert_eq!(key.fingerprint(HashAlg::Sha256).to_string(), own);
        let long = key.fingerprint(HashAlg::Sha512).to_string();
        assert!(long.starts_with("SHA512:") && long.len() == 7 + 86);
        let mut other = PublicKey::from_bytes(&key.to_bytes().unwrap()).unwrap();
        other.set_comment("elsewhere");
        assert_eq!(other, key);
    }
}
