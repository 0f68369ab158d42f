//! 256-bit vectors: AVX2.

use core::arch::x86_64::*;

use super::{
    ChaChaRounds, Kernel, SalsaBlocks, TagInput, Task,
    avx512::Avx512,
    keystream::{self, Words},
    limbs26::Limbs26,
    poly1305_lanes::{self, Wide},
    wipe_stack,
};

/// The proof that this CPU has AVX2.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx2(());

/// Minimum number of blocks for which the vectors are faster than the scalar Poly1305.
const SHORTEST: usize = 20;

impl Avx2 {
    /// Returns the proof if this CPU has AVX2.
    pub(super) fn detect() -> Option<Self> {
        is_x86_feature_detected!("avx2").then_some(Self(()))
    }

    /// Returns the proof for a CPU with AVX-512, which also has AVX2.
    pub(super) const fn from_avx512(_: Avx512) -> Self {
        Self(())
    }
}

impl Kernel for Avx2 {
    #[inline(always)]
    fn enter<T: Task>(self, task: T) -> T::Output {
        // SAFETY: `self` shows that the feature is there.
        unsafe { run_with_avx2(self, task) }
    }

    #[inline(always)]
    fn xor_chacha(self, state: &[u32; 16], rounds: ChaChaRounds, buf: &mut [u8]) {
        // SAFETY: `self` shows that the feature is there.
        unsafe { xor_chacha(self, state, rounds, buf) }
    }

    #[inline(always)]
    fn xor_salsa(self, state: &[u32; 16], buf: &mut [u8]) {
        // SAFETY: `self` shows that the feature is there.
        unsafe { xor_salsa(self, state, buf) }
    }

    #[inline(always)]
    fn xor_salsa_blocks(self, state: &[u32; 16], pieces: SalsaBlocks<'_, '_>) {
        // SAFETY: `self` shows that the feature is there.
        unsafe { xor_salsa_blocks(self, state, pieces) }
    }

    #[inline(always)]
    fn poly1305_tag(self, key: &[u8; 32], data: &[u8], form: TagInput) -> [u8; 16] {
        // SAFETY: `self` shows that the feature is there.
        unsafe { poly1305_tag(self, key, data, form) }
    }
}

#[target_feature(enable = "avx2")]
fn run_with_avx2<T: Task>(proof: Avx2, task: T) -> T::Output {
    task.run_on(proof)
}

#[target_feature(enable = "avx2")]
#[inline(never)]
fn xor_chacha(proof: Avx2, state: &[u32; 16], rounds: ChaChaRounds, buf: &mut [u8]) {
    keystream::xor_chacha::<Y>(proof, state, rounds, buf);
}

#[target_feature(enable = "avx2")]
#[inline(never)]
fn xor_salsa(proof: Avx2, state: &[u32; 16], buf: &mut [u8]) {
    keystream::xor_salsa::<Y>(proof, state, buf);
}

#[target_feature(enable = "avx2")]
#[inline(never)]
fn xor_salsa_blocks(proof: Avx2, state: &[u32; 16], pieces: SalsaBlocks<'_, '_>) {
    const HALF: usize = Y::BYTES / 4;
    let SalsaBlocks { words, bytes } = pieces;
    let (bytes, more) = bytes.split_at_mut(bytes.len().min(HALF));
    keystream::xor_salsa_blocks::<Y>(proof, state, SalsaBlocks { words, bytes });
    if !more.is_empty() {
        let mut behind = *words;
        behind.iter_mut().for_each(|words| words.rotate_left(HALF));
        let (words, bytes) = (&behind, more);
        keystream::xor_salsa_blocks::<Y>(proof, state, SalsaBlocks { words, bytes });
    }
}

#[target_feature(enable = "avx2")]
#[inline(never)]
fn poly1305_tag(proof: Avx2, key: &[u8; 32], data: &[u8], form: TagInput) -> [u8; 16] {
    poly1305_lanes::tag_in_lanes::<Limbs26<Y>>(proof, SHORTEST, key, data, form)
}

/// A register. Creating one requires the proof, so its operations may rely on the CPU.
#[derive(Clone, Copy)]
pub(super) struct Y(__m256i);

impl Y {
    /// Returns the register itself.
    #[inline(always)]
    pub(super) const fn raw(self) -> __m256i {
        self.0
    }

    /// Wraps the result of another operation.
    #[inline(always)]
    pub(super) const fn from_raw(_: Avx2, register: __m256i) -> Self {
        Self(register)
    }
}

/// Implements operations on one or two registers, with their constants.
macro_rules! operations {
    ($($name:ident($($other:ident)?) = $intrinsic:ident $(::<$constant:literal>)?;)*) => { $(
        #[inline(always)]
        fn $name(self $(, $other: Self)?) -> Self {
            // SAFETY: a `Y` is created with the proof that the CPU has AVX2.
            Self(unsafe { $intrinsic$(::<$constant>)?(self.0 $(, $other.0)?) })
        }
    )* };
}

/// Implements rotations, for which AVX2 has no instruction, with two shifts.
macro_rules! rotations {
    ($($name:ident = $left:literal, $right:literal;)*) => { $(
        #[inline(always)]
        fn $name(self) -> Self {
            const { assert!($left + $right == 32) };
            // SAFETY: a `Y` is created with the proof that the CPU has AVX2.
            Self(unsafe {
                _mm256_or_si256(
                    _mm256_slli_epi32::<$left>(self.0),
                    _mm256_srli_epi32::<$right>(self.0),
                )
            })
        }
    )* };
}

/// Implements rotations by whole bytes: the source positions of the bytes of each word.
macro_rules! byte_rotations {
    ($($name:ident = [$a:literal, $b:literal, $c:literal, $d:literal];)*) => { $(
        #[inline(always)]
        fn $name(self) -> Self {
            const FROM: i32 = i32::from_le_bytes([$a, $b, $c, $d]);
            const NEXT: i32 = 0x0404_0404;
            // SAFETY: a `Y` is created with the proof that the CPU has AVX2.
            Self(unsafe {
                let places = _mm256_setr_epi32(
                    FROM, FROM + NEXT, FROM + 2 * NEXT, FROM + 3 * NEXT,
                    FROM, FROM + NEXT, FROM + 2 * NEXT, FROM + 3 * NEXT,
                );
                _mm256_shuffle_epi8(self.0, places)
            })
        }
    )* };
}

impl Words for Y {
    type Proof = Avx2;
    const BYTES: usize = 32;

    #[inline(always)]
    fn load(_: Avx2, words: &[u32; 16]) -> Self {
        // SAFETY: the proof; 32 bytes are read from a reference to 64, aligned or not.
        Self(unsafe { _mm256_loadu_si256(words.as_ptr().cast()) })
    }

    #[inline(always)]
    fn splat(_: Avx2, word: u32) -> Self {
        // SAFETY: the proof.
        Self(unsafe { _mm256_set1_epi32(word.cast_signed()) })
    }

    #[inline(always)]
    fn repeat(_: Avx2, words: &[u32; 4]) -> Self {
        // SAFETY: the proof; 16 bytes are read from a reference to 16, aligned or not.
        Self(unsafe { _mm256_broadcastsi128_si256(_mm_loadu_si128(words.as_ptr().cast())) })
    }

    operations! {
        add(other) = _mm256_add_epi32;
        xor(other) = _mm256_xor_si256;
        turn1() = _mm256_shuffle_epi32::<0b00_11_10_01>;
        turn2() = _mm256_shuffle_epi32::<0b01_00_11_10>;
        turn3() = _mm256_shuffle_epi32::<0b10_01_00_11>;
    }

    rotations! {
        rotl12 = 12, 20;
        rotl7 = 7, 25;
        rotl9 = 9, 23;
        rotl13 = 13, 19;
        rotl18 = 18, 14;
    }

    byte_rotations! {
        rotl16 = [2, 3, 0, 1];
        rotl8 = [3, 0, 1, 2];
    }

    #[inline(always)]
    fn transpose([a, b, c, d]: [Self; 4]) -> [Self; 4] {
        // SAFETY: a `Y` is created with the proof.
        unsafe {
            let (ab_lo, ab_hi) = (
                _mm256_unpacklo_epi32(a.0, b.0),
                _mm256_unpackhi_epi32(a.0, b.0),
            );
            let (cd_lo, cd_hi) = (
                _mm256_unpacklo_epi32(c.0, d.0),
                _mm256_unpackhi_epi32(c.0, d.0),
            );
            [
                Self(_mm256_unpacklo_epi64(ab_lo, cd_lo)),
                Self(_mm256_unpackhi_epi64(ab_lo, cd_lo)),
                Self(_mm256_unpacklo_epi64(ab_hi, cd_hi)),
                Self(_mm256_unpackhi_epi64(ab_hi, cd_hi)),
            ]
        }
    }

    #[inline(always)]
    fn deal([a, b, c, d]: [Self; 4]) -> [Self; 4] {
        // SAFETY: a `Y` is created with the proof.
        unsafe {
            [
                Self(_mm256_permute2x128_si256::<0x20>(a.0, b.0)),
                Self(_mm256_permute2x128_si256::<0x20>(c.0, d.0)),
                Self(_mm256_permute2x128_si256::<0x31>(a.0, b.0)),
                Self(_mm256_permute2x128_si256::<0x31>(c.0, d.0)),
            ]
        }
    }

    #[inline(always)]
    fn xor_into(self, bytes: &mut [u8]) {
        if bytes.len() >= 32 {
            let at = bytes.as_mut_ptr();
            // SAFETY: a `Y` is created with the proof; 32 bytes are available, aligned or not.
            unsafe {
                let old = _mm256_loadu_si256(at.cast());
                _mm256_storeu_si256(at.cast(), _mm256_xor_si256(old, self.0));
            }
        } else {
            let mut keystream = [0u64; 4];
            // SAFETY: a `Y` is created with the proof; 32 bytes are written to 32, aligned or not.
            unsafe { _mm256_storeu_si256(keystream.as_mut_ptr().cast(), self.0) };
            let (words, rest) = bytes.as_chunks_mut::<8>();
            for (bytes, word) in words.iter_mut().zip(keystream) {
                *bytes = (u64::from_le_bytes(*bytes) ^ word).to_le_bytes();
            }
            let last = keystream[words.len()].to_le_bytes();
            for (byte, key) in rest.iter_mut().zip(last) {
                *byte ^= key;
            }
            wipe_stack(&mut keystream);
        }
    }
}

impl Wide for Y {
    type Proof = Avx2;
    const LANES: usize = 4;

    #[inline(always)]
    fn splat64(_: Avx2, word: u64) -> Self {
        // SAFETY: the proof.
        Self(unsafe { _mm256_set1_epi64x(word.cast_signed()) })
    }

    #[inline(always)]
    fn load64(_: Avx2, words: &[u64; 8]) -> Self {
        // SAFETY: the proof; 32 bytes are read from a reference to 64, aligned or not.
        Self(unsafe { _mm256_loadu_si256(words.as_ptr().cast()) })
    }

    #[inline(always)]
    fn halves(_: Avx2, blocks: &[u8]) -> (Self, Self) {
        assert_eq!(blocks.len(), 64);
        // SAFETY: the proof; 64 bytes were asserted, aligned or not.
        unsafe {
            let a = _mm256_loadu_si256(blocks.as_ptr().cast());
            let b = _mm256_loadu_si256(blocks.as_ptr().add(32).cast());
            (
                Self(_mm256_unpacklo_epi64(a, b)),
                Self(_mm256_unpackhi_epi64(a, b)),
            )
        }
    }

    operations! {
        add64(other) = _mm256_add_epi64;
        and(other) = _mm256_and_si256;
        or(other) = _mm256_or_si256;
        mul32(other) = _mm256_mul_epu32;
    }

    #[inline(always)]
    fn shr(self, bits: u32) -> Self {
        // SAFETY: a `Y` is created with the proof.
        Self(unsafe { _mm256_srl_epi64(self.0, _mm_cvtsi32_si128(bits.cast_signed())) })
    }

    #[inline(always)]
    fn shl(self, bits: u32) -> Self {
        // SAFETY: a `Y` is created with the proof.
        Self(unsafe { _mm256_sll_epi64(self.0, _mm_cvtsi32_si128(bits.cast_signed())) })
    }

    #[inline(always)]
    fn sum(self) -> u64 {
        // SAFETY: a `Y` is created with the proof.
        unsafe {
            let halves = _mm_add_epi64(
                _mm256_castsi256_si128(self.0),
                _mm256_extracti128_si256::<1>(self.0),
            );
            let sum = _mm_add_epi64(halves, _mm_unpackhi_epi64(halves, halves));
            _mm_cvtsi128_si64(sum).cast_unsigned()
        }
    }
}
