//! The keys of one user, or of a port without users.

use adit_crypto::{CryptoError, HeaderCipher, Rc4, Secret, md5};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroize;

use crate::ProtocolKind;
use crate::kind::Family;

/// Prepared once per user, shared by the user's connections.
pub(crate) struct UserKey {
    key: Secret<Vec<u8>>,
    block_key: Secret<[u8; 16]>,
}

impl UserKey {
    /// The key of someone who has only the port's key.
    pub(crate) fn of_port(kind: ProtocolKind, port_key: &[u8]) -> Self {
        Self::new(kind, port_key.to_vec())
    }

    /// The key of a user with a password.
    pub(crate) fn of_password(kind: ProtocolKind, port_key: &[u8], password: &[u8]) -> Self {
        let key = match kind.family() {
            Family::Mac(mac) => mac.hash(port_key, password),
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

    /// AES-128 for the block of the first message, which is CBC with a zero IV over one block.
    pub(crate) fn block(&self) -> Result<HeaderCipher, CryptoError> {
        HeaderCipher::new(self.block_key.expose())
    }

    /// The RC4 key that a hash gives (`auth_chain`).
    pub(crate) fn rc4(&self, hash: &[u8]) -> Rc4 {
        let mut text = STANDARD.encode(self.key());
        let key = Secret::new(md5(&[text.as_bytes(), STANDARD.encode(hash).as_bytes()]));
        text.zeroize();
        Rc4::from_hash(key.expose())
    }
}
