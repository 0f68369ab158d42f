//! Key derivation: BLAKE3 contexts, HKDF-SHA1, PBKDF2-HMAC-SHA1 and OpenSSL's password scheme.

use core::fmt;
use core::num::NonZeroU32;

use adit_wire::subslice;
use aws_lc_rs::pbkdf2;

use blake3::hazmat::{ContextKey, HasherExt, hash_derive_key_context};
use hkdf::Hkdf;
use zeroize::Zeroize;

use crate::blake3_state::erase;
use crate::{CryptoError, Secret, md5};

/// A context of BLAKE3's derive_key mode, hashed once: this halves the cost of each derivation.
#[derive(Clone)]
pub struct KdfContext(ContextKey);

impl KdfContext {
    /// Hashes the context string, which names the purpose and is not secret.
    #[must_use]
    pub fn new(context: &str) -> Self {
        Self(hash_derive_key_context(context))
    }

    /// Fills `out` with the key derived from the concatenated `parts`.
    pub fn derive_key(&self, parts: &[&[u8]], out: &mut [u8]) {
        let mut hasher = blake3::Hasher::new_from_context_key(&self.0);
        for part in parts {
            hasher.update(part);
        }
        let mut reader = hasher.finalize_xof();
        reader.fill(out);
        reader.zeroize();
        erase(&mut hasher);
    }
}

impl fmt::Debug for KdfContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KdfContext")
    }
}

/// Derives the session key of SIP004: HKDF-SHA1 (RFC 5869) with the info string `ss-subkey`.
///
/// # Errors
/// [`CryptoError::TooLong`] if `out` is longer than 5,100 bytes.
pub fn hkdf_sha1_subkey(key: &[u8], salt: &[u8], out: &mut [u8]) -> Result<(), CryptoError> {
    Hkdf::<sha1::Sha1>::new(Some(salt), key)
        .expand(b"ss-subkey", out)
        .map_err(|_| CryptoError::TooLong)
}

/// Derives a key with PBKDF2-HMAC-SHA1 (RFC 8018 section 5.2), as kcptun does from its passwords and from
/// keys. The time is proportional to `iterations`: 1 to 2 ms for 4,096 of them and 32 bytes.
pub fn pbkdf2_hmac_sha1(password: &[u8], salt: &[u8], iterations: NonZeroU32, out: &mut [u8]) {
    pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA1, iterations, salt, password, out);
}

/// Derives a key with OpenSSL's `EVP_BytesToKey` (MD5, one iteration, no salt), which turns passwords into
/// keys in SIP004. It does not slow down guessing: its passwords must be long and random.
pub fn evp_bytes_to_key(password: &[u8], out: &mut [u8]) {
    let mut last = Secret::new([0u8; 16]);
    let mut before = 0;
    for chunk in out.chunks_mut(16) {
        let (last_one, _) = last.expose().split_at(before);
        let next = md5(&[last_one, password]);
        *last.expose_mut() = next;
        before = next.len();
        chunk.copy_from_slice(subslice(last.expose(), ..chunk.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{hex, vectors};
    use proptest::prelude::*;

    #[test]
    fn golden_vectors() {
        let kdf = vectors("kdf");
        for case in kdf["evp_bytes_to_key"].as_array().unwrap() {
            let mut out = vec![0; case["len"].as_u64().unwrap() as usize];
            evp_bytes_to_key(case["password"].as_str().unwrap().as_bytes(), &mut out);
            assert_eq!(out, hex(&case["key"]));
        }
        for case in kdf["hkdf_sha1_ss_subkey"].as_array().unwrap() {
            let mut out = vec![0; hex(&case["subkey"]).len()];
            hkdf_sha1_subkey(&hex(&case["key"]), &hex(&case["salt"]), &mut out).unwrap();
            assert_eq!(out, hex(&case["subkey"]));
        }
        for case in kdf["blake3_derive_key"].as_array().unwrap() {
            let mut out = vec![0; hex(&case["subkey"]).len()];
            let material = hex(&case["key_material"]);
            let (key, salt) = material.split_at(material.len() / 2);
            KdfContext::new(case["context"].as_str().unwrap()).derive_key(&[key, salt], &mut out);
            assert_eq!(out, hex(&case["subkey"]));
        }
    }

    /// RFC 6070, test cases 2 and 5.
    #[test]
    fn pbkdf2_of_the_standard() {
        let mut out = [0; 25];
        let times = |n| NonZeroU32::new(n).unwrap();
        pbkdf2_hmac_sha1(b"password", b"salt", times(2), &mut out[..20]);
        assert_eq!(out[..4], [0xea, 0x6c, 0x01, 0x4d]);
        let salt = b"saltSALTsaltSALTsaltSALTsaltSALTsalt";
        pbkdf2_hmac_sha1(b"passwordPASSWORDpassword", salt, times(4096), &mut out);
        assert_eq!(out[..4], [0x3d, 0x2e, 0xec, 0x4f]);
        assert_eq!(out[21..], [0xf2, 0xf0, 0x70, 0x38]);
    }

    #[test]
    fn hkdf_refuses_what_sha1_cannot_give() {
        assert!(hkdf_sha1_subkey(&[1; 32], &[2; 32], &mut vec![0; 255 * 20]).is_ok());
        let long = hkdf_sha1_subkey(&[1; 32], &[2; 32], &mut vec![0; 255 * 20 + 1]);
        assert_eq!(long, Err(CryptoError::TooLong));
    }

    proptest! {
        #[test]
        fn the_cached_context_equals_plain_derive_key(
            context in "[a-z 0-9]{0,80}", material in proptest::collection::vec(any::<u8>(), 0..200),
            cut in any::<prop::sample::Index>(),
        ) {
            let (a, b) = material.split_at(cut.index(material.len() + 1));
            let mut out = [0; 32];
            KdfContext::new(&context).derive_key(&[a, b], &mut out);
            prop_assert_eq!(out, blake3::derive_key(&context, &material));
        }
    }
}
