//! The plain keystreams, for the stream ciphers.

use adit_wire::narrow_int;

use super::{ChaChaRounds, CpuPath, Kernel, MAX_BLOCKS, SalsaBlocks, Task};

/// Adds the keystream of ChaCha20 from block `state[12]` on to `buf`. The counter wraps at 2³².
pub(crate) fn xor_chacha20(path: CpuPath, state: &[u32; 16], buf: &mut [u8]) {
    path.run_task(ChaCha(state, ChaChaRounds::TWENTY, buf));
}

/// Adds the keystream of Salsa20 from block `state[8]` on to `buf`. The counter wraps at 2³².
pub(crate) fn xor_salsa20(path: CpuPath, state: &[u32; 16], buf: &mut [u8]) {
    path.run_task(Salsa(state, buf));
}

/// Adds keystreams of Salsa20 to messages, each from block 0 on; `state` is that of their key under any
/// nonce. The ends of several messages are computed in parallel, so that short ones leave no lane empty.
pub(crate) fn xor_salsa20_all<'p>(
    path: CpuPath,
    state: &[u32; 16],
    messages: impl Iterator<Item = (&'p [u8; 8], &'p mut [u8])>,
) {
    path.run_task(SalsaAll(state, messages));
}

struct SalsaAll<'a, I>(&'a [u32; 16], I);

impl<'p, I: Iterator<Item = (&'p [u8; 8], &'p mut [u8])>> Task for SalsaAll<'_, I> {
    type Output = ();

    /// Messages that fill all lanes take a shorter path: no block has to be moved to its place.
    #[inline(always)]
    fn run_on<K: Kernel>(self, kernel: K) {
        let Self(state, messages) = self;
        let mut state = *state;
        let mut ends = PendingBlocks::default();
        for (nonce, bytes) in messages {
            let [a, b, c, d, e, f, g, h] = *nonce;
            let nonce = [[a, b, c, d], [e, f, g, h]].map(u32::from_le_bytes);
            let whole = if K::TOGETHER {
                bytes.len() - bytes.len() % (MAX_BLOCKS * BLOCK)
            } else {
                bytes.len()
            };
            let (front, end) = bytes.split_at_mut(whole);
            if !front.is_empty() {
                [state[6], state[7]] = nonce;
                kernel.xor_salsa(&state, front);
            }
            let first = narrow_int::<u32>(whole / BLOCK);
            for (counter, block) in (first..).zip(end.chunks_mut(BLOCK)) {
                ends.push_block(nonce, counter, block);
                if ends.count == MAX_BLOCKS {
                    kernel.xor_salsa_blocks(&state, ends.take_blocks());
                }
            }
        }
        if ends.count > 0 {
            kernel.xor_salsa_blocks(&state, ends.take_blocks());
        }
    }
}

/// Blocks that are being collected.
#[derive(Default)]
struct PendingBlocks<'p> {
    words: [[u32; MAX_BLOCKS]; 3],
    places: [&'p mut [u8]; MAX_BLOCKS],
    count: usize,
}

impl<'p> PendingBlocks<'p> {
    /// Adds a block. There must be room for it.
    #[inline(always)]
    fn push_block(&mut self, [first, second]: [u32; 2], counter: u32, block: &'p mut [u8]) {
        let at = self.count;
        self.words[0][at] = first;
        self.words[1][at] = second;
        self.words[2][at] = counter;
        self.places[at] = block;
        self.count += 1;
    }

    /// Returns all blocks and starts again with the first.
    #[inline(always)]
    fn take_blocks(&mut self) -> SalsaBlocks<'_, 'p> {
        let count = core::mem::take(&mut self.count);
        SalsaBlocks {
            words: &self.words,
            bytes: &mut self.places[..count],
        }
    }
}

/// Size of a block of Salsa20, in bytes.
const BLOCK: usize = 64;

/// ChaCha with any number of rounds.
pub(super) struct ChaCha<'a>(
    pub(super) &'a [u32; 16],
    pub(super) ChaChaRounds,
    pub(super) &'a mut [u8],
);

impl Task for ChaCha<'_> {
    type Output = ();

    #[inline(always)]
    fn run_on<K: Kernel>(self, kernel: K) {
        kernel.xor_chacha(self.0, self.1, self.2);
    }
}

struct Salsa<'a>(&'a [u32; 16], &'a mut [u8]);

impl Task for Salsa<'_> {
    type Output = ();

    #[inline(always)]
    fn run_on<K: Kernel>(self, kernel: K) {
        kernel.xor_salsa(self.0, self.1);
    }
}
