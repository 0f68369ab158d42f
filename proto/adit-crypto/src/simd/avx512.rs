//! 512-bit vectors: AVX-512 F, BW, DQ and VL.

use core::arch::x86_64::*;

use adit_wire::narrow_int;

use super::{
    ChaChaRounds, Kernel, SalsaBlocks, TagInput, Task,
    avx2::{Avx2, Y},
    keystream::{self, SALSA_COUNTER, Words},
    limbs26::Limbs26,
    poly1305_lanes::{self, Wide},
};

/// The proof that this CPU has AVX-512 F, BW, DQ and VL.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx512(());

/// Minimum number of blocks for which the vectors are faster than the scalar Poly1305.
const SHORTEST: usize = 20;

impl Avx512 {
    /// Returns the proof if this CPU has all of these features.
    pub(super) fn detect() -> Option<Self> {
        (is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl"))
        .then_some(Self(()))
    }
}

impl Kernel for Avx512 {
    #[inline(always)]
    fn enter<T: Task>(self, task: T) -> T::Output {
        // SAFETY: `self` shows that the features are there.
        unsafe { run_with_avx512(self, task) }
    }

    #[inline(always)]
    fn xor_chacha(self, state: &[u32; 16], rounds: ChaChaRounds, buf: &mut [u8]) {
        // SAFETY: `self` shows that the features are there.
        unsafe { xor_chacha(self, state, rounds, buf) }
    }

    #[inline(always)]
    fn xor_salsa(self, state: &[u32; 16], buf: &mut [u8]) {
        // SAFETY: `self` shows that the features are there.
        unsafe { xor_salsa(self, state, buf) }
    }

    #[inline(always)]
    fn xor_salsa_blocks(self, state: &[u32; 16], pieces: SalsaBlocks<'_, '_>) {
        // SAFETY: `self` shows that the features are there.
        unsafe { xor_salsa_blocks(self, state, pieces) }
    }

    #[inline(always)]
    fn poly1305_tag(self, key: &[u8; 32], data: &[u8], form: TagInput) -> [u8; 16] {
        // SAFETY: `self` shows that the features are there.
        unsafe { poly1305_tag(self, key, data, form) }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn run_with_avx512<T: Task>(proof: Avx512, task: T) -> T::Output {
    task.run_on(proof)
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
#[inline(never)]
fn xor_chacha(proof: Avx512, state: &[u32; 16], rounds: ChaChaRounds, buf: &mut [u8]) {
    keystream::xor_chacha::<Z>(proof, state, rounds, buf);
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
#[inline(never)]
fn xor_salsa(proof: Avx512, state: &[u32; 16], buf: &mut [u8]) {
    const WHOLE: usize = 16 * <Z as Words>::BYTES;
    let (whole, rest) = buf.split_at_mut(buf.len() - buf.len() % WHOLE);
    // The end of a datagram is usually less than half of what the wide registers take, and the narrow ones
    // have more units.
    if rest.len() <= WHOLE / 2 {
        keystream::xor_salsa::<Z>(proof, state, whole);
        let mut state = *state;
        let blocks = narrow_int(whole.len() / 64);
        state[SALSA_COUNTER] = state[SALSA_COUNTER].wrapping_add(blocks);
        return keystream::xor_salsa::<Y>(Avx2::from_avx512(proof), &state, rest);
    }
    keystream::xor_salsa::<Z>(proof, state, buf);
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
#[inline(never)]
fn xor_salsa_blocks(proof: Avx512, state: &[u32; 16], pieces: SalsaBlocks<'_, '_>) {
    if pieces.bytes.len() <= const { Y::BYTES / 4 } {
        return keystream::xor_salsa_blocks::<Y>(Avx2::from_avx512(proof), state, pieces);
    }
    keystream::xor_salsa_blocks::<Z>(proof, state, pieces);
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
#[inline(never)]
fn poly1305_tag(proof: Avx512, key: &[u8; 32], data: &[u8], form: TagInput) -> [u8; 16] {
    poly1305_lanes::tag_in_lanes::<Limbs26<Z>>(proof, SHORTEST, key, data, form)
}

/// A register. Creating one requires the proof, so its operations may rely on the CPU.
#[derive(Clone, Copy)]
pub(super) struct Z(__m512i);

impl Z {
    /// Returns the register itself.
    #[inline(always)]
    pub(super) const fn raw(self) -> __m512i {
        self.0
    }

    /// Wraps the result of another operation.
    #[inline(always)]
    pub(super) const fn from_raw(_: Avx512, register: __m512i) -> Self {
        Self(register)
    }
}

/// Implements operations on one or two registers, with their constants.
macro_rules! operations {
    ($($name:ident($($other:ident)?) = $intrinsic:ident $(::<$constant:literal>)?;)*) => { $(
        #[inline(always)]
        fn $name(self $(, $other: Self)?) -> Self {
            // SAFETY: a `Z` is created with the proof that the CPU has AVX-512 F, BW, DQ and VL.
            Self(unsafe { $intrinsic$(::<$constant>)?(self.0 $(, $other.0)?) })
        }
    )* };
}

impl Words for Z {
    type Proof = Avx512;
    const BYTES: usize = 64;

    #[inline(always)]
    fn load(_: Avx512, words: &[u32; 16]) -> Self {
        // SAFETY: the proof; 64 bytes are read from a reference to 64, aligned or not.
        Self(unsafe { _mm512_loadu_si512(words.as_ptr().cast()) })
    }

    #[inline(always)]
    fn splat(_: Avx512, word: u32) -> Self {
        // SAFETY: the proof.
        Self(unsafe { _mm512_set1_epi32(word.cast_signed()) })
    }

    #[inline(always)]
    fn repeat(_: Avx512, words: &[u32; 4]) -> Self {
        // SAFETY: the proof; 16 bytes are read from a reference to 16, aligned or not.
        Self(unsafe { _mm512_broadcast_i32x4(_mm_loadu_si128(words.as_ptr().cast())) })
    }

    operations! {
        add(other) = _mm512_add_epi32;
        xor(other) = _mm512_xor_si512;
        rotl16() = _mm512_rol_epi32::<16>;
        rotl12() = _mm512_rol_epi32::<12>;
        rotl8() = _mm512_rol_epi32::<8>;
        rotl7() = _mm512_rol_epi32::<7>;
        rotl9() = _mm512_rol_epi32::<9>;
        rotl13() = _mm512_rol_epi32::<13>;
        rotl18() = _mm512_rol_epi32::<18>;
        turn1() = _mm512_shuffle_epi32::<0b00_11_10_01>;
        turn2() = _mm512_shuffle_epi32::<0b01_00_11_10>;
        turn3() = _mm512_shuffle_epi32::<0b10_01_00_11>;
    }

    #[inline(always)]
    fn transpose([a, b, c, d]: [Self; 4]) -> [Self; 4] {
        // SAFETY: a `Z` is created with the proof.
        unsafe {
            let (ab_lo, ab_hi) = (
                _mm512_unpacklo_epi32(a.0, b.0),
                _mm512_unpackhi_epi32(a.0, b.0),
            );
            let (cd_lo, cd_hi) = (
                _mm512_unpacklo_epi32(c.0, d.0),
                _mm512_unpackhi_epi32(c.0, d.0),
            );
            [
                Self(_mm512_unpacklo_epi64(ab_lo, cd_lo)),
                Self(_mm512_unpackhi_epi64(ab_lo, cd_lo)),
                Self(_mm512_unpacklo_epi64(ab_hi, cd_hi)),
                Self(_mm512_unpackhi_epi64(ab_hi, cd_hi)),
            ]
        }
    }

    #[inline(always)]
    fn deal([a, b, c, d]: [Self; 4]) -> [Self; 4] {
        // SAFETY: a `Z` is created with the proof.
        unsafe {
            // Lanes 0 and 1 of two vectors; lanes 2 and 3.
            let (ab_lo, ab_hi) = (
                _mm512_shuffle_i32x4::<0b01_00_01_00>(a.0, b.0),
                _mm512_shuffle_i32x4::<0b11_10_11_10>(a.0, b.0),
            );
            let (cd_lo, cd_hi) = (
                _mm512_shuffle_i32x4::<0b01_00_01_00>(c.0, d.0),
                _mm512_shuffle_i32x4::<0b11_10_11_10>(c.0, d.0),
            );
            [
                Self(_mm512_shuffle_i32x4::<0b10_00_10_00>(ab_lo, cd_lo)),
                Self(_mm512_shuffle_i32x4::<0b11_01_11_01>(ab_lo, cd_lo)),
                Self(_mm512_shuffle_i32x4::<0b10_00_10_00>(ab_hi, cd_hi)),
                Self(_mm512_shuffle_i32x4::<0b11_01_11_01>(ab_hi, cd_hi)),
            ]
        }
    }

    #[inline(always)]
    fn xor_into(self, bytes: &mut [u8]) {
        let at = bytes.as_mut_ptr();
        if bytes.len() >= 64 {
            // SAFETY: a `Z` is created with the proof; 64 bytes are available, aligned or not.
            unsafe {
                let old = _mm512_loadu_si512(at.cast());
                _mm512_storeu_si512(at.cast(), _mm512_xor_si512(old, self.0));
            }
        } else {
            let mask = (1u64 << bytes.len()) - 1;
            // SAFETY: a `Z` is created with the proof; the mask limits both accesses to the length of the
            // slice, and bytes that are masked off are not touched.
            unsafe {
                let old = _mm512_maskz_loadu_epi8(mask, at.cast());
                _mm512_mask_storeu_epi8(at.cast(), mask, _mm512_xor_si512(old, self.0));
            }
        }
    }
}

impl Wide for Z {
    type Proof = Avx512;
    const LANES: usize = 8;

    #[inline(always)]
    fn splat64(_: Avx512, word: u64) -> Self {
        // SAFETY: the proof.
        Self(unsafe { _mm512_set1_epi64(word.cast_signed()) })
    }

    #[inline(always)]
    fn load64(_: Avx512, words: &[u64; 8]) -> Self {
        // SAFETY: the proof; 64 bytes are read from a reference to 64, aligned or not.
        Self(unsafe { _mm512_loadu_si512(words.as_ptr().cast()) })
    }

    #[inline(always)]
    fn halves(_: Avx512, blocks: &[u8]) -> (Self, Self) {
        assert_eq!(blocks.len(), 128);
        // SAFETY: the proof; 128 bytes were asserted, aligned or not.
        unsafe {
            let a = _mm512_loadu_si512(blocks.as_ptr().cast());
            let b = _mm512_loadu_si512(blocks.as_ptr().add(64).cast());
            (
                Self(_mm512_unpacklo_epi64(a, b)),
                Self(_mm512_unpackhi_epi64(a, b)),
            )
        }
    }

    operations! {
        add64(other) = _mm512_add_epi64;
        and(other) = _mm512_and_si512;
        or(other) = _mm512_or_si512;
        mul32(other) = _mm512_mul_epu32;
    }

    #[inline(always)]
    fn shr(self, bits: u32) -> Self {
        // SAFETY: a `Z` is created with the proof.
        Self(unsafe { _mm512_srl_epi64(self.0, _mm_cvtsi32_si128(bits.cast_signed())) })
    }

    #[inline(always)]
    fn shl(self, bits: u32) -> Self {
        // SAFETY: a `Z` is created with the proof.
        Self(unsafe { _mm512_sll_epi64(self.0, _mm_cvtsi32_si128(bits.cast_signed())) })
    }

    #[inline(always)]
    fn sum(self) -> u64 {
        // SAFETY: a `Z` is created with the proof.
        unsafe { _mm512_reduce_add_epi64(self.0) }.cast_unsigned()
    }
}
