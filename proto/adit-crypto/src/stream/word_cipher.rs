//! ChaCha20 and Salsa20 as streams: any byte position, with the keystream kernels of [`crate::simd`].

use zeroize::Zeroize;

use super::Cipher;
use crate::{
    chacha, salsa,
    simd::{ChaChaRounds, CpuPath, xor_chacha20, xor_salsa20},
};

/// Size of a block, in bytes.
const BLOCK: usize = 64;

/// The block function and the position of its counter.
#[derive(Clone, Copy)]
enum BlockFunction {
    /// RFC 8439: one word, so that block 0 repeats after 256 GiB
    ChaChaIetf,
    /// Two words, 12 and 13
    ChaCha,
    /// Two words, 8 and 9
    Salsa,
}

/// The state of a stream; the same for both directions.
pub(super) struct WordCipher {
    core: BlockFunction,
    path: CpuPath,
    /// At block `counter` after each call.
    state: [u32; 16],
    counter: u64,
    /// Number of bytes of that block already used, and its keystream once a second call has needed it: a
    /// packet's last block is rarely needed twice.
    used: usize,
    keystream: Option<[u8; BLOCK]>,
}

impl WordCipher {
    /// Returns `None` if the cipher belongs to another family, or its IV has another length.
    pub(super) fn new(cipher: Cipher, key: &[u8; 32], iv: &[u8]) -> Option<Self> {
        let (core, state) = match cipher {
            Cipher::ChaCha20Ietf => (
                BlockFunction::ChaChaIetf,
                chacha::initial_state(key, iv.try_into().ok()?),
            ),
            Cipher::ChaCha20 => (
                BlockFunction::ChaCha,
                chacha::initial_state(key, &extend_nonce(iv.try_into().ok()?)),
            ),
            Cipher::XChaCha20 => {
                let (key, nonce) =
                    chacha::derive_xchacha(ChaChaRounds::TWENTY, key, iv.try_into().ok()?);
                (
                    BlockFunction::ChaCha,
                    chacha::initial_state(key.expose(), &nonce),
                )
            }
            Cipher::Salsa20 => (
                BlockFunction::Salsa,
                salsa::initial_state(key, iv.try_into().ok()?),
            ),
            Cipher::XSalsa20 => {
                let (key, nonce) = salsa::derive_xsalsa(key, iv.try_into().ok()?);
                (
                    BlockFunction::Salsa,
                    salsa::initial_state(key.expose(), &nonce),
                )
            }
            _ => return None,
        };
        Some(Self {
            core,
            path: CpuPath::of_process(),
            state,
            counter: 0,
            used: 0,
            keystream: None,
        })
    }

    pub(super) fn apply(&mut self, data: &mut [u8]) {
        let open = if self.used == 0 { 0 } else { BLOCK - self.used };
        let (head, rest) = data.split_at_mut(open.min(data.len()));
        if !head.is_empty() {
            self.apply_partial(head);
        }
        self.apply_whole(rest);
    }

    /// Processes data up to the end of the current block.
    fn apply_partial(&mut self, data: &mut [u8]) {
        let (core, path, state) = (self.core, self.path, &self.state);
        let keystream = self.keystream.get_or_insert_with(|| {
            let mut block = [0; BLOCK];
            core.xor(path, state, &mut block);
            block
        });
        for (byte, key) in data.iter_mut().zip(keystream.iter().skip(self.used)) {
            *byte ^= key;
        }
        self.used += data.len();
        if self.used == BLOCK {
            self.used = 0;
            self.keystream.zeroize();
            self.advance_blocks(1);
        }
    }

    /// Processes data from the start of a block.
    fn apply_whole(&mut self, mut data: &mut [u8]) {
        while !data.is_empty() {
            // The kernels use 32-bit counters.
            let blocks = (1 << 32) - (self.counter & u64::from(u32::MAX));
            let room = usize::try_from(blocks).map_or(usize::MAX, |n| n.saturating_mul(BLOCK));
            let (now, later) = data.split_at_mut(room.min(data.len()));
            self.core.xor(self.path, &self.state, now);
            self.used = now.len() % BLOCK;
            self.advance_blocks(now.len() / BLOCK);
            data = later;
        }
    }

    fn advance_blocks(&mut self, blocks: usize) {
        self.counter = self.counter.wrapping_add(blocks as u64);
        let low = (self.counter & u64::from(u32::MAX)) as u32;
        let high = (self.counter >> 32) as u32;
        match self.core {
            BlockFunction::ChaChaIetf => self.state[12] = low,
            BlockFunction::ChaCha => (self.state[12], self.state[13]) = (low, high),
            BlockFunction::Salsa => (self.state[8], self.state[9]) = (low, high),
        }
    }

    /// Moves to another block, as if all blocks before it had been used.
    #[cfg(test)]
    pub(super) fn seek_block(&mut self, block: u64) {
        assert!(self.used == 0 && self.keystream.is_none());
        self.counter = block;
        self.advance_blocks(0);
    }
}

impl BlockFunction {
    fn xor(self, path: CpuPath, state: &[u32; 16], buf: &mut [u8]) {
        match self {
            Self::ChaChaIetf | Self::ChaCha => xor_chacha20(path, state, buf),
            Self::Salsa => xor_salsa20(path, state, buf),
        }
    }
}

impl Drop for WordCipher {
    fn drop(&mut self) {
        self.state.zeroize();
        self.keystream.zeroize();
    }
}

/// Extends an 8-byte nonce to the kernels' 12 bytes: it follows the upper half of the counter.
fn extend_nonce(nonce: &[u8; 8]) -> [u8; 12] {
    let mut long = [0; 12];
    long[4..].copy_from_slice(nonce);
    long
}
