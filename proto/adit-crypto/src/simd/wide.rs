//! Plain loops compiled for the widest path: the compiler vectorizes them, nothing here is unsafe, and
//! every path computes the same bytes.

use super::{CpuLevel, Kernel, Path, Task};

/// A loop to vectorize. Implementations, and the functions they call, must be `#[inline(always)]`: only
/// then are they compiled for the features of the path.
pub(crate) trait Loop {
    /// Runs the loop.
    fn run(self);
}

/// Runs `work` in code compiled for `path`.
#[inline]
pub(crate) fn widest(path: Path, work: impl Loop) {
    path.run(Plain(work));
}

/// Runs `work` in code compiled for `path`, if that is [`Vectors::LEAST`] or higher; returns true if it was
/// run. No code for lower levels is compiled.
#[inline]
pub(crate) fn in_vectors<L: Vectors>(path: Path, work: L) -> bool {
    match path {
        Path::Portable => false,
        #[cfg(target_arch = "x86_64")]
        Path::Avx2(_) | Path::Avx2Vaes(_) if L::LEAST > CpuLevel::Avx2 => false,
        #[cfg(target_arch = "x86_64")]
        Path::Avx2(kernel) => {
            kernel.enter(Plain(work));
            true
        }
        #[cfg(target_arch = "x86_64")]
        Path::Avx2Vaes(kernel) => {
            kernel.without().enter(Plain(work));
            true
        }
        #[cfg(target_arch = "x86_64")]
        Path::Avx512(kernel) => {
            kernel.enter(Plain(work));
            true
        }
        #[cfg(target_arch = "x86_64")]
        Path::Ifma(kernel) => {
            kernel.without().enter(Plain(work));
            true
        }
    }
}

/// A loop that is only useful with vectors.
pub(crate) trait Vectors: Loop {
    /// The lowest sufficient level.
    const LEAST: CpuLevel;
}

struct Plain<L>(L);

impl<L: Loop> Task for Plain<L> {
    type Output = ();

    #[inline(always)]
    fn run<K: Kernel>(self, _: K) {
        self.0.run();
    }
}
