//! Credentials as keyed digests, so that a user table stores no passwords and a comparison does not reveal
//! where two credentials differ.

use core::fmt;

use adit_wire::u64_from;

use crate::blake3_state::erase;
use crate::{Secret, ct_eq};

/// A hasher of credentials under a key of this process.
pub struct CredentialHasher(Secret<[u8; 32]>);

impl CredentialHasher {
    /// Creates a hasher with a random key; digests of two hashers never match.
    #[must_use]
    pub fn new(key: [u8; 32]) -> Self {
        Self(Secret::new(key))
    }

    /// Returns the digest of a credential's parts (user, password). The boundaries between the parts are
    /// included in the digest.
    #[must_use]
    pub fn digest_parts(&self, parts: &[&[u8]]) -> CredentialDigest {
        let mut hasher = blake3::Hasher::new_keyed(self.0.expose());
        for part in parts {
            let len = u64_from(part.len());
            hasher.update(&len.to_le_bytes()).update(part);
        }
        let digest = CredentialDigest(Secret::new(*hasher.finalize().as_bytes()));
        erase(&mut hasher);
        digest
    }
}

impl fmt::Debug for CredentialHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CredentialHasher(***)")
    }
}

/// The keyed digest of a credential; `==` takes constant time.
pub struct CredentialDigest(Secret<[u8; 32]>);

impl PartialEq for CredentialDigest {
    fn eq(&self, other: &Self) -> bool {
        ct_eq(self.0.expose(), other.0.expose())
    }
}

impl Eq for CredentialDigest {}

impl fmt::Debug for CredentialDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CredentialDigest(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_run_together() {
        let hasher = CredentialHasher::new([7; 32]);
        let of = |parts: &[&[u8]]| hasher.digest_parts(parts);
        assert!(of(&[b"me", b"pass"]) == of(&[b"me", b"pass"]));
        assert!(of(&[b"me", b"pass"]) != of(&[b"mep", b"ass"]));
        assert!(of(&[b"me", b""]) != of(&[b"me"]));
        assert!(of(&[b"me"]) != CredentialHasher::new([8; 32]).digest_parts(&[b"me"]));
    }
}
