//! Multiplication with bit matrices: GFNI, on 256-bit and 512-bit vectors.
//!
//! `GF2P8MULB` has the polynomial of AES built in and is of no use here; `GF2P8AFFINEQB` multiplies by any
//! bit matrix, and so by a constant of any field.

use core::arch::x86_64::*;

use super::{FactorRows, Vector, avx2::Avx2, avx512::Avx512};
use crate::gf256::MATRICES;

/// The proof that this CPU has AVX2 and GFNI.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gfni256(());

impl Gfni256 {
    /// Returns the proof if this CPU has both.
    pub(super) fn detect() -> Option<Self> {
        let has = cpu_has!("gfni");
        Avx2::detect().filter(|_| has).map(|_| Self(()))
    }

    /// Computes the sums of products. All slices have the same length, 32 or more.
    pub(super) fn sum_products(
        self,
        factors: FactorRows<'_>,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
    ) {
        // SAFETY: `self` shows that the features are there.
        unsafe { sum_with_gfni256(self, factors, inputs, outputs) }
    }

    /// Adds products to the outputs. All slices have the same length, a multiple of 32.
    pub(super) fn add_products(self, factors: &[u8], input: &[u8], outputs: &mut [&mut [u8]]) {
        // SAFETY: `self` shows that the features are there.
        unsafe { add_with_gfni256(self, factors, input, outputs) }
    }
}

/// The proof that this CPU has AVX-512 F and BW, AVX2 and GFNI.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gfni512(Gfni256);

impl Gfni512 {
    /// Returns the proof if this CPU has all of these features.
    pub(super) fn detect() -> Option<Self> {
        let narrow = Gfni256::detect()?;
        Avx512::detect().map(|_| Self(narrow))
    }

    /// Returns the kernel for lengths below one register.
    pub(super) const fn narrower_kernel(self) -> Gfni256 {
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
        unsafe { sum_with_gfni512(self, factors, inputs, outputs) }
    }

    /// Adds products to the outputs. All slices have the same length, a multiple of 64.
    pub(super) fn add_products(self, factors: &[u8], input: &[u8], outputs: &mut [&mut [u8]]) {
        // SAFETY: `self` shows that the features are there.
        unsafe { add_with_gfni512(self, factors, input, outputs) }
    }
}

#[target_feature(enable = "avx2,gfni")]
fn sum_with_gfni256(
    proof: Gfni256,
    factors: FactorRows<'_>,
    inputs: &[&[u8]],
    outputs: &mut [&mut [u8]],
) {
    super::sum_products::<Y, 32, 2>(proof, factors, inputs, outputs);
}

#[target_feature(enable = "avx2,gfni")]
fn add_with_gfni256(proof: Gfni256, factors: &[u8], input: &[u8], outputs: &mut [&mut [u8]]) {
    super::add_products::<Y, 32, 2>(proof, factors, input, outputs);
}

#[target_feature(enable = "avx512f,avx512bw,gfni")]
fn sum_with_gfni512(
    proof: Gfni512,
    factors: FactorRows<'_>,
    inputs: &[&[u8]],
    outputs: &mut [&mut [u8]],
) {
    super::sum_products::<Z, 64, 4>(proof, factors, inputs, outputs);
}

#[target_feature(enable = "avx512f,avx512bw,gfni")]
fn add_with_gfni512(proof: Gfni512, factors: &[u8], input: &[u8], outputs: &mut [&mut [u8]]) {
    super::add_products::<Z, 64, 4>(proof, factors, input, outputs);
}

/// A register. Creating one requires the proof, so its operations may rely on the CPU.
#[derive(Clone, Copy)]
struct Y(__m256i);

impl Vector<32> for Y {
    type Proof = Gfni256;
    type Input = __m256i;
    type Factor = __m256i;
    // Eight sums, two inputs, a matrix and a product, of 16 registers.
    const WIDE: usize = 2;

    #[inline(always)]
    fn zeroed(_: Gfni256) -> Self {
        // SAFETY: the proof.
        Self(unsafe { _mm256_setzero_si256() })
    }

    #[inline(always)]
    fn load_sum(_: Gfni256, bytes: &[u8; 32]) -> Self {
        // SAFETY: the proof; 32 bytes are read from a reference to 32, aligned or not.
        Self(unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) })
    }

    #[inline(always)]
    fn load_input(_: Gfni256, bytes: &[u8; 32]) -> __m256i {
        // SAFETY: the proof; 32 bytes are read from a reference to 32, aligned or not.
        unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
    }

    #[inline(always)]
    fn prepare_factor(_: Gfni256, factor: u8) -> __m256i {
        // SAFETY: the proof.
        unsafe { _mm256_set1_epi64x(MATRICES[usize::from(factor)].cast_signed()) }
    }

    #[inline(always)]
    fn add_product(self, input: __m256i, factor: __m256i) -> Self {
        // SAFETY: a `Y` is created with the proof that the CPU has AVX2 and GFNI.
        Self(unsafe { _mm256_xor_si256(self.0, _mm256_gf2p8affine_epi64_epi8::<0>(input, factor)) })
    }

    #[inline(always)]
    fn store_sum(self, bytes: &mut [u8; 32]) {
        // SAFETY: a `Y` is created with the proof; 32 bytes are written to a reference to 32.
        unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), self.0) }
    }
}

/// A register. Creating one requires the proof, so its operations may rely on the CPU.
#[derive(Clone, Copy)]
struct Z(__m512i);

impl Vector<64> for Z {
    type Proof = Gfni512;
    type Input = __m512i;
    type Factor = __m512i;
    // Sixteen sums, four inputs, a matrix and a few products, of 32 registers.
    const WIDE: usize = 4;

    #[inline(always)]
    fn zeroed(_: Gfni512) -> Self {
        // SAFETY: the proof.
        Self(unsafe { _mm512_setzero_si512() })
    }

    #[inline(always)]
    fn load_sum(_: Gfni512, bytes: &[u8; 64]) -> Self {
        // SAFETY: the proof; 64 bytes are read from a reference to 64, aligned or not.
        Self(unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) })
    }

    #[inline(always)]
    fn load_input(_: Gfni512, bytes: &[u8; 64]) -> __m512i {
        // SAFETY: the proof; 64 bytes are read from a reference to 64, aligned or not.
        unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
    }

    #[inline(always)]
    fn prepare_factor(_: Gfni512, factor: u8) -> __m512i {
        // SAFETY: the proof.
        unsafe { _mm512_set1_epi64(MATRICES[usize::from(factor)].cast_signed()) }
    }

    #[inline(always)]
    fn add_product(self, input: __m512i, factor: __m512i) -> Self {
        // SAFETY: a `Z` is created with the proof that the CPU has AVX-512 F and BW, and GFNI.
        Self(unsafe { _mm512_xor_si512(self.0, _mm512_gf2p8affine_epi64_epi8::<0>(input, factor)) })
    }

    #[inline(always)]
    fn store_sum(self, bytes: &mut [u8; 64]) {
        // SAFETY: a `Z` is created with the proof; 64 bytes are written to a reference to 64.
        unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().cast(), self.0) }
    }
}
