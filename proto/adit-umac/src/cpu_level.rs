//! CPU instructions used by the hash.

use crate::simd::NhKernel;

/// Width of the vectors of NH. AES is implemented by the `aes` crate, which selects its own
/// instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SimdLevel {
    /// Portable Rust with the base instructions of the target
    Portable,
    /// 128-bit vectors (NEON) of AArch64
    Neon,
    /// 256-bit vectors (AVX2) of x86-64
    Avx2,
    /// 512-bit vectors (AVX-512) of x86-64 for full blocks of UMAC-96 and UMAC-128; for everything
    /// else, 256-bit vectors are faster
    Avx512,
}

impl SimdLevel {
    /// All levels, narrowest first.
    pub const ALL: [Self; 4] = [Self::Portable, Self::Neon, Self::Avx2, Self::Avx512];

    /// Returns the widest level that this CPU supports.
    #[must_use]
    pub fn best_available() -> Self {
        NhKernel::best_available().level()
    }

    /// True if this CPU supports the level.
    #[must_use]
    pub fn is_available(self) -> bool {
        NhKernel::for_level(self).is_some()
    }

    /// Returns the name in configuration and reports: `portable`, `neon`, `avx2` or `avx512`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Neon => "neon",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }
}
