//! CRC-32 on 256-bit vectors, for CPUs with `VPCLMULQDQ` and without AVX-512: four registers of 32 bytes
//! per step, with the method of [`super::crc32`].

use core::arch::x86_64::*;

use super::avx2::Avx2;
use super::crc32::{reduce_128, shift_factors};

/// Size of a register, in bytes.
const BLOCK: usize = 32;
/// Size of a step, in bytes.
const STEP: usize = 4 * BLOCK;
/// Minimum length for which it is faster, in bytes.
const SHORTEST: usize = 2 * STEP;

/// The proof that this CPU has AVX2, `VAES` and `VPCLMULQDQ`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clmul256(Avx2);

impl Clmul256 {
    /// Returns the proof if this CPU has all of these features.
    pub(super) fn detect(avx2: Avx2) -> Option<Self> {
        let clmul = is_x86_feature_detected!("vpclmulqdq") && is_x86_feature_detected!("pclmulqdq");
        let aes = is_x86_feature_detected!("vaes") && is_x86_feature_detected!("aes");
        (clmul && aes).then_some(Self(avx2))
    }

    /// Returns the proof for AVX2 alone.
    pub(super) const fn without(self) -> Avx2 {
        self.0
    }

    /// Returns the checksum of `data`.
    #[inline]
    pub(super) fn crc32(self, data: &[u8]) -> u32 {
        let (steps, rest) = data.as_chunks::<STEP>();
        if data.len() < SHORTEST {
            return crc32fast::hash(data);
        }
        // SAFETY: `self` shows that the features are there.
        let front = unsafe { fold_steps(steps) };
        if rest.is_empty() {
            return front;
        }
        let mut whole = crc32fast::Hasher::new_with_initial(front);
        whole.update(rest);
        whole.finalize()
    }
}

#[target_feature(enable = "avx2,vpclmulqdq,pclmulqdq")]
fn fold_steps(steps: &[[u8; STEP]]) -> u32 {
    let Some((first, steps)) = steps.split_first() else {
        return 0;
    };
    let mut sums = load_step(first);
    // The initial value of a checksum, added to the first four bytes.
    sums[0] = _mm256_xor_si256(sums[0], _mm256_setr_epi32(-1, 0, 0, 0, 0, 0, 0, 0));
    let far = broadcast_factors(const { shift_factors(8 * STEP as u32) });
    for step in steps {
        for (sum, block) in sums.iter_mut().zip(load_step(step)) {
            *sum = fold(*sum, far, block);
        }
    }
    let near = broadcast_factors(const { shift_factors(8 * BLOCK as u32) });
    let [a, b, c, d] = sums;
    let sum = fold(fold(fold(a, near, b), near, c), near, d);
    // Fold the first half onto the second.
    let [front, back] = const { shift_factors(128) };
    let by = _mm_set_epi64x(back, front);
    let (low, high) = (
        _mm256_castsi256_si128(sum),
        _mm256_extracti128_si256::<1>(sum),
    );
    let low = _mm_xor_si128(
        _mm_clmulepi64_si128::<0x00>(low, by),
        _mm_clmulepi64_si128::<0x11>(low, by),
    );
    !reduce_128(_mm_xor_si128(low, high))
}

/// Returns `sum` shifted by the bits of the factors, plus `block`.
#[target_feature(enable = "avx2,vpclmulqdq")]
#[inline]
fn fold(sum: __m256i, factors: __m256i, block: __m256i) -> __m256i {
    let front = _mm256_clmulepi64_epi128::<0x00>(sum, factors);
    let back = _mm256_clmulepi64_epi128::<0x11>(sum, factors);
    _mm256_xor_si256(_mm256_xor_si256(front, back), block)
}

/// Returns factors for both halves of a register.
#[target_feature(enable = "avx2")]
#[inline]
fn broadcast_factors([front, back]: [i64; 2]) -> __m256i {
    _mm256_setr_epi64x(front, back, front, back)
}

#[target_feature(enable = "avx2")]
#[inline]
fn load_step(step: &[u8; STEP]) -> [__m256i; 4] {
    let (blocks, _) = step.as_chunks::<BLOCK>();
    let mut registers = [_mm256_setzero_si256(); 4];
    for (register, block) in registers.iter_mut().zip(blocks) {
        // SAFETY: 32 bytes are read from a reference to as many, aligned or not.
        *register = unsafe { _mm256_loadu_si256(block.as_ptr().cast()) };
    }
    registers
}
