//! The proof that the CPU has AES in 512-bit vectors.

use super::avx512::Avx512;

/// The proof that this CPU has AES and VAES beside AVX-512 F, BW, DQ and VL.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vaes(Avx512);

impl Vaes {
    /// Returns the proof if this CPU has all of these features.
    pub(super) fn detect(wide: Avx512) -> Option<Self> {
        (is_x86_feature_detected!("aes") && is_x86_feature_detected!("vaes")).then_some(Self(wide))
    }

    /// Returns the proof without AES.
    pub(super) const fn without(self) -> Avx512 {
        self.0
    }
}
