//! The keys of one user, or of a port without users.

use adit_crypto::{CryptoError, HeaderCipher, Rc4, Secret, md5};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroize;

use crate::ProtocolKind;
use crate::protocol_kind::ProtocolFamily;

/// Keys that are derived once per user and shared by the user's connections.
pub(crate) struct UserKey {
    key: Secret<Vec<u8>>,
    block_key: Secret<[u8; 16]>,
}

impl UserKey {
    /// Derives the keys of a client that has only the port's key.
    pub(crate) fn from_port_key(kind: ProtocolKind, port_key: &[u8]) -> Self {
        Self::new(kind, port_key.to_vec())
    }

    /// Derives the keys of a user with a password.
    pub(crate) fn from_password(kind: ProtocolKind, port_key: &[u8], password: &[u8]) -> Self {
        let key = match kind.family() {
            ProtocolFamily::Mac(mac) => mac.hash_password(port_key, password),
            _ => password.to_vec(),
        };
        Self::new(kind, key)
    }

    fn new(kind: ProtocolKind, key: Vec<u8>) -> Self {
        let mut text = STANDARD.encode(&key);
        // KDF(…, 16) is one MD5.
        let block_key = Secret::new(md5(&[text.as_bytes(), kind.name().as_bytes()]));
        text.zeroize();
        Self {
            key: Secret::new(key),
            block_key,
        }
    }

    pub(crate) fn key(&self) -> &[u8] {
        self.key.expose()
    }

    /// Returns AES-128 for the block of the first message: CBC with a zero IV over one block.
    pub(crate) fn block_cipher(&self) -> Result<HeaderCipher, CryptoError> {
        HeaderCipher::new(self.block_key.expose())
    }

    /// Derives the RC4 state from a hash (`auth_chain`).
    pub(crate) fn rc4_from_hash(&self, hash: &[u8]) -> Rc4 {
        let mut text = STANDARD.encode(self.key());
        let key = Secret::new(md5(&[text.as_bytes(), STANDARD.encode(hash).as_bytes()]));
        text.zeroize();
        Rc4::from_hash(key.expose())
    }
}
