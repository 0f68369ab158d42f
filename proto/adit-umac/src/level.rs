//! Which instructions the hash uses.

use crate::simd::Kernel;

/// How wide the vectors of NH are. AES is the `aes` crate's, which chooses for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Level {
    /// Plain Rust, whatever the target's base instructions are
    Portable,
    /// 128-bit vectors of AArch64
    Neon,
    /// 256-bit vectors of x86-64
    Avx2,
    /// 512-bit vectors of x86-64 for full blocks of UMAC-96 and UMAC-128; for the rest, 256-bit
    /// vectors are faster
    Avx512,
}

impl Level {
    /// Every level, the narrowest first.
    pub const ALL: [Self; 4] = [Self::Portable, Self::Neon, Self::Avx2, Self::Avx512];

    /// The widest that this CPU has.
    #[must_use]
    pub fn best() -> Self {
        Kernel::best().level()
    }

    /// Whether this CPU has it.
    #[must_use]
    pub fn is_available(self) -> bool {
        Kernel::of(self).is_some()
    }

    /// The name in configuration and reports: `portable`, `neon`, `avx2` or `avx512`.
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
