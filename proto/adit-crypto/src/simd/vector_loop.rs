//! Plain loops compiled for the widest path: the compiler vectorizes them, nothing here is unsafe, and
//! every path computes the same bytes.

use super::{CpuLevel, CpuPath, Kernel, Task};

/// A loop to vectorize. Implementations, and the functions they call, must be `#[inline(always)]`: only
/// then are they compiled for the features of the path.
pub(crate) trait VectorLoop {
    /// Runs the loop.
    fn run_loop(self);
}

/// Runs `work` in code compiled for `path`.
#[inline]
pub(crate) fn run_widest(path: CpuPath, work: impl VectorLoop) {
    path.run_task(LoopTask(work));
}

/// Runs `work` in code compiled for `path`, if that is [`MinimumLevel::LEAST`] or higher; returns true if it was
/// run. No code for lower levels is compiled.
#[inline]
pub(crate) fn run_in_vectors<L: MinimumLevel>(path: CpuPath, work: L) -> bool {
    match path {
        CpuPath::Portable => {
            // The only path of most architectures.
            drop(work);
            false
        }
        #[cfg(target_arch = "x86_64")]
        CpuPath::Avx2(_) | CpuPath::Avx2Vaes(_) if L::LEAST > CpuLevel::Avx2 => false,
        #[cfg(target_arch = "x86_64")]
        CpuPath::Avx2(kernel) => {
            kernel.enter(LoopTask(work));
            true
        }
        #[cfg(target_arch = "x86_64")]
        CpuPath::Avx2Vaes(kernel) => {
            kernel.without().enter(LoopTask(work));
            true
        }
        #[cfg(target_arch = "x86_64")]
        CpuPath::Avx512(kernel) => {
            kernel.enter(LoopTask(work));
            true
        }
        #[cfg(target_arch = "x86_64")]
        CpuPath::Ifma(kernel) => {
            kernel.without_ifma().enter(LoopTask(work));
            true
        }
    }
}

/// A loop that is only useful with vectors.
pub(crate) trait MinimumLevel: VectorLoop {
    /// The lowest sufficient level.
    #[cfg_attr(
        not(target_arch = "x86_64"),
        expect(dead_code, reason = "only x86-64 has levels")
    )]
    const LEAST: CpuLevel;
}

struct LoopTask<L>(L);

impl<L: VectorLoop> Task for LoopTask<L> {
    type Output = ();

    #[inline(always)]
    fn run_on<K: Kernel>(self, _: K) {
        self.0.run_loop();
    }
}
