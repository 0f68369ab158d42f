//! 512-bit vectors: AVX-512. A register contains the sums of the four streams of UMAC-128.

use core::arch::x86_64::*;

use crate::nh::{GROUPS, Group, NhKey, Sums, halves};

cpufeatures::new!(cpu_has_avx512, "avx512f");

/// Proof that this CPU supports AVX-512 F.
#[derive(Clone, Copy)]
pub(crate) struct Avx512(());

impl Avx512 {
    /// Returns the proof if this CPU supports it.
    pub(super) fn detect() -> Option<Self> {
        cpu_has_avx512::get().then_some(Self(()))
    }

    /// Computes NH of a full block without its length, for all four streams. Shorter runs are
    /// faster with 256-bit vectors.
    #[inline(always)]
    pub(super) fn compute_nh(self, key: &NhKey, block: &[Group; GROUPS]) -> Sums {
        // SAFETY: `self` proves that the feature is available.
        unsafe { nh_block(key, block) }
    }
}

#[target_feature(enable = "avx512f")]
fn nh_block(key: &NhKey, block: &[Group; GROUPS]) -> Sums {
    let (mut even, mut odd) = (_mm512_setzero_si512(), _mm512_setzero_si512());
    let keys = pairs(key.words_from(0)).zip(pairs(key.words_from(1)));
    for (group, (k, l)) in block.iter().zip(keys) {
        let (low, high) = halves(group);
        let a = _mm512_add_epi32(broadcast_half(low), load_key(k));
        let b = _mm512_add_epi32(broadcast_half(high), load_key(l));
        even = _mm512_add_epi64(even, _mm512_mul_epu32(a, b));
        // The odd words are moved down by a shift and by a shuffle, because these use different
        // ports.
        let (a, b) = (_mm512_srli_epi64::<32>(a), _mm512_shuffle_epi32::<0xf5>(b));
        odd = _mm512_add_epi64(odd, _mm512_mul_epu32(a, b));
    }
    let sum = _mm512_add_epi64(even, odd);
    // Each stream has two adjacent sums.
    let sum = _mm512_add_epi64(sum, _mm512_shuffle_epi32::<0x4e>(sum));
    let mut eight = [0u64; 8];
    // SAFETY: writes the 64 bytes of `eight`; no alignment is required.
    unsafe { _mm512_storeu_si512(eight.as_mut_ptr().cast(), sum) };
    let [a, _, b, _, c, _, d, _] = eight;
    [a, b, c, d]
}

/// Returns all pairs of neighbours, which overlap.
#[inline(always)]
fn pairs(words: &[[u32; 8]]) -> impl Iterator<Item = &[[u32; 8]; 2]> {
    words.windows(2).map(|pair| match pair.first_chunk() {
        Some(pair) => pair,
        None => unreachable!("a window of two"),
    })
}

/// Loads half a group into all four quarters of a register.
#[inline]
#[target_feature(enable = "avx512f")]
fn broadcast_half(half: &[u8; 16]) -> __m512i {
    // SAFETY: reads the 16 bytes of `half`; no alignment is required.
    let half = unsafe { _mm_loadu_si128(half.as_ptr().cast()) };
    _mm512_broadcast_i32x4(half)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_key(words: &[[u32; 8]; 2]) -> __m512i {
    // SAFETY: reads the 64 bytes of `words`; no alignment is required.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}
