//! HMAC (RFC 2104) for a key that authenticates many messages.

use core::fmt;

use aws_lc_rs::hmac as lc;

use crate::ct_eq;

/// The hash in an HMAC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HmacKind {
    /// SHA-1: for protocols that prescribe it; as an HMAC it is not broken
    Sha1,
    /// SHA-256
    Sha256,
    /// SHA-512
    Sha512,
}

/// A key, and the states of the two hashes that begin with it: each message is spared two blocks.
/// Nothing is allocated for a message.
pub struct HmacKey(lc::Key);

impl HmacKey {
    /// Takes a key of any length.
    #[must_use]
    pub fn new(kind: HmacKind, key: &[u8]) -> Self {
        let algorithm = match kind {
            HmacKind::Sha1 => lc::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            HmacKind::Sha256 => lc::HMAC_SHA256,
            HmacKind::Sha512 => lc::HMAC_SHA512,
        };
        Self(lc::Key::new(algorithm, key))
    }

    /// The tag of the concatenated `parts`: 20, 32 or 64 bytes.
    #[must_use]
    pub fn tag(&self, parts: &[&[u8]]) -> HmacTag {
        let mut context = lc::Context::with_key(&self.0);
        for part in parts {
            context.update(part);
        }
        HmacTag(context.sign())
    }
}

impl fmt::Debug for HmacKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HmacKey(***)")
    }
}

/// A tag. Equality takes a time that depends on the lengths alone.
#[derive(Debug, Clone, Copy)]
pub struct HmacTag(lc::Tag);

impl AsRef<[u8]> for HmacTag {
    fn as_ref(&self) -> &[u8] {
        self.0.as_ref()
    }
}

impl PartialEq<[u8]> for HmacTag {
    fn eq(&self, other: &[u8]) -> bool {
        ct_eq(self.as_ref(), other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{hmac_sha1, hmac_sha256};

    /// RFC 2202 and RFC 4231, test case 2.
    #[test]
    fn tags_of_the_standards() {
        let parts = [&b"what do ya want "[..], b"for nothing?"];
        for (kind, len, head) in [
            (HmacKind::Sha1, 20, [0xef, 0xfc, 0xdf, 0x6a]),
            (HmacKind::Sha256, 32, [0x5b, 0xdc, 0xc1, 0x46]),
            (HmacKind::Sha512, 64, [0x16, 0x4b, 0x7a, 0x7b]),
        ] {
            let key = HmacKey::new(kind, b"Jefe");
            let tag = key.tag(&parts);
            assert_eq!((tag.as_ref().len(), &tag.as_ref()[..4]), (len, &head[..]));
            assert!(
                key.tag(&[&parts.concat()]) == *tag.as_ref(),
                "a key is kept"
            );
            let mut wrong = tag.as_ref().to_vec();
            wrong[len - 1] ^= 1;
            assert!(tag != *wrong && tag != wrong[..len - 1]);
        }
    }

    #[test]
    fn long_keys_are_hashed() {
        let (key, parts) = ([7; 200], [&b"message"[..]]);
        let (one, two) = (HmacKind::Sha1, HmacKind::Sha256);
        assert!(HmacKey::new(one, &key).tag(&parts) == hmac_sha1(&key, &parts)[..]);
        assert!(HmacKey::new(two, &key).tag(&parts) == hmac_sha256(&key, &parts)[..]);
    }
}
