//! Counter mode (NIST SP 800-38A section 6.5) for ciphers with 128-bit blocks; the counter is the
//! whole block, big-endian.

use std::sync::Arc;

use aes::cipher::{
    Block, BlockCipherEncBackend, BlockCipherEncClosure, BlockCipherEncrypt, BlockSizeUser,
    ParBlocks, array::Array, consts::U16, typenum::Unsigned,
};
use zeroize::Zeroize;

use super::feedback::xor;

const BLOCK: usize = 16;

/// The state of a stream; both directions are alike.
pub(super) struct Counter<C> {
    cipher: Arc<C>,
    /// The next block to encrypt.
    next: u128,
    /// Keystream of the block begun, if `used` is not 0.
    keystream: [u8; BLOCK],
    used: usize,
}

impl<C: BlockCipherEncrypt + BlockSizeUser<BlockSize = U16>> Counter<C> {
    pub(super) const fn new(cipher: Arc<C>, iv: [u8; BLOCK]) -> Self {
        Self {
            cipher,
            next: u128::from_be_bytes(iv),
            keystream: [0; BLOCK],
            used: 0,
        }
    }

    pub(super) fn apply(&mut self, data: &mut [u8]) {
        let open = if self.used == 0 { 0 } else { BLOCK - self.used };
        let (head, rest) = data.split_at_mut(open.min(data.len()));
        self.part(head);
        let (blocks, tail) = Array::slice_as_chunks_mut(rest);
        if !blocks.is_empty() {
            self.cipher.encrypt_with_backend(Whole {
                next: &mut self.next,
                blocks,
            });
        }
        if !tail.is_empty() {
            let mut block = step(&mut self.next);
            self.cipher.encrypt_block(&mut block);
            self.keystream = block.into();
            self.part(tail);
        }
    }

    /// No further than to the end of the block begun.
    fn part(&mut self, data: &mut [u8]) {
        for (byte, key) in data.iter_mut().zip(self.keystream.iter().skip(self.used)) {
            *byte ^= key;
        }
        self.used = (self.used + data.len()) % BLOCK;
    }
}

impl<C> Drop for Counter<C> {
    fn drop(&mut self) {
        self.keystream.zeroize();
    }
}

/// Whole blocks, in code that is compiled for the cipher's CPU features as one loop.
struct Whole<'a> {
    next: &'a mut u128,
    blocks: &'a mut [Array<u8, U16>],
}

impl BlockSizeUser for Whole<'_> {
    type BlockSize = U16;
}

impl BlockCipherEncClosure for Whole<'_> {
    #[inline(always)]
    fn call<B: BlockCipherEncBackend<BlockSize = U16>>(self, backend: &B) {
        let mut next = *self.next;
        let mut keys = ParBlocks::<B>::default();
        for set in self.blocks.chunks_mut(B::ParBlocksSize::USIZE) {
            fill(keys.get_mut(..set.len()).unwrap_or_default(), &mut next);
            if set.len() == B::ParBlocksSize::USIZE {
                backend.encrypt_par_blocks_inplace(&mut keys);
            } else if let Some(keys) = keys.get_mut(..set.len()) {
                backend.encrypt_tail_blocks_inplace(keys);
            }
            for (block, key) in set.iter_mut().zip(&keys) {
                xor(block, key);
            }
        }
        *self.next = next;
    }
}

/// Writes the next counters. All but a few sets share the upper half: one addition a counter
/// instead of two, and no carry.
#[inline(always)]
fn fill(keys: &mut [Block<Whole<'static>>], next: &mut u128) {
    let bytes = next.to_be_bytes();
    let (Some(high), Some(low)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) else {
        return;
    };
    let (high, low) = (u64::from_le_bytes(*high), u64::from_be_bytes(*low));
    let count = keys.len() as u64;
    if low.checked_add(count).is_none() {
        for key in keys {
            *key = step(next);
        }
        return;
    }
    for (i, key) in (0..count).zip(keys) {
        let low = u64::from_le_bytes(low.wrapping_add(i).to_be_bytes());
        let block = u128::from(low) << 64 | u128::from(high);
        *key = block.to_le_bytes().into();
    }
    *next = next.wrapping_add(u128::from(count));
}

#[inline(always)]
fn step(next: &mut u128) -> Block<Whole<'static>> {
    let block = next.to_be_bytes().into();
    *next = next.wrapping_add(1);
    block
}

#[cfg(test)]
mod tests {
    use super::*;
    use aes::cipher::KeyInit;

    /// In one piece, and byte by byte, which counts in another way; around the carries.
    #[test]
    fn counters_carry() {
        let cipher = Arc::new(aes::Aes256::new(&[7; 32].into()));
        let mut ivs = vec![[0xff; BLOCK], [0; BLOCK]];
        for back in [1, 3, 64, 100] {
            let next = (5u128 << 64).wrapping_sub(back);
            ivs.push(next.to_be_bytes());
        }
        for iv in ivs {
            let (mut whole, mut bytes) = (vec![0; 4000], vec![0; 4000]);
            Counter::new(cipher.clone(), iv).apply(&mut whole);
            let mut counter = Counter::new(cipher.clone(), iv);
            for byte in bytes.chunks_mut(1) {
                counter.apply(byte);
            }
            assert_eq!(whole, bytes, "{iv:02x?}");
        }
    }
}
