//! 256-bit vectors: AVX2.

use core::arch::x86_64::*;

use super::{FactorRows, Vector};
use crate::gf256::NIBBLES;

/// The proof that this CPU has AVX2.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx2(());

impl Avx2 {
    /// Returns the proof if this CPU has AVX2.
    pub(super) fn detect() -> Option<Self> {
        cpu_has!("avx2").then_some(Self(()))
    }

    /// Computes the sums of products. All slices have the same length, 32 or more.
    pub(super) fn sum_products(
        self,
        factors: FactorRows<'_>,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
    ) {
        // SAFETY: `self` shows that the feature is there.
        unsafe { sum_with_avx2(self, factors, inputs, outputs) }
    }

    /// Adds products to the outputs. All slices have the same length, a multiple of 32.
    pub(super) fn add_products(self, factors: &[u8], input: &[u8], outputs: &mut [&mut [u8]]) {
        // SAFETY: `self` shows that the feature is there.
        unsafe { add_with_avx2(self, factors, input, outputs) }
    }
}

#[target_feature(enable = "avx2")]
fn sum_with_avx2(
    proof: Avx2,
    factors: FactorRows<'_>,
    inputs: &[&[u8]],
    outputs: &mut [&mut [u8]],
) {
    super::sum_products::<Y, 32, 2>(proof, factors, inputs, outputs);
}

#[target_feature(enable = "avx2")]
fn add_with_avx2(proof: Avx2, factors: &[u8], input: &[u8], outputs: &mut [&mut [u8]]) {
    super::add_products::<Y, 32, 2>(proof, factors, input, outputs);
}

/// A register. Creating one requires the proof, so its operations may rely on the CPU.
#[derive(Clone, Copy)]
struct Y(__m256i);

/// The low and the high nibbles of the bytes of a register, or the tables of their products.
#[derive(Clone, Copy)]
struct Nibbles(__m256i, __m256i);

impl Vector<32> for Y {
    type Proof = Avx2;
    type Input = Nibbles;
    type Factor = Nibbles;
    // Two registers for each table that is loaded.
    const WIDE: usize = 2;

    #[inline(always)]
    fn zeroed(_: Avx2) -> Self {
        // SAFETY: the proof.
        Self(unsafe { _mm256_setzero_si256() })
    }

    #[inline(always)]
    fn load_sum(_: Avx2, bytes: &[u8; 32]) -> Self {
        // SAFETY: the proof; 32 bytes are read from a reference to 32, aligned or not.
        Self(unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) })
    }

    #[inline(always)]
    fn load_input(_: Avx2, bytes: &[u8; 32]) -> Nibbles {
        // SAFETY: the proof; 32 bytes are read from a reference to 32, aligned or not.
        unsafe {
            let whole = _mm256_loadu_si256(bytes.as_ptr().cast());
            let mask = _mm256_set1_epi8(15);
            let high = _mm256_and_si256(_mm256_srli_epi64::<4>(whole), mask);
            Nibbles(_mm256_and_si256(whole, mask), high)
        }
    }

    #[inline(always)]
    fn prepare_factor(_: Avx2, factor: u8) -> Nibbles {
        let (tables, _) = NIBBLES[usize::from(factor)].as_chunks::<16>();
        // SAFETY: the proof; 16 bytes are read from references to 16, aligned or not.
        unsafe {
            Nibbles(
                _mm256_broadcastsi128_si256(_mm_loadu_si128(tables[0].as_ptr().cast())),
                _mm256_broadcastsi128_si256(_mm_loadu_si128(tables[1].as_ptr().cast())),
            )
        }
    }

    #[inline(always)]
    fn add_product(self, input: Nibbles, factor: Nibbles) -> Self {
        // SAFETY: a `Y` is created with the proof that the CPU has AVX2.
        Self(unsafe {
            let low = _mm256_shuffle_epi8(factor.0, input.0);
            let high = _mm256_shuffle_epi8(factor.1, input.1);
            _mm256_xor_si256(self.0, _mm256_xor_si256(low, high))
        })
    }

    #[inline(always)]
    fn store_sum(self, bytes: &mut [u8; 32]) {
        // SAFETY: a `Y` is created with the proof; 32 bytes are written to a reference to 32.
        unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), self.0) }
    }
}
