//! The key of a realm, which its members have and its store does not.

use std::fmt;

use adit_crypto::KdfContext;
use adit_wire::Entropy;
use zeroize::Zeroizing;

use crate::key_text::{decode_key, encode_key};
use crate::record::derive_psk;

/// The key of a realm.
#[derive(Clone, PartialEq, Eq)]
pub struct RealmKey(Zeroizing<[u8; 32]>);

impl fmt::Debug for RealmKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RealmKey(***)")
    }
}

impl RealmKey {
    /// Returns the key with these bytes.
    #[must_use]
    pub fn new(key: [u8; 32]) -> Self {
        Self(Zeroizing::new(key))
    }

    /// Creates a random key.
    #[must_use]
    pub fn generate(rng: &mut dyn Entropy) -> Self {
        let mut key = Zeroizing::new([0; 32]);
        rng.fill(&mut *key);
        Self(key)
    }

    /// Returns the bytes of the key.
    pub(crate) fn expose(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the key in base64.
    #[must_use]
    pub fn to_base64(&self) -> Zeroizing<String> {
        encode_key(&*self.0)
    }

    /// Returns the key with this base64, if it is one.
    #[must_use]
    pub fn from_base64(text: &str) -> Option<Self> {
        let key = decode_key(text)?;
        Some(Self(Zeroizing::new(key.as_slice().try_into().ok()?)))
    }

    /// Returns the identity key of a node for a method of SIP022 with keys of `len` bytes (16 or 32), in base64;
    /// `None` for another length. No two nodes have the same: what was sent to one node does not authenticate at
    /// another.
    #[must_use]
    pub fn identity_psk(&self, node: u32, len: usize) -> Option<Zeroizing<String>> {
        let parts: [&[u8]; 2] = [&*self.0, &node.to_be_bytes()];
        derive_psk(&KdfContext::new("adit fleet identity psk v1"), &parts, len)
    }

    /// Returns the identity key that all nodes of the realm share, for nodes behind one address.
    #[must_use]
    pub fn shared_psk(&self, len: usize) -> Option<Zeroizing<String>> {
        derive_psk(
            &KdfContext::new("adit fleet shared psk v1"),
            &[&*self.0],
            len,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identity_keys_are_a_nodes_own() {
        let key = RealmKey::new([1; 32]);
        assert_eq!(format!("{key:?}"), "RealmKey(***)");
        assert_ne!(key.identity_psk(1, 32), key.identity_psk(2, 32));
        assert_eq!(key.identity_psk(1, 32), key.identity_psk(1, 32));
        assert_eq!(key.identity_psk(1, 16).map(|psk| psk.len()), Some(24));
        assert_eq!(key.identity_psk(1, 17), None);
        let text = key.to_base64();
        assert_eq!(RealmKey::from_base64(&text), Some(key));
        assert_eq!(RealmKey::from_base64("AAAA"), None);
    }
}
