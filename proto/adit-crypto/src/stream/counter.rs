//! Counter mode (NIST SP 800-38A section 6.5) for ciphers with 128-bit blocks; the counter is the
//! whole block, big-endian.

use std::sync::Arc;

use adit_wire::subslice_mut;
use aes::cipher::{
    Block, BlockCipherEncBackend, BlockCipherEncClosure, BlockCipherEncrypt, BlockSizeUser,
    ParBlocks, array::Array, consts::U16, typenum::Unsigned,
};
use zeroize::Zeroize;

use super::feedback::xor_block;
use crate::simd::CtrKey;

const BLOCK: usize = 16;

/// A generator of keystream from counters.
pub(super) trait Keystream {
    /// Adds the keystream from block `next` on to whole blocks, and advances `next`.
    fn add_keystream(&self, next: &mut u128, blocks: &mut [u8]);

    /// Returns block `next` of the keystream, and advances `next`.
    fn next_block(&self, next: &mut u128) -> [u8; BLOCK];
}

impl<C: BlockCipherEncrypt + BlockSizeUser<BlockSize = U16>> Keystream for C {
    fn add_keystream(&self, next: &mut u128, blocks: &mut [u8]) {
        let (blocks, _) = Array::slice_as_chunks_mut(blocks);
        self.encrypt_with_backend(WholeBlocks { next, blocks });
    }

    fn next_block(&self, next: &mut u128) -> [u8; BLOCK] {
        let mut block = next_counter(next);
        self.encrypt_block(&mut block);
        block.into()
    }
}

impl Keystream for CtrKey {
    fn add_keystream(&self, next: &mut u128, blocks: &mut [u8]) {
        Self::add(self, next, blocks);
    }

    fn next_block(&self, next: &mut u128) -> [u8; BLOCK] {
        let mut block = [0; BLOCK];
        Self::add(self, next, &mut block);
        block
    }
}

/// The state of a stream; the same for both directions.
pub(super) struct CounterMode<C> {
    cipher: Arc<C>,
    /// The next block to encrypt.
    next: u128,
    /// Keystream of the current block, if `used` is not 0.
    keystream: [u8; BLOCK],
    used: usize,
}

impl<C: Keystream> CounterMode<C> {
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
        self.apply_partial(head);
        let (blocks, tail) = rest.split_at_mut(rest.len() - rest.len() % BLOCK);
        if !blocks.is_empty() {
            self.cipher.add_keystream(&mut self.next, blocks);
        }
        if !tail.is_empty() {
            self.keystream = self.cipher.next_block(&mut self.next);
            self.apply_partial(tail);
        }
    }

    /// Processes data up to the end of the current block.
    fn apply_partial(&mut self, data: &mut [u8]) {
        for (byte, key) in data.iter_mut().zip(self.keystream.iter().skip(self.used)) {
            *byte ^= key;
        }
        self.used = (self.used + data.len()) % BLOCK;
    }
}

impl<C> Drop for CounterMode<C> {
    fn drop(&mut self) {
        self.keystream.zeroize();
    }
}

/// Whole blocks, in code that is compiled for the cipher's CPU features as one loop.
struct WholeBlocks<'a> {
    next: &'a mut u128,
    blocks: &'a mut [Array<u8, U16>],
}

impl BlockSizeUser for WholeBlocks<'_> {
    type BlockSize = U16;
}

impl BlockCipherEncClosure for WholeBlocks<'_> {
    #[inline(always)]
    fn call<B: BlockCipherEncBackend<BlockSize = U16>>(self, backend: &B) {
        let mut next = *self.next;
        let mut keys = ParBlocks::<B>::default();
        for set in self.blocks.chunks_mut(B::ParBlocksSize::USIZE) {
            fill_counters(subslice_mut(&mut keys, ..set.len()), &mut next);
            if set.len() == B::ParBlocksSize::USIZE {
                backend.encrypt_par_blocks_inplace(&mut keys);
            } else if let Some(keys) = keys.get_mut(..set.len()) {
                backend.encrypt_tail_blocks_inplace(keys);
            }
            for (block, key) in set.iter_mut().zip(&keys) {
                xor_block(block, key);
            }
        }
        *self.next = next;
    }
}

/// Writes the next counters. Almost all sets share the upper half: one addition per counter instead of two,
/// and no carry.
#[inline(always)]
fn fill_counters(keys: &mut [Block<WholeBlocks<'static>>], next: &mut u128) {
    let bytes = next.to_be_bytes();
    let (Some(high), Some(low)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) else {
        return;
    };
    let (high, low) = (u64::from_le_bytes(*high), u64::from_be_bytes(*low));
    let count = keys.len() as u64;
    if low.checked_add(count).is_none() {
        for key in keys {
            *key = next_counter(next);
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
fn next_counter(next: &mut u128) -> Block<WholeBlocks<'static>> {
    let block = next.to_be_bytes().into();
    *next = next.wrapping_add(1);
    block
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::CpuPath;
    use aes::cipher::KeyInit;
    use aes::{Aes128Enc, Aes192Enc, Aes256Enc};

    /// Compares one call with calls byte by byte, which take another path; around the carries.
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
            CounterMode::new(cipher.clone(), iv).apply(&mut whole);
            let mut counter = CounterMode::new(cipher.clone(), iv);
            for byte in bytes.chunks_mut(1) {
                counter.apply(byte);
            }
            assert_eq!(whole, bytes, "{iv:02x?}");
        }
    }

    /// Compares the vector code with the `aes` crate: every key length, on every path that has it, around
    /// every size of set, from the middle of a block, and around the carries.
    #[test]
    fn vectors_make_the_same_keystream() {
        let key: [u8; 32] = core::array::from_fn(|n| (n * 73 + 5) as u8);
        let starts = [0, 1 << 64, u128::MAX - 3, (7 << 64) - 9, u128::MAX >> 3];
        for path in CpuPath::available() {
            for length in [16, 24, 32] {
                let key = &key[..length];
                let Some(wide) = CtrKey::new(path, key).map(Arc::new) else {
                    continue;
                };
                for (start, len) in starts.into_iter().flat_map(|start| {
                    let lengths = (0..1100).chain([4096, 32_768 + 16, 40_000]);
                    lengths.map(move |len| (start, len))
                }) {
                    let data: Vec<u8> = (0..len).map(|n| (n * n) as u8).collect();
                    let (mut ours, mut theirs) = (data.clone(), data);
                    let cut = len / 3;
                    let iv = u128::to_be_bytes(start);
                    let mut counter = CounterMode::new(wide.clone(), iv);
                    counter.apply(&mut ours[..cut]);
                    counter.apply(&mut ours[cut..]);
                    match length {
                        16 => whole(Aes128Enc::new_from_slice(key).unwrap(), iv, &mut theirs),
                        24 => whole(Aes192Enc::new_from_slice(key).unwrap(), iv, &mut theirs),
                        _ => whole(Aes256Enc::new_from_slice(key).unwrap(), iv, &mut theirs),
                    }
                    assert!(ours == theirs, "{path:?}, {length}, {start:x}, {len}");
                }
            }
        }
        assert!(CtrKey::new(CpuPath::of_process(), &key[..31]).is_none());
        assert!(CtrKey::new(CpuPath::Portable, &key).is_none());
    }

    fn whole(cipher: impl Keystream, iv: [u8; BLOCK], data: &mut [u8]) {
        CounterMode::new(Arc::new(cipher), iv).apply(data);
    }
}
