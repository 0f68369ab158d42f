//! AES in 512-bit vectors, four blocks in a register: its keys, and the counter mode, eight registers
//! at a time.
//!
//! Counters are made in registers and what AES makes of them is added to the data at once: no
//! keystream goes through memory, where loads that are wider than the stores before them wait.

use core::arch::x86_64::*;

use zeroize::Zeroize;

use super::Path;
use super::avx512::{Avx512, Z};
use super::keystream::Words;

/// Octets of a block.
const BLOCK: usize = 16;
/// Octets of a register.
const WIDTH: usize = 64;
/// Registers at a time: a round takes several cycles, and one can begin in each.
const SIDE: usize = 8;

/// Shows that this CPU has AES and VAES beside AVX-512 F, BW, DQ and VL.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vaes(Avx512);

impl Vaes {
    /// The proof, if this CPU has it all.
    pub(super) fn detect(wide: Avx512) -> Option<Self> {
        (is_x86_feature_detected!("aes") && is_x86_feature_detected!("vaes")).then_some(Self(wide))
    }
}

/// A key with its `N - 1` rounds: 11, 13 or 15. Cleared on drop.
pub(crate) struct Keys<const N: usize> {
    proof: Vaes,
    /// In the order of their octets.
    rounds: [u128; N],
}

impl<const N: usize> Keys<N> {
    /// Expands a key of `4 * (N - 7)` octets.
    pub(super) fn new<const L: usize>(proof: Vaes, key: &[u8; L]) -> Self {
        const { assert!(L == 4 * (N - 7) && matches!(N, 11 | 13 | 15)) };
        // SAFETY: `proof` shows that the features are there.
        let rounds = unsafe { expand(key) };
        Self { proof, rounds }
    }

    /// The keys of the rounds, in the order of their octets.
    pub(super) const fn rounds(&self) -> &[u128; N] {
        &self.rounds
    }

    /// Adds the keystream from block `next` on to `data`, and counts its blocks; the last may be
    /// the first part of one.
    #[inline]
    pub(super) fn add(&self, next: &mut u128, data: &mut [u8]) {
        // SAFETY: `self.proof` shows that the features are there.
        unsafe { add(self, next, data) }
    }
}

impl<const N: usize> Drop for Keys<N> {
    fn drop(&mut self) {
        self.rounds.zeroize();
    }
}

/// An expanded key of one of the three lengths; cleared on drop.
pub(crate) enum AnyKeys {
    Aes128(Keys<11>),
    Aes192(Keys<13>),
    Aes256(Keys<15>),
}

impl AnyKeys {
    /// Expands a key of 16, 24 or 32 octets. `None` for others, and on paths without such vectors.
    pub(super) fn new(path: Path, key: &[u8]) -> Option<Self> {
        let wide = match path {
            Path::Portable | Path::Avx2(_) | Path::Avx2Vaes(_) => return None,
            Path::Avx512(kernel) => kernel,
            Path::Ifma(kernel) => kernel.without(),
        };
        let proof = Vaes::detect(wide)?;
        if let Ok(key) = <&[u8; 16]>::try_from(key) {
            Some(Self::Aes128(Keys::new(proof, key)))
        } else if let Ok(key) = <&[u8; 24]>::try_from(key) {
            Some(Self::Aes192(Keys::new(proof, key)))
        } else if let Ok(key) = <&[u8; 32]>::try_from(key) {
            Some(Self::Aes256(Keys::new(proof, key)))
        } else {
            None
        }
    }

    /// Adds the keystream from block `next` on to `data`, and counts its blocks; the last may be
    /// the first part of one.
    #[inline]
    pub(crate) fn add(&self, next: &mut u128, data: &mut [u8]) {
        match self {
            Self::Aes128(keys) => keys.add(next, data),
            Self::Aes192(keys) => keys.add(next, data),
            Self::Aes256(keys) => keys.add(next, data),
        }
    }
}

/// FIPS 197 section 5.2, on words whose first octet is the lowest.
#[target_feature(enable = "aes")]
pub(super) fn expand<const N: usize, const L: usize>(key: &[u8; L]) -> [u128; N] {
    let mut rounds = [0; N];
    let mut words = [0u32; 60];
    for (word, octets) in words.iter_mut().zip(key.as_chunks().0) {
        *word = u32::from_le_bytes(*octets);
    }
    let (length, mut constant) = (L / 4, 1u8);
    for n in length..4 * N {
        let mut word = words[n - 1];
        if n % length == 0 {
            word = substituted(word).rotate_right(8) ^ u32::from(constant);
            constant = (constant << 1) ^ ((constant >> 7) * 0x1b);
        } else if length > 6 && n % length == 4 {
            word = substituted(word);
        }
        words[n] = words[n - length] ^ word;
    }
    for (round, words) in rounds.iter_mut().zip(words.as_chunks::<4>().0) {
        for (n, word) in (0..).zip(words) {
            *round |= u128::from(*word) << (32 * n);
        }
    }
    words.zeroize();
    rounds
}

/// The S-box on each octet, in a constant time.
#[inline]
#[target_feature(enable = "aes")]
fn substituted(word: u32) -> u32 {
    let all = _mm_set1_epi32(word.cast_signed());
    _mm_cvtsi128_si32(_mm_aeskeygenassist_si128::<0>(all)).cast_unsigned()
}

/// What a path of this width is compiled for.
#[target_feature(enable = "aes,vaes,avx512f,avx512bw,avx512dq,avx512vl")]
fn add<const N: usize>(keys: &Keys<N>, next: &mut u128, data: &mut [u8]) {
    let [low, _] = halves(*next);
    let blocks = data.len().div_ceil(BLOCK) as u64;
    if low.checked_add(blocks).is_some() {
        *next += u128::from(blocks);
        return run(keys, *next - u128::from(blocks), data);
    }
    // The lower half of the counter comes round, once in 2⁶⁴ blocks: lanes do not carry.
    for block in data.chunks_mut(BLOCK) {
        run(keys, *next, block);
        *next = next.wrapping_add(1);
    }
}

/// The same for blocks that share the upper half of the counter.
#[inline]
#[target_feature(enable = "aes,vaes,avx512f,avx512bw,avx512dq,avx512vl")]
fn run<const N: usize>(keys: &Keys<N>, next: u128, data: &mut [u8]) {
    let mut counter = Counter::new(next);
    let rounds = wide(&keys.rounds);
    let (sets, rest) = data.as_chunks_mut::<{ SIDE * WIDTH }>();
    for set in sets {
        let keystream = counter.encrypted::<SIDE, N>(&rounds);
        for (register, place) in keystream.into_iter().zip(set.as_chunks_mut::<WIDTH>().0) {
            Z::from_raw(keys.proof.0, register).xor_into(place);
        }
    }
    // No more registers than the rest needs, in three sizes.
    if rest.len() > SIDE / 2 * WIDTH {
        counter.add_to::<SIDE, N>(keys.proof, &rounds, rest);
    } else if rest.len() > WIDTH {
        counter.add_to::<{ SIDE / 2 }, N>(keys.proof, &rounds, rest);
    } else if !rest.is_empty() {
        counter.add_to::<1, N>(keys.proof, &rounds, rest);
    }
}

/// The keys of the rounds, each four times.
#[inline]
#[target_feature(enable = "avx512f")]
fn wide<const N: usize>(rounds: &[u128; N]) -> [__m512i; N] {
    let mut wide = [_mm512_setzero_si512(); N];
    for (wide, round) in wide.iter_mut().zip(rounds) {
        *wide = everywhere(*round);
    }
    wide
}

/// A number in all four lanes.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn everywhere(number: u128) -> __m512i {
    let [low, high] = halves(number);
    let lane = _mm_set_epi64x(high.cast_signed(), low.cast_signed());
    _mm512_broadcast_i32x4(lane)
}

/// The lower and the upper half.
#[allow(
    clippy::cast_possible_truncation,
    reason = "the cut is what is asked for"
)]
const fn halves(number: u128) -> [u64; 2] {
    [number as u64, (number >> 64) as u64]
}

/// The counters of the next four blocks, each as a number in its lane.
struct Counter {
    lanes: __m512i,
    four: __m512i,
    /// Brings the highest octet of a lane to the front.
    order: __m512i,
}

impl Counter {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new(next: u128) -> Self {
        Self {
            lanes: _mm512_add_epi64(everywhere(next), _mm512_set_epi64(0, 3, 0, 2, 0, 1, 0, 0)),
            four: _mm512_set_epi64(0, 4, 0, 4, 0, 4, 0, 4),
            order: everywhere(0x0001_0203_0405_0607_0809_0a0b_0c0d_0e0f),
        }
    }

    /// The keystream of the next `M` registers.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,vaes")]
    fn encrypted<const M: usize, const N: usize>(&mut self, rounds: &[__m512i; N]) -> [__m512i; M] {
        let mut state = [_mm512_setzero_si512(); M];
        let [first, middle @ .., last] = rounds.as_slice() else {
            return state;
        };
        for state in &mut state {
            let block = _mm512_shuffle_epi8(self.lanes, self.order);
            *state = _mm512_xor_si512(block, *first);
            self.lanes = _mm512_add_epi64(self.lanes, self.four);
        }
        for round in middle {
            for state in &mut state {
                *state = _mm512_aesenc_epi128(*state, *round);
            }
        }
        for state in &mut state {
            *state = _mm512_aesenclast_epi128(*state, *last);
        }
        state
    }

    /// Adds it to at most `M` registers' worth of octets.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,vaes")]
    fn add_to<const M: usize, const N: usize>(
        &mut self,
        proof: Vaes,
        rounds: &[__m512i; N],
        data: &mut [u8],
    ) {
        let keystream = self.encrypted::<M, N>(rounds);
        for (register, place) in keystream.into_iter().zip(data.chunks_mut(WIDTH)) {
            Z::from_raw(proof.0, register).xor_into(place);
        }
    }
}
