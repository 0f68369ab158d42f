//! AES-CBC without padding (NIST SP 800-38A section 6.2), for the few blocks at the start of a connection
//! that some protocols encrypt this way, and for legacy key files.
//!
//! One block under a zero IV is the same as [`crate::HeaderCipher`], which keeps its expanded key.

use aes::cipher::{BlockCipherDecrypt, BlockCipherEncrypt, KeyInit, consts::U16};
use aes::{Aes128, Aes256};

use crate::CryptoError;

const BLOCK: usize = 16;

/// Encrypts whole blocks in place.
///
/// # Errors
/// [`CryptoError::PartialBlock`] if the length is not a multiple of 16 bytes; `data` is unchanged then.
pub fn aes128_cbc_encrypt(
    key: &[u8; 16],
    iv: &[u8; 16],
    data: &mut [u8],
) -> Result<(), CryptoError> {
    let cipher = Aes128::new(key.into());
    let mut last = *iv;
    for block in as_whole_blocks(data)? {
        *block = xor_blocks(*block, last);
        cipher.encrypt_block(block.into());
        last = *block;
    }
    Ok(())
}

/// Decrypts whole blocks in place. Nothing is authenticated.
///
/// # Errors
/// [`CryptoError::PartialBlock`] if the length is not a multiple of 16 bytes; `data` is unchanged then.
pub fn aes128_cbc_decrypt(
    key: &[u8; 16],
    iv: &[u8; 16],
    data: &mut [u8],
) -> Result<(), CryptoError> {
    decrypt_blocks(&Aes128::new(key.into()), iv, data)
}

/// Like [`aes128_cbc_decrypt`], with AES-256.
///
/// # Errors
/// [`CryptoError::PartialBlock`] if `data` does not consist of whole blocks.
pub fn aes256_cbc_decrypt(
    key: &[u8; 32],
    iv: &[u8; 16],
    data: &mut [u8],
) -> Result<(), CryptoError> {
    decrypt_blocks(&Aes256::new(key.into()), iv, data)
}

fn decrypt_blocks(
    cipher: &impl BlockCipherDecrypt<BlockSize = U16>,
    iv: &[u8; BLOCK],
    data: &mut [u8],
) -> Result<(), CryptoError> {
    let mut last = *iv;
    for block in as_whole_blocks(data)? {
        let input = *block;
        cipher.decrypt_block(block.into());
        *block = xor_blocks(*block, last);
        last = input;
    }
    Ok(())
}

fn as_whole_blocks(data: &mut [u8]) -> Result<&mut [[u8; BLOCK]], CryptoError> {
    match data.as_chunks_mut() {
        (blocks, []) => Ok(blocks),
        _ => Err(CryptoError::PartialBlock),
    }
}

fn xor_blocks(a: [u8; BLOCK], b: [u8; BLOCK]) -> [u8; BLOCK] {
    (u128::from_ne_bytes(a) ^ u128::from_ne_bytes(b)).to_ne_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NIST SP 800-38A sections F.2.1 and F.2.2.
    #[test]
    fn sp_800_38a() {
        let hex = |text: &str| crate::tests::hex(&text.into());
        let key = hex("2b7e151628aed2a6abf7158809cf4f3c").try_into().unwrap();
        let iv = core::array::from_fn(|i| i as u8);
        let plain = hex("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51");
        let sealed = hex("7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b2");
        let mut data = plain.clone();
        aes128_cbc_encrypt(&key, &iv, &mut data).unwrap();
        assert_eq!(data, sealed);
        aes128_cbc_decrypt(&key, &iv, &mut data).unwrap();
        assert_eq!(data, plain);
    }

    /// NIST SP 800-38A section F.2.6.
    #[test]
    fn sp_800_38a_256() {
        let hex = |text: &str| crate::tests::hex(&text.into());
        let key = hex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4");
        let mut data = hex("f58c4c04d6e5f1ba779eabfb5f7bfbd69cfc4e967edb808d679f777bc6702c7d");
        let iv = core::array::from_fn(|i| i as u8);
        aes256_cbc_decrypt(&key.try_into().unwrap(), &iv, &mut data).unwrap();
        let plain = hex("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51");
        assert_eq!(data, plain);
    }

    #[test]
    fn only_whole_blocks() {
        for len in [1, 15, 17, 31] {
            let mut data = vec![7; len];
            let refused = Err(CryptoError::PartialBlock);
            assert_eq!(aes128_cbc_encrypt(&[1; 16], &[0; 16], &mut data), refused);
            assert_eq!(aes128_cbc_decrypt(&[1; 16], &[0; 16], &mut data), refused);
            assert_eq!(data, vec![7; len]);
        }
        assert_eq!(aes128_cbc_encrypt(&[1; 16], &[0; 16], &mut []), Ok(()));
    }
}
