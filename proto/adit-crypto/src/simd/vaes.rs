//! What shows that the CPU has AES in 512-bit vectors.

use super::avx512::Avx512;

/// Shows that this CPU has AES and VAES beside AVX-512 F, BW, DQ and VL.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vaes(Avx512);

impl Vaes {
    /// The proof, if this CPU has it all.
    pub(super) fn detect(wide: Avx512) -> Option<Self> {
        (is_x86_feature_detected!("aes") && is_x86_feature_detected!("vaes")).then_some(Self(wide))
    }

    /// The proof without AES.
    pub(super) const fn without(self) -> Avx512 {
        self.0
    }
}
