//! Tests of every path against the published vectors, other libraries and the portable path.

mod agreement;
mod allocation;
mod highway;
mod salsa;
mod vectors;

use super::{ChaChaKey, ChaChaRounds, CpuPath, Kernel, TagInput, Task, stream_xor::ChaCha};
use crate::Secret;

const ALL_ROUNDS: [ChaChaRounds; 3] = [
    ChaChaRounds::EIGHT,
    ChaChaRounds::TWELVE,
    ChaChaRounds::TWENTY,
];

/// Returns the paths of this CPU except the portable one.
fn wider() -> impl Iterator<Item = CpuPath> {
    CpuPath::available().skip(1)
}

fn key(path: CpuPath, rounds: ChaChaRounds, key: &[u8; 32]) -> ChaChaKey {
    ChaChaKey::new(Secret::new(*key), rounds, path)
}

/// Computes the authenticator alone.
struct Mac<'a>(&'a [u8; 32], &'a [u8], TagInput);

impl Task for Mac<'_> {
    type Output = [u8; 16];

    #[inline(always)]
    fn run_on<K: Kernel>(self, kernel: K) -> [u8; 16] {
        kernel.poly1305_tag(self.0, self.1, self.2)
    }
}

/// A small generator (SplitMix64), so that failures are reproducible.
struct TestRng(u64);

impl TestRng {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.roll() % bound as u64).unwrap()
    }

    fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.roll().to_le_bytes()[..chunk.len()]);
        }
    }

    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.fill(&mut bytes);
        bytes
    }
}
