//! CFB mode with 8-bit or 1-bit feedback (NIST SP 800-38A section 6.3), for ciphers with 128-bit blocks.
//!
//! A whole block is encrypted for every symbol. Encryption is serial; decryption knows the inputs of the
//! register in advance and encrypts eight blocks in parallel.

use std::sync::Arc;

use aes::cipher::{Block, BlockCipherEncrypt, BlockSizeUser, consts::U16};
use zeroize::Zeroize;

use super::Direction;

/// Number of symbols that are decrypted in parallel.
const PARALLEL_SYMBOLS: usize = 8;

/// The state of one direction, with symbols of `BITS` bits (8 or 1), the most significant first.
pub(super) struct ShortCfb<C, const BITS: usize> {
    cipher: Arc<C>,
    direction: Direction,
    /// The last ciphertext bits.
    register: u128,
}

impl<C, const BITS: usize> ShortCfb<C, BITS>
where
    C: BlockCipherEncrypt + BlockSizeUser<BlockSize = U16>,
{
    const MASK: u8 = u8::MAX >> (8 - BITS);

    pub(super) fn new(cipher: Arc<C>, iv: [u8; 16], direction: Direction) -> Self {
        const { assert!(BITS == 8 || BITS == 1) };
        Self {
            cipher,
            direction,
            register: u128::from_be_bytes(iv),
        }
    }

    pub(super) fn apply(&mut self, data: &mut [u8]) {
        match self.direction {
            Direction::Encrypt => data.iter_mut().for_each(|byte| self.encrypt(byte)),
            // Eight symbols are eight bytes, or the bits of one.
            Direction::Decrypt => data.chunks_mut(BITS).for_each(|bytes| self.decrypt(bytes)),
        }
    }

    fn encrypt(&mut self, byte: &mut u8) {
        let mut out = 0;
        for step in 0..PARALLEL_SYMBOLS / BITS {
            let mut block = Block::<C>::from(self.register.to_be_bytes());
            self.cipher.encrypt_block(&mut block);
            let at = 8 - BITS * (step + 1);
            let symbol = *byte >> at & Self::MASK ^ Self::key_symbol(&block);
            self.shift_in(symbol);
            out |= symbol << at;
        }
        *byte = out;
    }

    fn decrypt(&mut self, bytes: &mut [u8]) {
        let mut blocks = [Block::<C>::default(); PARALLEL_SYMBOLS];
        let count = bytes.len() * 8 / BITS;
        for (step, block) in blocks.iter_mut().enumerate().take(count) {
            *block = self.register.to_be_bytes().into();
            let (byte, at) = Self::symbol_position(step);
            debug_assert!(byte < bytes.len(), "the symbols must be in these bytes");
            let symbol = bytes.get(byte).copied().unwrap_or_default() >> at & Self::MASK;
            self.shift_in(symbol);
        }
        let (blocks, _) = blocks.split_at_mut(count);
        self.cipher.encrypt_blocks(blocks);
        for (step, block) in blocks.iter().enumerate() {
            let (byte, at) = Self::symbol_position(step);
            if let Some(byte) = bytes.get_mut(byte) {
                *byte ^= Self::key_symbol(block) << at;
            }
        }
    }

    /// Returns the index of the byte with a symbol, and the right shift to extract it.
    const fn symbol_position(step: usize) -> (usize, usize) {
        let bit = step * BITS;
        (bit / 8, 8 - BITS - bit % 8)
    }

    /// Returns the first symbol of an encrypted register.
    fn key_symbol(block: &Block<C>) -> u8 {
        block[0] >> (8 - BITS)
    }

    fn shift_in(&mut self, symbol: u8) {
        self.register = self.register << BITS | u128::from(symbol);
    }
}

impl<C, const BITS: usize> Drop for ShortCfb<C, BITS> {
    fn drop(&mut self) {
        self.register.zeroize();
    }
}
