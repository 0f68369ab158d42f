//! Hashes: BLAKE3 and SHA-256 for identities, SipHash for tables.

use core::fmt;
use core::hash::Hasher;

use siphasher::sip::SipHasher13;

use crate::{Secret, ct_eq};

/// Returns the unkeyed BLAKE3 hash of `data`, 32 bytes.
#[must_use]
pub fn blake3_hash(data: &[u8]) -> [u8; 32] {
    *blake3::hash(data).as_bytes()
}

/// Returns the SHA-256 hash of `data` (FIPS 180-4).
#[must_use]
pub fn sha256(data: &[u8]) -> [u8; 32] {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, data);
    let mut out = [0; 32];
    out.copy_from_slice(digest.as_ref());
    out
}

/// A key of SipHash-1-3, for hash tables whose content a peer may choose.
pub struct SipKey(Secret<[u8; 16]>);

impl SipKey {
    /// Creates a key from a secret seed.
    #[must_use]
    pub fn new(seed: [u8; 16]) -> Self {
        Self(Secret::new(seed))
    }

    /// Returns the seed.
    pub(crate) fn seed(&self) -> &[u8; 16] {
        self.0.expose()
    }

    /// Returns true if both keys are the same.
    #[must_use]
    pub fn is_same_key(&self, other: &Self) -> bool {
        ct_eq(self.seed(), other.seed())
    }

    /// Returns the keyed hash of `data`.
    #[must_use]
    pub fn hash_bytes(&self, data: &[u8]) -> u64 {
        let mut sip = SipHasher13::new_with_key(self.0.expose());
        sip.write(data);
        sip.finish()
    }
}

impl Clone for SipKey {
    fn clone(&self) -> Self {
        Self::new(*self.seed())
    }
}

impl fmt::Debug for SipKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SipKey(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{hex, vectors};

    #[test]
    fn golden_hashes_of_keys() {
        for case in vectors("kdf")["psk_hash16"].as_array().unwrap() {
            assert_eq!(blake3_hash(&hex(&case["psk"]))[..16], hex(&case["hash"]));
        }
    }

    #[test]
    fn sha256_of_the_standard() {
        assert_eq!(sha256(b"abc")[..4], [0xba, 0x78, 0x16, 0xbf]);
    }

    #[test]
    fn sip_depends_on_key_and_data() {
        let a = SipKey::new([1; 16]);
        assert_eq!(a.hash_bytes(b"salt"), a.hash_bytes(b"salt"));
        assert_ne!(a.hash_bytes(b"salt"), a.hash_bytes(b"salu"));
        assert_ne!(
            a.hash_bytes(b"salt"),
            SipKey::new([2; 16]).hash_bytes(b"salt")
        );
    }
}
