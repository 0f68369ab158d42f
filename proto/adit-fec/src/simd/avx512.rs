//! 512-bit vectors: AVX-512 F and BW.

use core::arch::x86_64::*;

use super::{FactorRows, Vector, avx2::Avx2};
use crate::gf256::NIBBLES;

/// The proof that this CPU has AVX-512 F and BW, and AVX2.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx512(Avx2);

impl Avx512 {
    /// Returns the proof if this CPU has all of these features.
    pub(super) fn detect() -> Option<Self> {
        let (has_f, has_bw) = (cpu_has!("avx512f"), cpu_has!("avx512bw"));
        Avx2::detect().filter(|_| has_f && has_bw).map(Self)
    }

    /// Returns the kernel for lengths below one register.
    pub(super) const fn narrower_kernel(self) -> Avx2 {
        self.0
    }

    /// Computes the sums of products. All slices have the same length, 64 or more.
    pub(super) fn sum_products(
        self,
        factors: FactorRows<'_>,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
    ) {
        // SAFETY: `self` shows that the features are there.
        unsafe { sum_with_avx512(self, factors, inputs, outputs) }
    }

    /// Adds products to the outputs. All slices have the same length, a multiple of 64.
    pub(super) fn add_products(self, factors: &[u8], input: &[u8], outputs: &mut [&mut [u8]]) {
        // SAFETY: `self` shows that the features are there.
        unsafe { add_with_avx512(self, factors, input, outputs) }
    }
}

#[target_feature(enable = "avx512f,avx512bw")]
fn sum_with_avx512(
    proof: Avx512,
    factors: FactorRows<'_>,
    inputs: &[&[u8]],
    outputs: &mut [&mut [u8]],
) {
    super::sum_products::<Z, 64, 2>(proof, factors, inputs, outputs);
}

#[target_feature(enable = "avx512f,avx512bw")]
fn add_with_avx512(proof: Avx512, factors: &[u8], input: &[u8], outputs: &mut [&mut [u8]]) {
    super::add_products::<Z, 64, 2>(proof, factors, input, outputs);
}

/// A register. Creating one requires the proof, so its operations may rely on the CPU.
#[derive(Clone, Copy)]
struct Z(__m512i);

/// The low and the high nibbles of the bytes of a register, or the tables of their products.
#[derive(Clone, Copy)]
struct Nibbles(__m512i, __m512i);

impl Vector<64> for Z {
    type Proof = Avx512;
    type Input = Nibbles;
    type Factor = Nibbles;
    // Two registers for each table that is loaded.
    const WIDE: usize = 2;

    #[inline(always)]
    fn zeroed(_: Avx512) -> Self {
        // SAFETY: the proof.
        Self(unsafe { _mm512_setzero_si512() })
    }

    #[inline(always)]
    fn load_sum(_: Avx512, bytes: &[u8; 64]) -> Self {
        // SAFETY: the proof; 64 bytes are read from a reference to 64, aligned or not.
        Self(unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) })
    }

    #[inline(always)]
    fn load_input(_: Avx512, bytes: &[u8; 64]) -> Nibbles {
        // SAFETY: the proof; 64 bytes are read from a reference to 64, aligned or not.
        unsafe {
            let whole = _mm512_loadu_si512(bytes.as_ptr().cast());
            let mask = _mm512_set1_epi8(15);
            let high = _mm512_and_si512(_mm512_srli_epi64::<4>(whole), mask);
            Nibbles(_mm512_and_si512(whole, mask), high)
        }
    }

    #[inline(always)]
    fn prepare_factor(_: Avx512, factor: u8) -> Nibbles {
        let (tables, _) = NIBBLES[usize::from(factor)].as_chunks::<16>();
        // SAFETY: the proof; 16 bytes are read from references to 16, aligned or not.
        unsafe {
            Nibbles(
                _mm512_broadcast_i32x4(_mm_loadu_si128(tables[0].as_ptr().cast())),
                _mm512_broadcast_i32x4(_mm_loadu_si128(tables[1].as_ptr().cast())),
            )
        }
    }

    #[inline(always)]
    fn add_product(self, input: Nibbles, factor: Nibbles) -> Self {
        // SAFETY: a `Z` is created with the proof that the CPU has AVX-512 F and BW.
        Self(unsafe {
            let low = _mm512_shuffle_epi8(factor.0, input.0);
            let high = _mm512_shuffle_epi8(factor.1, input.1);
            // 0x96 is the exclusive or of all three.
            _mm512_ternarylogic_epi64::<0x96>(self.0, low, high)
        })
    }

    #[inline(always)]
    fn store_sum(self, bytes: &mut [u8; 64]) {
        // SAFETY: a `Z` is created with the proof; 64 bytes are written to a reference to 64.
        unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().cast(), self.0) }
    }
}
