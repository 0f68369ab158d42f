//! The MACs of the `auth_aes128` protocols.

use adit_crypto::{HmacMd5Batch, MAC_LANES, SipBatch, SipKey, hmac_md5, hmac_sha1, md5, sha1};
use zeroize::Zeroizing;

/// The MAC, and the hash of user passwords.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MacKind {
    Md5,
    Sha1,
    /// SipHash with one round per block and three at the end.
    Fast,
}

impl MacKind {
    /// Returns the hash of a user's password. The fast kind is keyed with the port's key.
    pub(crate) fn hash_password(self, port_key: &[u8], data: &[u8]) -> Vec<u8> {
        match self {
            Self::Md5 => md5(&[data]).to_vec(),
            Self::Sha1 => sha1(&[data]).to_vec(),
            Self::Fast => {
                let key = SipKey::new(first_16(port_key));
                key.hash_bytes(data).to_le_bytes().to_vec()
            }
        }
    }
}

impl MacKind {
    /// Returns the number of messages of one length from which computing them together is faster on
    /// this CPU.
    pub(crate) fn least_batch(self) -> Option<usize> {
        match self {
            Self::Md5 => HmacMd5Batch::min_messages(),
            Self::Fast => SipBatch::min_messages(),
            // A CPU with SHA instructions is as fast without a batch.
            Self::Sha1 => None,
        }
    }
}

/// MACs of several frames, each with its own key.
pub(crate) enum MacBatch {
    Md5(HmacMd5Batch),
    Fast(SipBatch),
}

impl MacBatch {
    /// Creates a batch. `None` if this CPU has no batch of the kind.
    pub(crate) fn new(kind: MacKind, keys: [&[u8]; MAC_LANES]) -> Option<Self> {
        match kind {
            MacKind::Md5 => HmacMd5Batch::new(keys).map(Self::Md5),
            MacKind::Sha1 => None,
            MacKind::Fast => {
                let keys = Zeroizing::new(keys.map(fast_seed));
                SipBatch::new(&keys).map(Self::Fast)
            }
        }
    }

    /// Returns the first four bytes of each tag. The messages must have one length.
    pub(crate) fn compute_tags(&self, messages: [&[u8]; MAC_LANES]) -> [[u8; 4]; MAC_LANES] {
        match self {
            Self::Md5(keys) => keys.compute_tags(messages).map(|tag| first_bytes(&tag)),
            Self::Fast(keys) => keys
                .compute_hashes(messages)
                .map(|hash| first_bytes(&hash.to_le_bytes())),
        }
    }
}

/// A MAC with its key, prepared once per frame.
pub(crate) enum Mac<'k> {
    Md5(&'k [u8]),
    Sha1(&'k [u8]),
    Fast(SipKey),
}

impl<'k> Mac<'k> {
    pub(crate) fn new(kind: MacKind, key: &'k [u8]) -> Self {
        match kind {
            MacKind::Md5 => Self::Md5(key),
            MacKind::Sha1 => Self::Sha1(key),
            MacKind::Fast => Self::Fast(fast_key(key)),
        }
    }

    /// Returns the first `N` bytes of the tag, at most 8.
    pub(crate) fn tag<const N: usize>(&self, data: &[u8]) -> [u8; N] {
        match self {
            Self::Md5(key) => first_bytes(&hmac_md5(key, &[data])),
            Self::Sha1(key) => first_bytes(&hmac_sha1(key, &[data])),
            Self::Fast(key) => first_bytes(&key.hash_bytes(data).to_le_bytes()),
        }
    }
}

/// Converts a key of any length to a SipHash key: unless it has 16 bytes, it is hashed with its own
/// start as the key.
fn fast_key(key: &[u8]) -> SipKey {
    SipKey::new(fast_seed(key))
}

fn fast_seed(key: &[u8]) -> [u8; 16] {
    let start = first_16(key);
    if key.len() == 16 {
        return start;
    }
    let half = SipKey::new(start).hash_bytes(key);
    (u128::from(half) << 64 | u128::from(half)).to_le_bytes()
}

/// Returns the first 16 bytes, padded with zeros.
pub(crate) fn first_16(bytes: &[u8]) -> [u8; 16] {
    let mut out = [0; 16];
    for (place, byte) in out.iter_mut().zip(bytes) {
        *place = *byte;
    }
    out
}

/// Returns the first `N` bytes; at least `N` must be present.
fn first_bytes<const N: usize, const M: usize>(tag: &[u8; M]) -> [u8; N] {
    const { assert!(N <= M) };
    let mut out = [0; N];
    for (place, byte) in out.iter_mut().zip(tag) {
        *place = *byte;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden::{hex, vectors};

    #[test]
    fn golden_fast_macs() {
        for case in vectors("fast_mac") {
            let key = hex(&case["key"]);
            let mac = Mac::new(MacKind::Fast, &key);
            assert_eq!(mac.tag::<8>(&hex(&case["msg"])).to_vec(), hex(&case["mac"]));
        }
    }
}
