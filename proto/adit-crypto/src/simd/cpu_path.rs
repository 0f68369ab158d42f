//! The choice of code for this CPU: detected once, never above the limit that the program has set.

use std::sync::OnceLock;

use super::{Kernel, Task, portable::Portable};
#[cfg(target_arch = "x86_64")]
use super::{avx2::Avx2, avx512::Avx512, clmul256::Clmul256, ifma::Ifma};

static CHOSEN: OnceLock<CpuPath> = OnceLock::new();

/// Vector width of this crate's own ciphers. AWS-LC and the other libraries choose for themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum CpuLevel {
    /// Plain Rust with the target's base instructions
    Portable,
    /// 256-bit vectors: AVX2
    Avx2,
    /// AVX2 with `VAES`, `VPCLMULQDQ` and, where the CPU has it, `GFNI`: desktop processors since 2020
    /// without AVX-512
    Avx2Vaes,
    /// 512-bit vectors: AVX-512 F, BW, DQ and VL; also IFMA and VAES where the CPU has them
    Avx512,
}

impl CpuLevel {
    /// All levels, the narrowest first.
    pub const ALL: [Self; 4] = [Self::Portable, Self::Avx2, Self::Avx2Vaes, Self::Avx512];

    /// Returns the name used in configurations and reports: `portable`, `avx2`, `avx2-vaes` or `avx512`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Avx2 => "avx2",
            Self::Avx2Vaes => "avx2-vaes",
            Self::Avx512 => "avx512",
        }
    }

    /// Returns the level called `name`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }
}

/// Limits the process to `level`, and returns the level in effect.
///
/// Call this before the first key is created. The first call, or the first key, decides for the lifetime of
/// the process; later calls only report.
pub fn limit_cpu(level: CpuLevel) -> CpuLevel {
    CHOSEN.get_or_init(|| CpuPath::best_within(level)).level()
}

/// Returns the level in effect: the best that this CPU supports, unless [`limit_cpu`] was called first.
#[must_use]
pub fn cpu_level() -> CpuLevel {
    limit_cpu(CpuLevel::Avx512)
}

/// The code in use. A variant with CPU features proves that they are available.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CpuPath {
    /// Any CPU
    Portable,
    /// AVX2
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    /// AVX2 with VAES and VPCLMULQDQ
    #[cfg(target_arch = "x86_64")]
    Avx2Vaes(Clmul256),
    /// AVX-512 without IFMA
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
    /// AVX-512 with IFMA
    #[cfg(target_arch = "x86_64")]
    Ifma(Ifma),
}

impl CpuPath {
    /// Returns the path of this process.
    pub(crate) fn of_process() -> Self {
        *CHOSEN.get_or_init(|| Self::best_within(CpuLevel::Avx512))
    }

    /// Returns the paths that this CPU supports, the slowest first.
    pub(crate) fn available() -> impl Iterator<Item = Self> {
        #[cfg(target_arch = "x86_64")]
        let wider = [
            Avx2::detect().map(Self::Avx2),
            Avx2::detect()
                .and_then(Clmul256::detect)
                .map(Self::Avx2Vaes),
            Avx512::detect().map(Self::Avx512),
            Ifma::detect().map(Self::Ifma),
        ];
        #[cfg(not(target_arch = "x86_64"))]
        let wider: [Option<Self>; 0] = [];
        core::iter::once(Self::Portable).chain(wider.into_iter().flatten())
    }

    fn best_within(limit: CpuLevel) -> Self {
        Self::available()
            .filter(|path| path.level() <= limit)
            .last()
            .unwrap_or(Self::Portable)
    }

    /// Returns the level of this path.
    pub(crate) const fn level(self) -> CpuLevel {
        match self {
            Self::Portable => CpuLevel::Portable,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => CpuLevel::Avx2,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2Vaes(_) => CpuLevel::Avx2Vaes,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) | Self::Ifma(_) => CpuLevel::Avx512,
        }
    }

    /// Returns true if this is the fastest path, AVX-512 with IFMA.
    pub(crate) const fn has_ifma(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        return matches!(self, Self::Ifma(_));
        #[cfg(not(target_arch = "x86_64"))]
        return false;
    }

    /// Runs `task` on this path.
    #[inline]
    pub(super) fn run_task<T: Task>(self, task: T) -> T::Output {
        match self {
            Self::Portable => Portable.enter(task),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(kernel) => kernel.enter(task),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2Vaes(kernel) => kernel.without().enter(task),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(kernel) => kernel.enter(task),
            #[cfg(target_arch = "x86_64")]
            Self::Ifma(kernel) => kernel.enter(task),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_have_names() {
        for level in CpuLevel::ALL {
            assert_eq!(CpuLevel::from_name(level.name()), Some(level));
        }
        assert_eq!(CpuLevel::from_name("AVX2"), None);
        assert_eq!(CpuLevel::from_name(""), None);
    }

    #[test]
    fn a_limit_is_never_exceeded() {
        for limit in CpuLevel::ALL {
            assert!(CpuPath::best_within(limit).level() <= limit);
        }
        assert_eq!(
            CpuPath::best_within(CpuLevel::Portable).level(),
            CpuLevel::Portable
        );
    }

    #[test]
    fn the_first_choice_stays() {
        let level = cpu_level();
        assert_eq!(limit_cpu(CpuLevel::Portable), level);
        assert_eq!(CpuPath::of_process().level(), level);
    }
}
