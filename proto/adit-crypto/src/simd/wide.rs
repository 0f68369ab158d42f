//! Plain loops in the code of the widest path: the compiler makes the vectors, nothing here is
//! unsafe, and on every path the same bytes come out.

use super::{CpuLevel, Kernel, Path, Task};

/// A loop worth vectors. Implementations are `#[inline(always)]`, and so is what they call: only
/// then are they compiled for the features of the path.
pub(crate) trait Loop {
    /// Runs it.
    fn run(self);
}

/// Runs `work` in code compiled for `path`.
#[inline]
pub(crate) fn widest(path: Path, work: impl Loop) {
    path.run(Plain(work));
}

/// Runs `work` in code compiled for `path`, if that is [`Vectors::LEAST`] or more; returns whether it
/// was. There is no code for less.
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

/// A loop that is of use in vectors alone.
pub(crate) trait Vectors: Loop {
    /// The narrowest that are enough.
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
