//! The choice of the kernel for this CPU: detected once, never above the limit that the program has set.

use core::sync::atomic::{AtomicU8, Ordering};

use super::{FactorRows, portable};
#[cfg(target_arch = "x86_64")]
use super::{avx2::Avx2, avx512::Avx512, gfni::Gfni256, gfni::Gfni512, ssse3::Ssse3};

/// The number of the level in effect, or [`UNDECIDED`].
static CHOSEN: AtomicU8 = AtomicU8::new(UNDECIDED);
const UNDECIDED: u8 = u8::MAX;

/// The CPU features that kernels may use, the slowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FecLevel {
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

impl FecLevel {
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
        KernelPath::available().map(KernelPath::level)
    }
}

/// Limits the process to `level`, and returns the level in effect.
///
/// Call this before the first code is created. The first call, or the first code, decides for the lifetime
/// of the process; later calls only report.
pub fn limit_level(level: FecLevel) -> FecLevel {
    path_of_process(level).level()
}

/// Returns the level in effect: the best that this CPU supports, unless [`limit_level`] was called first.
#[must_use]
pub fn effective_level() -> FecLevel {
    limit_level(FecLevel::Avx512Gfni)
}

/// Returns the path of this process, which is the best within `limit` if it is not decided yet.
fn path_of_process(limit: FecLevel) -> KernelPath {
    let path = KernelPath::best_within(limit);
    // The number alone is shared, so no memory has to be visible with it.
    let (to, order) = (path.level() as u8, Ordering::Relaxed);
    match CHOSEN.compare_exchange(UNDECIDED, to, order, order) {
        Ok(_) => path,
        Err(chosen) => {
            let mut paths = KernelPath::available();
            let chosen = paths.find(|path| path.level() as u8 == chosen);
            chosen.unwrap_or(KernelPath::Portable)
        }
    }
}

/// The kernel in use. A variant with CPU features proves that they are available.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KernelPath {
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

impl KernelPath {
    /// Returns the path of this process.
    pub(crate) fn of_process() -> Self {
        path_of_process(FecLevel::Avx512Gfni)
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
    pub(crate) fn best_within(limit: FecLevel) -> Self {
        Self::available()
            .filter(|path| path.level() <= limit)
            .last()
            .unwrap_or(Self::Portable)
    }

    /// Returns the level of this path.
    pub(crate) const fn level(self) -> FecLevel {
        match self {
            Self::Portable => FecLevel::Portable,
            #[cfg(target_arch = "x86_64")]
            Self::Ssse3(_) => FecLevel::Ssse3,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => FecLevel::Avx2,
            #[cfg(target_arch = "x86_64")]
            Self::Gfni256(_) => FecLevel::Avx2Gfni,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => FecLevel::Avx512,
            #[cfg(target_arch = "x86_64")]
            Self::Gfni512(_) => FecLevel::Avx512Gfni,
            #[cfg(target_arch = "aarch64")]
            Self::Neon(_) => FecLevel::Neon,
        }
    }

    /// Sets each output to the sum of all inputs times the factors of its row.
    ///
    /// All slices have the same length. Lengths below one register are passed to the next narrower kernel.
    pub(crate) fn sum_products(
        self,
        factors: FactorRows<'_>,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
    ) {
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        let len = outputs.first().map_or(0, |output| output.len());
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Gfni512(kernel) if len >= 64 => kernel.sum_products(factors, inputs, outputs),
            #[cfg(target_arch = "x86_64")]
            Self::Gfni512(kernel) if len >= 32 => kernel
                .narrower_kernel()
                .sum_products(factors, inputs, outputs),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(kernel) if len >= 64 => kernel.sum_products(factors, inputs, outputs),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(kernel) if len >= 32 => kernel
                .narrower_kernel()
                .sum_products(factors, inputs, outputs),
            #[cfg(target_arch = "x86_64")]
            Self::Gfni256(kernel) if len >= 32 => kernel.sum_products(factors, inputs, outputs),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(kernel) if len >= 32 => kernel.sum_products(factors, inputs, outputs),
            #[cfg(target_arch = "x86_64")]
            Self::Ssse3(kernel) if len >= 16 => kernel.sum_products(factors, inputs, outputs),
            #[cfg(target_arch = "aarch64")]
            Self::Neon(kernel) if len >= 16 => kernel.sum_products(factors, inputs, outputs),
            _ => portable::sum_products(factors, inputs, outputs),
        }
    }

    /// Adds to each output the product of `input` and the output's factor.
    ///
    /// All slices have the same length, a multiple of 64, the widest register.
    pub(crate) fn add_products(self, factors: &[u8], input: &[u8], outputs: &mut [&mut [u8]]) {
        match self {
            Self::Portable => portable::add_products(factors, input, outputs),
            #[cfg(target_arch = "x86_64")]
            Self::Ssse3(kernel) => kernel.add_products(factors, input, outputs),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(kernel) => kernel.add_products(factors, input, outputs),
            #[cfg(target_arch = "x86_64")]
            Self::Gfni256(kernel) => kernel.add_products(factors, input, outputs),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(kernel) => kernel.add_products(factors, input, outputs),
            #[cfg(target_arch = "x86_64")]
            Self::Gfni512(kernel) => kernel.add_products(factors, input, outputs),
            #[cfg(target_arch = "aarch64")]
            Self::Neon(kernel) => kernel.add_products(factors, input, outputs),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_have_names() {
        for level in FecLevel::ALL {
            assert_eq!(FecLevel::from_name(level.name()), Some(level));
        }
        assert_eq!(FecLevel::from_name("AVX2"), None);
    }

    #[test]
    fn a_limit_is_never_exceeded() {
        for limit in FecLevel::ALL {
            assert!(KernelPath::best_within(limit).level() <= limit);
        }
        assert_eq!(
            KernelPath::best_within(FecLevel::Portable).level(),
            FecLevel::Portable
        );
    }

    #[test]
    fn the_first_choice_stays() {
        let chosen = effective_level();
        assert_eq!(limit_level(FecLevel::Portable), chosen);
        assert_eq!(KernelPath::of_process().level(), chosen);
    }
}
