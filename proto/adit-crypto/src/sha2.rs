//! SHA-2 over data in parts: exchange hashes, keys derived from them, confirmations.

use core::fmt;

use aws_lc_rs::digest::{Context, SHA256, SHA384, SHA512};

use crate::Secret;

/// A hash function of FIPS 180-4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sha2 {
    /// SHA-256: 32 bytes.
    Sha256,
    /// SHA-384: 48 bytes.
    Sha384,
    /// SHA-512: 64 bytes.
    Sha512,
}

impl Sha2 {
    /// Returns the length of the hash, in bytes.
    #[must_use]
    pub const fn output_len(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }

    /// Starts a hash.
    #[must_use]
    pub fn new_hasher(self) -> Sha2Hasher {
        Sha2Hasher(Context::new(match self {
            Self::Sha256 => &SHA256,
            Self::Sha384 => &SHA384,
            Self::Sha512 => &SHA512,
        }))
    }

    /// Returns the hash of the concatenated `parts`.
    #[must_use]
    pub fn hash_parts(self, parts: &[&[u8]]) -> Secret<Vec<u8>> {
        let mut hasher = self.new_hasher();
        for part in parts {
            hasher.update(part);
        }
        hasher.finish()
    }
}

/// A hash in progress. A clone continues independently.
#[derive(Clone)]
pub struct Sha2Hasher(Context);

impl Sha2Hasher {
    /// Adds `data` to the hash.
    pub fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    /// Returns the hash, as a [`Secret`] since it usually becomes a key.
    #[must_use]
    pub fn finish(self) -> Secret<Vec<u8>> {
        Secret::new(self.0.finish().as_ref().to_vec())
    }
}

impl fmt::Debug for Sha2Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sha2Hasher(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 180-4, the example "abc", in parts.
    #[test]
    fn hashes_of_the_standard() {
        for (kind, head) in [
            (Sha2::Sha256, [0xba, 0x78, 0x16, 0xbf]),
            (Sha2::Sha384, [0xcb, 0x00, 0x75, 0x3f]),
            (Sha2::Sha512, [0xdd, 0xaf, 0x35, 0xa1]),
        ] {
            let hash = kind.hash_parts(&[b"a", b"", b"bc"]);
            assert_eq!(
                (hash.expose().len(), &hash.expose()[..4]),
                (kind.output_len(), &head[..])
            );
        }
    }
}
