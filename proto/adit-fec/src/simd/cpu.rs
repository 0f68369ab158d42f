//! The choice of the kernel for this CPU: detected once, never above the limit that the program has set.

use std::sync::OnceLock;

use super::{Factors, portable};
#[cfg(target_arch = "x86_64")]
use super::{avx2::Avx2, avx512::Avx512, gfni::Gfni256, gfni::Gfni512, ssse3::Ssse3};

static CHOSEN: OnceLock<Path> = OnceLock::new();

/// The CPU features that kernels may use, the slowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Level {
    /// Plain Rust, two table look-ups per byte
    Portable,
    /// 128-bit vectors of any 64-bit ARM
    Neon,
    /// 128-bit vectors: SSSE3
    Ssse3,
    /// 256-bit vectors: AVX2
    Avx2,
    /// 256-bit vectors and bit matrices: AVX2 with GFNI
    Avx2Gfni,
    /// 512-bit vectors: AVX-512 F and BW
    Avx512,
    /// 512-bit vectors and bit matrices: AVX-512 F and BW with GFNI
    Avx512Gfni,
}

impl Level {
    /// All levels, the slowest first.
    pub const ALL: [Self; 7] = [
        Self::Portable,
        Self::Neon,
        Self::Ssse3,
        Self::Avx2,
        Self::Avx2Gfni,
        Self::Avx512,
        Self::Avx512Gfni,
    ];

    /// Returns the name used in configurations and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Neon => "neon",
            Self::Ssse3 => "ssse3",
            Self::Avx2 => "avx2",
            Self::Avx2Gfni => "avx2-gfni",
            Self::Avx512 => "avx512",
            Self::Avx512Gfni => "avx512-gfni",
        }
    }

    /// Returns the level called `name`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }

    /// Returns the levels that this CPU supports, the slowest first.
    pub fn available() -> impl Iterator<Item = Self> {
        Path::available().map(Path::level)
    }
}

/// Limits the process to `level`, and returns the level in effect.
///
/// Call this before the first code is created. The first call, or the first code, decides for the lifetime
/// of the process; later calls only report.
pub fn limit(level: Level) -> Level {
    CHOSEN.get_or_init(|| Path::best(level)).level()
}

/// Returns the level in effect: the best that this CPU supports, unless [`limit`] was called first.
#[must_use]
pub fn level() -> Level {
    limit(Level::Avx512Gfni)
}

/// The kernel in use. A variant with CPU features proves that they are available.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Path {
    /// Any CPU
    Portable,
    /// SSSE3
    #[cfg(target_arch = "x86_64")]
    Ssse3(Ssse3),
    /// AVX2
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    /// AVX2 and GFNI
    #[cfg(target_arch = "x86_64")]
    Gfni256(Gfni256),
    /// AVX-512 without GFNI
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
    /// AVX-512 with GFNI
    #[cfg(target_arch = "x86_64")]
    Gfni512(Gfni512),
    /// 64-bit ARM
    #[cfg(target_arch = "aarch64")]
    Neon(super::neon::Neon),
}

impl Path {
    /// Returns the path of this process.
    pub(crate) fn chosen() -> Self {
        *CHOSEN.get_or_init(|| Self::best(Level::Avx512Gfni))
    }

    /// Returns the paths that this CPU supports, the slowest first.
    pub(super) fn available() -> impl Iterator<Item = Self> {
        #[cfg(target_arch = "x86_64")]
        let wider = [
            Ssse3::detect().map(Self::Ssse3),
            Avx2::detect().map(Self::Avx2),
            Gfni256::detect().map(Self::Gfni256),
            Avx512::detect().map(Self::Avx512),
            Gfni512::detect().map(Self::Gfni512),
        ];
        #[cfg(target_arch = "aarch64")]
        let wider = [super::neon::Neon::detect().map(Self::Neon)];
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let wider: [Option<Self>; 0] = [];
        core::iter::once(Self::Portable).chain(wider.into_iter().flatten())
    }

    /// Returns the fastest path that is not above `limit`.
    pub(crate) fn best(limit: Level) -> Self {
        Self::available()
            .filter(|path| path.level() <= limit)
            .last()
            .unwrap_or(Self::Portable)
    }

    /// Returns the level of this path.
    pub(crate) const fn level(self) -> Level {
        match self {
            Self::Portable => Level::Portable,
            #[cfg(target_arch = "x86_64")]
            Self::Ssse3(_) => Level::Ssse3,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => Level::Avx2,
            #[cfg(target_arch = "x86_64")]
            Self::Gfni256(_) => Level::Avx2Gfni,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => Level::Avx512,
            #[cfg(target_arch = "x86_64")]
            Self::Gfni512(_) => Level::Avx512Gfni,
            #[cfg(target_arch = "aarch64")]
            Self::Neon(_) => Level::Neon,
        }
    }

    /// Sets each output to the sum of all inputs times the factors of its row.
    ///
    /// All slices have the same length. Lengths below one register are passed to the next narrower kernel.
    pub(crate) fn combine(self, factors: Factors<'_>, inputs: &[&[u8]], outputs: &mut [&mut [u8]]) {
        let len = outputs.first().map_or(0, |output| output.len());
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Gfni512(kernel) if len >= 64 => kernel.combine(factors, inputs, outputs),
            #[cfg(target_arch = "x86_64")]
            Self::Gfni512(kernel) if len >= 32 => kernel.narrow().combine(factors, inputs, outputs),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(kernel) if len >= 64 => kernel.combine(factors, inputs, outputs),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(kernel) if len >= 32 => kernel.narrow().combine(factors, inputs, outputs),
            #[cfg(target_arch = "x86_64")]
            Self::Gfni256(kernel) if len >= 32 => kernel.combine(factors, inputs, outputs),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(kernel) if len >= 32 => kernel.combine(factors, inputs, outputs),
            #[cfg(target_arch = "x86_64")]
            Self::Ssse3(kernel) if len >= 16 => kernel.combine(factors, inputs, outputs),
            #[cfg(target_arch = "aarch64")]
            Self::Neon(kernel) if len >= 16 => kernel.combine(factors, inputs, outputs),
            _ => portable::combine(factors, inputs, outputs),
        }
    }

    /// Adds to each output the product of `input` and the output's factor.
    ///
    /// All slices have the same length, a multiple of 64, the widest register.
    pub(crate) fn add(self, factors: &[u8], input: &[u8], outputs: &mut [&mut [u8]]) {
        match self {
            Self::Portable => portable::add(factors, input, outputs),
            #[cfg(target_arch = "x86_64")]
            Self::Ssse3(kernel) => kernel.add(factors, input, outputs),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(kernel) => kernel.add(factors, input, outputs),
            #[cfg(target_arch = "x86_64")]
            Self::Gfni256(kernel) => kernel.add(factors, input, outputs),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(kernel) => kernel.add(factors, input, outputs),
            #[cfg(target_arch = "x86_64")]
            Self::Gfni512(kernel) => kernel.add(factors, input, outputs),
            #[cfg(target_arch = "aarch64")]
            Self::Neon(kernel) => kernel.add(factors, input, outputs),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_have_names() {
        for level in Level::ALL {
            assert_eq!(Level::from_name(level.name()), Some(level));
        }
        assert_eq!(Level::from_name("AVX2"), None);
    }

    #[test]
    fn a_limit_is_never_exceeded() {
        for limit in Level::ALL {
            assert!(Path::best(limit).level() <= limit);
        }
        assert_eq!(Path::best(Level::Portable).level(), Level::Portable);
    }

    #[test]
    fn the_first_choice_stays() {
        let chosen = level();
        assert_eq!(limit(Level::Portable), chosen);
        assert_eq!(Path::chosen().level(), chosen);
    }
}
