//! AES in vectors: expanded keys and counter mode, eight registers at a time.
//!
//! The code is written once for both widths. Counters are computed in registers and their encryptions are
//! added directly to the data: no keystream goes through memory, where loads that are wider than the
//! preceding stores stall.

use core::arch::x86_64::*;

use zeroize::Zeroize;

use super::CpuPath;
use super::avx2::Y;
use super::avx512::Z;
use super::clmul256::Clmul256;
use super::keystream::Words;
use super::poly1305_lanes::Wide;
use super::vaes::Vaes;

/// Size of a block, in bytes.
const BLOCK: usize = 16;
/// Number of registers at a time: a round takes several cycles, and one can start in each.
const SIDE: usize = 8;

/// The proof that this CPU has AES and `VAES` for registers of one width.
pub(super) trait Aes: Copy {
    /// The register type.
    type Register: Words + Wide;

    /// Returns a register with one 128-bit number in each lane.
    fn everywhere(self, number: u128) -> Self::Register;
    /// Returns the index of each lane, starting at 0.
    fn numbers(self) -> Self::Register;
    /// Reverses the bytes of each lane.
    fn reversed(self, register: Self::Register) -> Self::Register;
    /// Performs a round other than the last.
    fn round(self, state: Self::Register, key: Self::Register) -> Self::Register;
    /// Performs the last round.
    fn last_round(self, state: Self::Register, key: Self::Register) -> Self::Register;

    /// Runs [`add`] in code compiled for these registers.
    fn enter<const N: usize>(self, rounds: &[u128; N], next: &mut u128, data: &mut [u8]);
}

/// A key with its `N - 1` rounds: 11, 13 or 15 round keys. Cleared on drop.
pub(super) struct Keys<P, const N: usize> {
    proof: P,
    /// In byte order.
    rounds: [u128; N],
}

impl<P: Aes, const N: usize> Keys<P, N> {
    /// Expands a key of `4 * (N - 7)` bytes.
    fn new<const L: usize>(proof: P, key: &[u8; L]) -> Self {
        const { assert!(L == 4 * (N - 7) && matches!(N, 11 | 13 | 15)) };
        // SAFETY: `proof` shows that the CPU has AES.
        let rounds = unsafe { expand_key(key) };
        Self { proof, rounds }
    }

    /// Returns the proof that the CPU can use it.
    pub(super) const fn proof(&self) -> P {
        self.proof
    }

    /// Returns the round keys, in byte order.
    pub(super) const fn rounds(&self) -> &[u128; N] {
        &self.rounds
    }

    #[inline]
    fn add(&self, next: &mut u128, data: &mut [u8]) {
        self.proof.enter(&self.rounds, next, data);
    }
}

impl<P, const N: usize> Drop for Keys<P, N> {
    fn drop(&mut self) {
        self.rounds.zeroize();
    }
}

/// An expanded key of one of the three lengths; cleared on drop.
pub(super) enum AnyKeys<P> {
    Aes128(Keys<P, 11>),
    Aes192(Keys<P, 13>),
    Aes256(Keys<P, 15>),
}

impl<P: Aes> AnyKeys<P> {
    /// Expands a key of 16, 24 or 32 bytes. Returns `None` for other lengths.
    fn new(proof: P, key: &[u8]) -> Option<Self> {
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

    #[inline]
    fn add(&self, next: &mut u128, data: &mut [u8]) {
        match self {
            Self::Aes128(keys) => keys.add(next, data),
            Self::Aes192(keys) => keys.add(next, data),
            Self::Aes256(keys) => keys.add(next, data),
        }
    }
}

/// An expanded key for the widest registers with AES; cleared on drop.
pub(super) enum AesKey {
    Wide(AnyKeys<Vaes>),
    Half(AnyKeys<Clmul256>),
}

impl AesKey {
    /// Expands a key of 16, 24 or 32 bytes. Returns `None` for other lengths, and on paths without such
    /// registers.
    pub(super) fn new(path: CpuPath, key: &[u8]) -> Option<Self> {
        let wide = match path {
            CpuPath::Portable | CpuPath::Avx2(_) => return None,
            CpuPath::Avx2Vaes(proof) => return AnyKeys::new(proof, key).map(Self::Half),
            CpuPath::Avx512(kernel) => kernel,
            CpuPath::Ifma(kernel) => kernel.without_ifma(),
        };
        AnyKeys::new(Vaes::detect(wide)?, key).map(Self::Wide)
    }

    /// Adds the keystream from block `next` on to `data`, and advances `next`; the last block may be
    /// partial.
    #[inline]
    pub(super) fn add(&self, next: &mut u128, data: &mut [u8]) {
        match self {
            Self::Wide(keys) => keys.add(next, data),
            Self::Half(keys) => keys.add(next, data),
        }
    }
}

/// Expands a key (FIPS 197 section 5.2), on words whose first byte is the lowest.
#[target_feature(enable = "aes")]
fn expand_key<const N: usize, const L: usize>(key: &[u8; L]) -> [u128; N] {
    let mut rounds = [0; N];
    let mut words = [0u32; 60];
    for (word, octets) in words.iter_mut().zip(key.as_chunks().0) {
        *word = u32::from_le_bytes(*octets);
    }
    let (length, mut constant) = (L / 4, 1u8);
    for n in length..4 * N {
        let mut word = words[n - 1];
        if n % length == 0 {
            word = sub_word(word).rotate_right(8) ^ u32::from(constant);
            constant = (constant << 1) ^ ((constant >> 7) * 0x1b);
        } else if length > 6 && n % length == 4 {
            word = sub_word(word);
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

/// Applies the S-box to each byte, in constant time.
#[inline]
#[target_feature(enable = "aes")]
fn sub_word(word: u32) -> u32 {
    let all = _mm_set1_epi32(word.cast_signed());
    _mm_cvtsi128_si32(_mm_aeskeygenassist_si128::<0>(all)).cast_unsigned()
}

/// Adds the keystream from block `next` on to `data`, and advances `next`.
#[inline(always)]
#[allow(
    clippy::cast_possible_truncation,
    reason = "only the lower half is counted"
)]
pub(super) fn add<P: Aes, const N: usize>(
    proof: P,
    rounds: &[u128; N],
    next: &mut u128,
    data: &mut [u8],
) {
    let blocks = data.len().div_ceil(BLOCK) as u64;
    if (*next as u64).checked_add(blocks).is_some() {
        add_without_carry(proof, rounds, *next, data);
        *next += u128::from(blocks);
        return;
    }
    // The lower half of the counter wraps, once in 2⁶⁴ blocks: lanes do not carry.
    for block in data.chunks_mut(BLOCK) {
        add_without_carry(proof, rounds, *next, block);
        *next = next.wrapping_add(1);
    }
}

/// Like [`add`], for blocks that share the upper half of the counter.
#[inline(always)]
fn add_without_carry<P: Aes, const N: usize>(
    proof: P,
    rounds: &[u128; N],
    next: u128,
    data: &mut [u8],
) {
    let width = <P::Register as Words>::BYTES;
    let mut keys = [proof.everywhere(0); N];
    for (key, round) in keys.iter_mut().zip(rounds) {
        *key = proof.everywhere(*round);
    }
    let mut counter = CounterLanes {
        proof,
        lanes: proof.everywhere(next).add64(proof.numbers()),
        step: proof.everywhere((width / BLOCK) as u128),
    };
    let mut sets = data.chunks_exact_mut(SIDE * width);
    for set in &mut sets {
        counter.add_to::<SIDE, N>(&keys, set);
    }
    // Use no more registers than the rest needs, in three sizes.
    let rest = sets.into_remainder();
    if rest.len() > SIDE / 2 * width {
        counter.add_to::<SIDE, N>(&keys, rest);
    } else if rest.len() > width {
        counter.add_to::<{ SIDE / 2 }, N>(&keys, rest);
    } else if !rest.is_empty() {
        counter.add_to::<1, N>(&keys, rest);
    }
}

/// The counters of the next blocks, each as a number in its lane.
struct CounterLanes<P: Aes> {
    proof: P,
    lanes: P::Register,
    step: P::Register,
}

impl<P: Aes> CounterLanes<P> {
    /// Adds the keystream of the next `M` registers to at most that many bytes.
    #[inline(always)]
    fn add_to<const M: usize, const N: usize>(
        &mut self,
        rounds: &[P::Register; N],
        data: &mut [u8],
    ) {
        let proof = self.proof;
        let [first, middle @ .., last] = rounds.as_slice() else {
            return;
        };
        let mut states = [*first; M];
        for state in &mut states {
            *state = proof.reversed(self.lanes).xor(*first);
            self.lanes = self.lanes.add64(self.step);
        }
        for round in middle {
            for state in &mut states {
                *state = proof.round(*state, *round);
            }
        }
        let width = <P::Register as Words>::BYTES;
        for (state, place) in states.into_iter().zip(data.chunks_mut(width)) {
            proof.last_round(state, *last).xor_into(place);
        }
    }
}

/// Returns its words, the lowest first.
#[inline(always)]
#[allow(
    clippy::cast_possible_truncation,
    reason = "the value is one word of several"
)]
const fn words(number: u128) -> [u32; 4] {
    [
        number as u32,
        (number >> 32) as u32,
        (number >> 64) as u32,
        (number >> 96) as u32,
    ]
}

/// Implements [`Aes`] for a proof and its registers, with the intrinsics of that width.
macro_rules! aes {
    ($proof:ty, $register:ident, $features:literal, $shuffle:ident, $round:ident, $last:ident) => {
        impl Aes for $proof {
            type Register = $register;

            #[inline(always)]
            fn everywhere(self, number: u128) -> $register {
                $register::repeat(self.without(), &words(number))
            }

            #[inline(always)]
            fn numbers(self) -> $register {
                $register::load64(self.without(), &[0, 0, 1, 0, 2, 0, 3, 0])
            }

            #[inline(always)]
            fn reversed(self, register: $register) -> $register {
                let order = self.everywhere(0x0001_0203_0405_0607_0809_0a0b_0c0d_0e0f);
                // SAFETY: `self` shows that the features are there.
                let octets = unsafe { $shuffle(register.raw(), order.raw()) };
                $register::from_raw(self.without(), octets)
            }

            #[inline(always)]
            fn round(self, state: $register, key: $register) -> $register {
                // SAFETY: `self` shows that the features are there.
                let state = unsafe { $round(state.raw(), key.raw()) };
                $register::from_raw(self.without(), state)
            }

            #[inline(always)]
            fn last_round(self, state: $register, key: $register) -> $register {
                // SAFETY: `self` shows that the features are there.
                let state = unsafe { $last(state.raw(), key.raw()) };
                $register::from_raw(self.without(), state)
            }

            #[inline]
            fn enter<const N: usize>(self, rounds: &[u128; N], next: &mut u128, data: &mut [u8]) {
                #[target_feature(enable = $features)]
                fn enter<const N: usize>(
                    proof: $proof,
                    rounds: &[u128; N],
                    next: &mut u128,
                    data: &mut [u8],
                ) {
                    add(proof, rounds, next, data);
                }
                // SAFETY: `self` shows that the features are there.
                unsafe { enter(self, rounds, next, data) }
            }
        }
    };
}

aes!(
    Vaes,
    Z,
    "aes,vaes,avx512f,avx512bw,avx512dq,avx512vl",
    _mm512_shuffle_epi8,
    _mm512_aesenc_epi128,
    _mm512_aesenclast_epi128
);
aes!(
    Clmul256,
    Y,
    "aes,vaes,avx2",
    _mm256_shuffle_epi8,
    _mm256_aesenc_epi128,
    _mm256_aesenclast_epi128
);
