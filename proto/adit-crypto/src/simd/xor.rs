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

/// Adds keystreams of Salsa20 to messages, each from block 0 on; `state` is that of their key under any
/// nonce. Blocks of several messages are made side by side, so that short ones leave no lane empty.
pub(crate) fn xor_salsa20_all<'p>(
    path: Path,
    state: &[u32; 16],
    messages: impl Iterator<Item = (&'p [u8; 8], &'p mut [u8])>,
) {
    let mut words = [[0; PIECES]; 3];
    let mut places: [&mut [u8]; PIECES] = Default::default();
    let mut count = 0;
    for (nonce, bytes) in messages {
        let (halves, _) = nonce.as_chunks();
        let nonce = [0, 1].map(|at| halves.get(at).copied().map_or(0, u32::from_le_bytes));
        if matches!(path, Path::Portable) {
            let mut state = *state;
            [state[6], state[7]] = nonce;
            xor_salsa20(path, &state, bytes);
            continue;
        }
        for (counter, bytes) in (0..).zip(bytes.chunks_mut(BLOCK)) {
            places[count] = bytes;
            [words[0][count], words[1][count]] = nonce;
            words[2][count] = counter;
            count += 1;
            if count == PIECES {
                let (words, bytes) = (&words, &mut places[..]);
                path.run(SalsaPieces(state, Pieces { words, bytes }));
                count = 0;
            }
        }
    }
    if let Some(bytes @ [_, ..]) = places.get_mut(..count) {
        let words = &words;
        path.run(SalsaPieces(state, Pieces { words, bytes }));
    }
}

/// Bytes of a block of Salsa20.
const BLOCK: usize = 64;

/// Blocks that are made side by side at most.
const PIECES: usize = 16;

/// Blocks of keystream: for each the nonce of its stream in two words and which block it is there,
/// and the bytes that it is added to, one block of them at most.
///
/// The words lie as the vectors take them, and in memory: put together in registers, one after the
/// other, they took a tenth of the time of their keystream.
pub(super) struct Pieces<'a, 'p> {
    pub(super) words: &'a [[u32; PIECES]; 3],
    pub(super) bytes: &'a mut [&'p mut [u8]],
}

struct SalsaPieces<'a, 'p>(&'a [u32; 16], Pieces<'a, 'p>);

impl Task for SalsaPieces<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) {
        kernel.salsa_pieces(self.0, self.1);
    }
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
