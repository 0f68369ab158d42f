//! Plain loops in the code of the widest path: the compiler makes the vectors, nothing here is
//! unsafe, and on every path the same bytes come out.

use super::{Kernel, Path, Task};

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

struct Plain<L>(L);

impl<L: Loop> Task for Plain<L> {
    type Output = ();

    #[inline(always)]
    fn run<K: Kernel>(self, _: K) {
        self.0.run();
    }
}
