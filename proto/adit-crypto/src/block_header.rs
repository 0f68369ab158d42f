//! AES on single blocks, for packet headers that are unique by themselves.
//!
//! This is not a mode for data: equal blocks have equal output. The 2022 edition of Shadowsocks (SIP022)
//! encrypts its UDP session header this way, since a pair of session ID and packet number never repeats.

use core::fmt;

use aes::cipher::{BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Aes256};

use crate::CryptoError;

/// AES-128 or AES-256 with a key that is expanded once; cleared on drop.
#[derive(Clone)]
pub struct HeaderCipher(Inner);

#[derive(Clone)]
enum Inner {
    Aes128(Aes128),
    Aes256(Aes256),
}

impl HeaderCipher {
    /// Creates a cipher for a key of 16 or 32 bytes.
    ///
    /// # Errors
    /// [`CryptoError::KeyLength`] for any other length.
    pub fn new(key: &[u8]) -> Result<Self, CryptoError> {
        let wrong = |_| CryptoError::KeyLength {
            expected: 32,
            found: key.len(),
        };
        Ok(Self(if key.len() == 16 {
            Inner::Aes128(Aes128::new_from_slice(key).map_err(wrong)?)
        } else {
            Inner::Aes256(Aes256::new_from_slice(key).map_err(wrong)?)
        }))
    }

    /// Encrypts one block in place.
    pub fn encrypt_block(&self, block: &mut [u8; 16]) {
        match &self.0 {
            Inner::Aes128(aes) => aes.encrypt_block(block.into()),
            Inner::Aes256(aes) => aes.encrypt_block(block.into()),
        }
    }

    /// Decrypts one block in place.
    pub fn decrypt_block(&self, block: &mut [u8; 16]) {
        match &self.0 {
            Inner::Aes128(aes) => aes.decrypt_block(block.into()),
            Inner::Aes256(aes) => aes.decrypt_block(block.into()),
        }
    }
}

impl fmt::Debug for HeaderCipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HeaderCipher(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 197 appendix C.1 and C.3.
    #[test]
    fn fips_197() {
        let plain: [u8; 16] = core::array::from_fn(|i| (i * 0x11) as u8);
        let key: [u8; 32] = core::array::from_fn(|i| i as u8);
        for (len, first) in [
            (16, [0x69, 0xc4, 0xe0, 0xd8]),
            (32, [0x8e, 0xa2, 0xb7, 0xca]),
        ] {
            let cipher = HeaderCipher::new(&key[..len]).unwrap();
            let mut block = plain;
            cipher.encrypt_block(&mut block);
            assert_eq!(block[..4], first);
            cipher.decrypt_block(&mut block);
            assert_eq!(block, plain);
        }
        assert!(HeaderCipher::new(&key[..24]).is_err());
        assert!(HeaderCipher::new(&[]).is_err());
    }
}
