//! TEA with 8 cycles and XTEA with 32 (Wheeler and Needham, 1994 and 1997), with big-endian words, for many
//! blocks in parallel.
//!
//! One block is a sequence of about a hundred dependent instructions; thirty-two blocks are the same
//! sequence over vectors. Runs in constant time.

use aes::cipher::{
    Block, BlockCipherEncBackend, BlockCipherEncClosure, BlockCipherEncrypt, BlockSizeUser, InOut,
    InOutBuf, ParBlocks, ParBlocksSizeUser,
    consts::{U8, U32},
};
use zeroize::Zeroize;

use crate::simd::{CpuPath, VectorLoop, run_widest};

const DELTA: u32 = 0x9e37_79b9;
/// Number of TEA cycles in kcp-go: a quarter of what its authors prescribe.
const TEA_CYCLES: u32 = 8;
const XTEA_CYCLES: usize = 32;

/// Number of blocks in a set, and in a part of one.
const SET: usize = 32;
const PART: usize = 8;

/// A cipher of word pairs.
pub(super) trait PairCipher {
    /// Performs all cycles over `N` blocks: the first words, the second words.
    fn encrypt_words<const N: usize>(&self, words: &mut [[u32; N]; 2]);
}

/// A TEA key.
pub(super) struct Tea([u32; 4]);

/// An XTEA key, added to the running sum of [`DELTA`] for each half of a cycle.
pub(super) struct Xtea([[u32; 2]; XTEA_CYCLES]);

impl Tea {
    pub(super) fn new(key: &[u8; 16]) -> Self {
        Self(to_words(key))
    }
}

impl Xtea {
    pub(super) fn new(key: &[u8; 16]) -> Self {
        let mut key = to_words(key);
        let mut sum = 0u32;
        let schedule = core::array::from_fn(|_| {
            let first = sum.wrapping_add(key[(sum & 3) as usize]);
            sum = sum.wrapping_add(DELTA);
            [first, sum.wrapping_add(key[(sum >> 11 & 3) as usize])]
        });
        key.zeroize();
        Self(schedule)
    }
}

impl PairCipher for Tea {
    #[inline(always)]
    fn encrypt_words<const N: usize>(&self, words: &mut [[u32; N]; 2]) {
        let [k0, k1, k2, k3] = self.0;
        let mut sum = 0u32;
        for _ in 0..TEA_CYCLES {
            sum = sum.wrapping_add(DELTA);
            let [a, b] = words;
            for (a, b) in a.iter_mut().zip(&*b) {
                *a = a.wrapping_add(half_cycle(*b, sum, k0, k1));
            }
            for (b, a) in b.iter_mut().zip(&*a) {
                *b = b.wrapping_add(half_cycle(*a, sum, k2, k3));
            }
        }
    }
}

#[inline(always)]
const fn half_cycle(word: u32, sum: u32, k: u32, l: u32) -> u32 {
    (word << 4).wrapping_add(k) ^ word.wrapping_add(sum) ^ (word >> 5).wrapping_add(l)
}

impl PairCipher for Xtea {
    #[inline(always)]
    fn encrypt_words<const N: usize>(&self, words: &mut [[u32; N]; 2]) {
        let mix = |word: u32| (word << 4 ^ word >> 5).wrapping_add(word);
        for [first, second] in &self.0 {
            let [a, b] = words;
            for (a, b) in a.iter_mut().zip(&*b) {
                *a = a.wrapping_add(mix(*b) ^ first);
            }
            for (b, a) in b.iter_mut().zip(&*a) {
                *b = b.wrapping_add(mix(*a) ^ second);
            }
        }
    }
}

impl Drop for Tea {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl Drop for Xtea {
    fn drop(&mut self) {
        self.0.as_flattened_mut().zeroize();
    }
}

/// A cipher of word pairs as a block cipher.
pub(super) struct PairBlockCipher<S> {
    cipher: S,
    path: CpuPath,
}

impl<S> PairBlockCipher<S> {
    pub(super) const fn new(path: CpuPath, cipher: S) -> Self {
        Self { cipher, path }
    }
}

impl<S: PairCipher> PairBlockCipher<S> {
    /// Encrypts `N` blocks in parallel; those beyond the end of `blocks` are zeros and are discarded.
    #[inline(always)]
    fn blocks<const N: usize>(&self, mut blocks: InOutBuf<'_, '_, Block<Self>>) {
        let mut words = [[0; N]; 2];
        let [a, b] = &mut words;
        for ((block, a), b) in blocks.get_in().iter().zip(a).zip(b) {
            let word = u64::from_be_bytes(block.0);
            (*a, *b) = ((word >> 32) as u32, (word & 0xffff_ffff) as u32);
        }
        self.cipher.encrypt_words(&mut words);
        let [a, b] = &words;
        for ((block, a), b) in blocks.get_out().iter_mut().zip(a).zip(b) {
            block.0 = (u64::from(*a) << 32 | u64::from(*b)).to_be_bytes();
        }
    }
}

impl<S> BlockSizeUser for PairBlockCipher<S> {
    type BlockSize = U8;
}

impl<S> ParBlocksSizeUser for PairBlockCipher<S> {
    type ParBlocksSize = U32;
}

impl<S: PairCipher> BlockCipherEncBackend for PairBlockCipher<S> {
    #[inline(always)]
    fn encrypt_block(&self, mut block: InOut<'_, '_, Block<Self>>) {
        let mut one = [block.clone_in()];
        self.blocks::<1>(one[..].as_mut().into());
        [*block.get_out()] = one;
    }

    #[inline(always)]
    fn encrypt_par_blocks(&self, blocks: InOut<'_, '_, ParBlocks<Self>>) {
        self.blocks::<SET>(blocks.into_buf());
    }

    #[inline(always)]
    fn encrypt_tail_blocks(&self, blocks: InOutBuf<'_, '_, Block<Self>>) {
        let (parts, rest) = blocks.into_chunks::<U8>();
        for part in parts {
            self.blocks::<PART>(part.into_buf());
        }
        if !rest.is_empty() {
            self.blocks::<PART>(rest);
        }
    }
}

impl<S: PairCipher> BlockCipherEncrypt for PairBlockCipher<S> {
    #[inline]
    fn encrypt_with_backend(&self, closure: impl BlockCipherEncClosure<BlockSize = U8>) {
        run_widest(
            self.path,
            EncryptLoop {
                cipher: self,
                closure,
            },
        );
    }
}

struct EncryptLoop<'c, S, F> {
    cipher: &'c PairBlockCipher<S>,
    closure: F,
}

impl<S: PairCipher, F: BlockCipherEncClosure<BlockSize = U8>> VectorLoop for EncryptLoop<'_, S, F> {
    #[inline(always)]
    fn run_loop(self) {
        self.closure.call(self.cipher);
    }
}

fn to_words(key: &[u8; 16]) -> [u32; 4] {
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(key.as_chunks().0) {
        *word = u32::from_be_bytes(*bytes);
    }
    words
}
