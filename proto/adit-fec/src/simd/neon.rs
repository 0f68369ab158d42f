//! 128-bit vectors of 64-bit ARM: NEON.

use core::arch::aarch64::*;

use super::{FactorRows, Vector};
use crate::gf256::NIBBLES;

/// The proof that this CPU has NEON.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Neon(());

impl Neon {
    /// Returns the proof if this CPU has NEON.
    pub(super) fn detect() -> Option<Self> {
        #[cfg(feature = "std")]
        let has = std::arch::is_aarch64_feature_detected!("neon");
        #[cfg(not(feature = "std"))]
        let has = cfg!(target_feature = "neon");
        has.then_some(Self(()))
    }

    /// Computes the sums of products. All slices have the same length, 16 or more.
    pub(super) fn sum_products(
        self,
        factors: FactorRows<'_>,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
    ) {
        // SAFETY: `self` shows that the feature is there.
        unsafe { sum_with_neon(self, factors, inputs, outputs) }
    }

    /// Adds products to the outputs. All slices have the same length, a multiple of 16.
    pub(super) fn add_products(self, factors: &[u8], input: &[u8], outputs: &mut [&mut [u8]]) {
        // SAFETY: `self` shows that the feature is there.
        unsafe { add_with_neon(self, factors, input, outputs) }
    }
}

#[target_feature(enable = "neon")]
fn sum_with_neon(
    proof: Neon,
    factors: FactorRows<'_>,
    inputs: &[&[u8]],
    outputs: &mut [&mut [u8]],
) {
    super::sum_products::<Q, 16, 4>(proof, factors, inputs, outputs);
}

#[target_feature(enable = "neon")]
fn add_with_neon(proof: Neon, factors: &[u8], input: &[u8], outputs: &mut [&mut [u8]]) {
    super::add_products::<Q, 16, 4>(proof, factors, input, outputs);
}

/// A register. Creating one requires the proof, so its operations may rely on the CPU.
#[derive(Clone, Copy)]
struct Q(uint8x16_t);

/// The low and the high nibbles of the bytes of a register, or the tables of their products.
#[derive(Clone, Copy)]
struct Nibbles(uint8x16_t, uint8x16_t);

impl Vector<16> for Q {
    type Proof = Neon;
    type Input = Nibbles;
    type Factor = Nibbles;
    // Sixteen sums, eight halves, two tables and a few products, of 32 registers.
    const WIDE: usize = 4;

    #[inline(always)]
    fn zeroed(_: Neon) -> Self {
        // SAFETY: the proof.
        Self(unsafe { vdupq_n_u8(0) })
    }

    #[inline(always)]
    fn load_sum(_: Neon, bytes: &[u8; 16]) -> Self {
        // SAFETY: the proof; 16 bytes are read from a reference to 16, aligned or not.
        Self(unsafe { vld1q_u8(bytes.as_ptr()) })
    }

    #[inline(always)]
    fn load_input(_: Neon, bytes: &[u8; 16]) -> Nibbles {
        // SAFETY: the proof; 16 bytes are read from a reference to 16, aligned or not.
        unsafe {
            let whole = vld1q_u8(bytes.as_ptr());
            Nibbles(vandq_u8(whole, vdupq_n_u8(15)), vshrq_n_u8::<4>(whole))
        }
    }

    #[inline(always)]
    fn prepare_factor(_: Neon, factor: u8) -> Nibbles {
        let (tables, _) = NIBBLES[usize::from(factor)].as_chunks::<16>();
        // SAFETY: the proof; 16 bytes are read from references to 16, aligned or not.
        unsafe { Nibbles(vld1q_u8(tables[0].as_ptr()), vld1q_u8(tables[1].as_ptr())) }
    }

    #[inline(always)]
    fn add_product(self, input: Nibbles, factor: Nibbles) -> Self {
        // SAFETY: a `Q` is created with the proof that the CPU has NEON.
        Self(unsafe {
            let low = vqtbl1q_u8(factor.0, input.0);
            let high = vqtbl1q_u8(factor.1, input.1);
            veorq_u8(self.0, veorq_u8(low, high))
        })
    }

    #[inline(always)]
    fn store_sum(self, bytes: &mut [u8; 16]) {
        // SAFETY: a `Q` is created with the proof; 16 bytes are written to a reference to 16.
        unsafe { vst1q_u8(bytes.as_mut_ptr(), self.0) }
    }
}
