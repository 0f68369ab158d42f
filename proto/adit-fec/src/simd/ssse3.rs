//! 128-bit vectors: SSSE3.

use core::arch::x86_64::*;

use super::{FactorRows, Vector};
use crate::gf256::NIBBLES;

/// The proof that this CPU has SSSE3.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ssse3(());

impl Ssse3 {
    /// Returns the proof if this CPU has SSSE3.
    pub(super) fn detect() -> Option<Self> {
        cpu_has!("ssse3").then_some(Self(()))
    }

    /// Computes the sums of products. All slices have the same length, 16 or more.
    pub(super) fn sum_products(
        self,
        factors: FactorRows<'_>,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
    ) {
        // SAFETY: `self` shows that the feature is there.
        unsafe { sum_with_ssse3(self, factors, inputs, outputs) }
    }

    /// Adds products to the outputs. All slices have the same length, a multiple of 16.
    pub(super) fn add_products(self, factors: &[u8], input: &[u8], outputs: &mut [&mut [u8]]) {
        // SAFETY: `self` shows that the feature is there.
        unsafe { add_with_ssse3(self, factors, input, outputs) }
    }
}

#[target_feature(enable = "ssse3")]
fn sum_with_ssse3(
    proof: Ssse3,
    factors: FactorRows<'_>,
    inputs: &[&[u8]],
    outputs: &mut [&mut [u8]],
) {
    super::sum_products::<X, 16, 1>(proof, factors, inputs, outputs);
}

#[target_feature(enable = "ssse3")]
fn add_with_ssse3(proof: Ssse3, factors: &[u8], input: &[u8], outputs: &mut [&mut [u8]]) {
    super::add_products::<X, 16, 1>(proof, factors, input, outputs);
}

/// A register. Creating one requires the proof, so its operations may rely on the CPU.
#[derive(Clone, Copy)]
struct X(__m128i);

/// The low and the high nibbles of the bytes of a register, or the tables of their products.
#[derive(Clone, Copy)]
struct Nibbles(__m128i, __m128i);

impl Vector<16> for X {
    type Proof = Ssse3;
    type Input = Nibbles;
    type Factor = Nibbles;
    // Four sums of one register, the halves and two tables: more would not fit into 16 registers.
    const WIDE: usize = 1;

    #[inline(always)]
    fn zeroed(_: Ssse3) -> Self {
        // SAFETY: the proof.
        Self(unsafe { _mm_setzero_si128() })
    }

    #[inline(always)]
    fn load_sum(_: Ssse3, bytes: &[u8; 16]) -> Self {
        // SAFETY: the proof; 16 bytes are read from a reference to 16, aligned or not.
        Self(unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) })
    }

    #[inline(always)]
    fn load_input(_: Ssse3, bytes: &[u8; 16]) -> Nibbles {
        // SAFETY: the proof; 16 bytes are read from a reference to 16, aligned or not.
        unsafe {
            let whole = _mm_loadu_si128(bytes.as_ptr().cast());
            let mask = _mm_set1_epi8(15);
            let high = _mm_and_si128(_mm_srli_epi64::<4>(whole), mask);
            Nibbles(_mm_and_si128(whole, mask), high)
        }
    }

    #[inline(always)]
    fn prepare_factor(_: Ssse3, factor: u8) -> Nibbles {
        let (tables, _) = NIBBLES[usize::from(factor)].as_chunks::<16>();
        // SAFETY: the proof; 16 bytes are read from references to 16, aligned or not.
        unsafe {
            Nibbles(
                _mm_loadu_si128(tables[0].as_ptr().cast()),
                _mm_loadu_si128(tables[1].as_ptr().cast()),
            )
        }
    }

    #[inline(always)]
    fn add_product(self, input: Nibbles, factor: Nibbles) -> Self {
        // SAFETY: an `X` is created with the proof that the CPU has SSSE3.
        Self(unsafe {
            let low = _mm_shuffle_epi8(factor.0, input.0);
            let high = _mm_shuffle_epi8(factor.1, input.1);
            _mm_xor_si128(self.0, _mm_xor_si128(low, high))
        })
    }

    #[inline(always)]
    fn store_sum(self, bytes: &mut [u8; 16]) {
        // SAFETY: an `X` is created with the proof; 16 bytes are written to a reference to 16.
        unsafe { _mm_storeu_si128(bytes.as_mut_ptr().cast(), self.0) }
    }
}
