//! Hashes: BLAKE3 and SHA-256 for identities, SipHash for tables; MD5, SHA-1 and their HMACs for
//! the protocols that were built on them.

use core::fmt;
use core::hash::Hasher;

use md5::{Digest, Md5};
use sha1::Sha1;
use siphasher::sip::SipHasher13;
use zeroize::Zeroize;

use crate::Secret;

/// BLAKE3, 32 bytes, unkeyed.
#[must_use]
pub fn blake3_hash(data: &[u8]) -> [u8; 32] {
    *blake3::hash(data).as_bytes()
}

/// SHA-256 (FIPS 180-4).
#[must_use]
pub fn sha256(data: &[u8]) -> [u8; 32] {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, data);
    let mut out = [0; 32];
    out.copy_from_slice(digest.as_ref());
    out
}

/// MD5 (RFC 1321) of the concatenated `parts`. Broken: for protocols that prescribe it.
#[must_use]
pub fn md5(parts: &[&[u8]]) -> [u8; 16] {
    hash::<Md5, 16>(parts)
}

/// SHA-1 (RFC 3174) of the concatenated `parts`. Broken: for protocols that prescribe it.
#[must_use]
pub fn sha1(parts: &[&[u8]]) -> [u8; 20] {
    hash::<Sha1, 20>(parts)
}

/// HMAC-MD5 (RFC 2104) of the concatenated `parts`. Compare tags with [`crate::ct_eq`].
#[must_use]
pub fn hmac_md5(key: &[u8], parts: &[&[u8]]) -> [u8; 16] {
    hmac::<Md5, 16>(key, parts)
}

/// HMAC-SHA1 (RFC 2104) of the concatenated `parts`. Compare tags with [`crate::ct_eq`].
#[must_use]
pub fn hmac_sha1(key: &[u8], parts: &[&[u8]]) -> [u8; 20] {
    hmac::<Sha1, 20>(key, parts)
}

/// HMAC-SHA256 (RFC 2104) of the concatenated `parts`. Compare tags with [`crate::ct_eq`].
#[must_use]
pub fn hmac_sha256(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    use aws_lc_rs::hmac::{Context, HMAC_SHA256, Key};
    let mut context = Context::with_key(&Key::new(HMAC_SHA256, key));
    for part in parts {
        context.update(part);
    }
    let mut out = [0; 32];
    out.copy_from_slice(context.sign().as_ref());
    out
}

fn hash<H: Digest, const N: usize>(parts: &[&[u8]]) -> [u8; N] {
    let mut hash = H::new();
    for part in parts {
        hash.update(part);
    }
    let mut out = [0; N];
    out.copy_from_slice(&hash.finalize());
    out
}

/// RFC 2104 for hashes with blocks of 64 bytes; a key object would cost more than it saves, since
/// the protocols that use these change the key with every frame.
fn hmac<H: Digest, const N: usize>(key: &[u8], parts: &[&[u8]]) -> [u8; N] {
    let mut block = [0u8; 64];
    match block.get_mut(..key.len()) {
        Some(place) => place.copy_from_slice(key),
        None => {
            let (short, _) = block.split_at_mut(N);
            short.copy_from_slice(&hash::<H, N>(&[key]));
        }
    }
    let mut inner = H::new();
    inner.update(block.map(|b| b ^ 0x36));
    for part in parts {
        inner.update(part);
    }
    let mut outer = H::new();
    outer.update(block.map(|b| b ^ 0x5c));
    outer.update(inner.finalize());
    block.zeroize();
    let mut out = [0; N];
    out.copy_from_slice(&outer.finalize());
    out
}

/// A key of SipHash-1-3, for hash tables whose content a peer may choose.
pub struct SipKey(Secret<[u8; 16]>);

impl SipKey {
    /// A key from a secret seed.
    #[must_use]
    pub fn new(seed: [u8; 16]) -> Self {
        Self(Secret::new(seed))
    }

    /// The keyed hash of `data`.
    #[must_use]
    pub fn hash(&self, data: &[u8]) -> u64 {
        let mut sip = SipHasher13::new_with_key(self.0.expose());
        sip.write(data);
        sip.finish()
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
    fn digests_of_the_standards() {
        // RFC 1321, RFC 3174.
        assert_eq!(md5(&[b"a", b"bc"])[..4], [0x90, 0x01, 0x50, 0x98]);
        assert_eq!(sha1(&[b"a", b"bc"])[..4], [0xa9, 0x99, 0x3e, 0x36]);
        // RFC 2202, test cases 2 and 6; RFC 4231, test case 2.
        let (key, parts) = (b"Jefe", [&b"what do ya want "[..], b"for nothing?"]);
        assert_eq!(hmac_md5(key, &parts)[..4], [0x75, 0x0c, 0x78, 0x3e]);
        assert_eq!(hmac_sha1(key, &parts)[..4], [0xef, 0xfc, 0xdf, 0x6a]);
        assert_eq!(hmac_sha256(key, &parts)[..4], [0x5b, 0xdc, 0xc1, 0x46]);
        let long = [&b"Test Using Larger Than Block-Size Key - Hash Key First"[..]];
        assert_eq!(hmac_md5(&[0xaa; 80], &long)[..4], [0x6b, 0x1a, 0xb7, 0xfe]);
        assert_eq!(hmac_sha1(&[0xaa; 80], &long)[..4], [0xaa, 0x4a, 0xe5, 0xe1]);
    }

    #[test]
    fn sip_depends_on_key_and_data() {
        let a = SipKey::new([1; 16]);
        assert_eq!(a.hash(b"salt"), a.hash(b"salt"));
        assert_ne!(a.hash(b"salt"), a.hash(b"salu"));
        assert_ne!(a.hash(b"salt"), SipKey::new([2; 16]).hash(b"salt"));
    }
}
