//! Ed25519 (RFC 8032).

use core::fmt;

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};

use crate::{CryptoError, Secret};

/// An Ed25519 private key.
///
/// # Examples
///
/// ```
/// use adit_crypto::{Ed25519Key, Secret, ed25519_verify};
///
/// let key = Ed25519Key::from_seed(Secret::new([7; 32]))?;
/// let signature = key.sign(b"message");
/// assert!(ed25519_verify(&key.public_key(), b"message", &signature).is_ok());
/// assert!(ed25519_verify(&key.public_key(), b"massage", &signature).is_err());
/// # Ok::<(), adit_crypto::CryptoError>(())
/// ```
pub struct Ed25519Key {
    pair: Ed25519KeyPair,
    seed: Secret<[u8; 32]>,
}

impl Ed25519Key {
    /// Creates the key of a seed, 32 bytes that are random or from a key file.
    ///
    /// # Errors
    /// [`CryptoError::InvalidKey`] if the provider fails.
    pub fn from_seed(seed: Secret<[u8; 32]>) -> Result<Self, CryptoError> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed.expose())
            .map_err(|_| CryptoError::InvalidKey)?;
        Ok(Self { pair, seed })
    }

    /// Returns the public key.
    #[must_use]
    pub fn public_key(&self) -> [u8; 32] {
        let mut out = [0; 32];
        out.copy_from_slice(self.pair.public_key().as_ref());
        out
    }

    /// Returns the seed, for writing it to a file.
    #[must_use]
    pub const fn seed(&self) -> &Secret<[u8; 32]> {
        &self.seed
    }

    /// Returns the signature of `message`, which is deterministic.
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        let mut out = [0; 64];
        out.copy_from_slice(self.pair.sign(message).as_ref());
        out
    }
}

impl fmt::Debug for Ed25519Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ed25519Key(***)")
    }
}

/// Verifies a signature of 64 bytes.
///
/// # Errors
/// [`CryptoError::Unauthentic`] if it is not `public`'s signature of `message`.
pub fn ed25519_verify(
    public: &[u8; 32],
    message: &[u8],
    signature: &[u8],
) -> Result<(), CryptoError> {
    UnparsedPublicKey::new(&ED25519, public)
        .verify(message, signature)
        .map_err(|_| CryptoError::Unauthentic)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::hex;

    /// RFC 8032 section 7.1, test 3.
    #[test]
    fn rfc_8032() {
        let seed = hex(&"c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7".into());
        let key = Ed25519Key::from_seed(Secret::new(seed.try_into().unwrap())).unwrap();
        let public =
            hex(&"fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025".into());
        assert_eq!(key.public_key(), *public);
        let signature = key.sign(&[0xaf, 0x82]);
        assert_eq!(signature[..4], [0x62, 0x91, 0xd6, 0x57]);
        ed25519_verify(&key.public_key(), &[0xaf, 0x82], &signature).unwrap();
        assert!(ed25519_verify(&key.public_key(), &[0xaf, 0x83], &signature).is_err());
        assert!(ed25519_verify(&key.public_key(), &[0xaf, 0x82], &signature[..63]).is_err());
        assert_eq!(format!("{key:?}"), "Ed25519Key(***)");
    }
}
