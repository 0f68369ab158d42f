//! The keystreams alone, for the stream ciphers.

use super::{Kernel, Path, Rounds, Task};

/// Adds the keystream of ChaCha20 from block `state[12]` on to `buf`. The counter wraps at 2³².
pub(crate) fn xor_chacha20(path: Path, state: &[u32; 16], buf: &mut [u8]) {
    path.run(ChaCha(state, Rounds::TWENTY, buf));
}

/// Adds the keystream of Salsa20 from block `state[8]` on to `buf`. The counter wraps at 2³².
pub(crate) fn xor_salsa20(path: Path, state: &[u32; 16], buf: &mut [u8]) {
    path.run(Salsa(state, buf));
}

/// ChaCha with any number of rounds.
pub(super) struct ChaCha<'a>(
    pub(super) &'a [u32; 16],
    pub(super) Rounds,
    pub(super) &'a mut [u8],
);

impl Task for ChaCha<'_> {
    type Output = ();

    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) {
        kernel.xor(self.0, self.1, self.2);
    }
}

struct Salsa<'a>(&'a [u32; 16], &'a mut [u8]);

impl Task for Salsa<'_> {
    type Output = ();

    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) {
        kernel.salsa(self.0, self.1);
    }
}
