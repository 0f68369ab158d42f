//! ChaCha and Salsa20 over vectors of any width: two layouts of the state, both in safe code.
//!
//! *Columns*: sixteen vectors, each with one state word of as many blocks as it has words; no shuffling
//! during the rounds, a transposition at the end. *Rows*: four vectors with the four rows of as many blocks
//! as they have 128-bit lanes; for the rest at the end of a message. Salsa20, whose rows are diagonal, only
//! has columns, but these may be blocks of several messages.
//!
//! Do not use closures over vectors here or in [`super::poly1305_lanes`]: they need not be inlined, and outside the
//! functions compiled for a feature each operation would become a call.

#![allow(
    clippy::needless_range_loop,
    reason = "constant indices keep the vectors in registers"
)]

use super::{ChaChaRounds, SalsaBlocks};

/// A vector of 32-bit words, in lanes of four.
pub(super) trait Words: Copy {
    /// The proof that the CPU has the instructions.
    type Proof: Copy;
    /// Size of a vector, in bytes: 32 or 64.
    const BYTES: usize;

    /// Loads the first [`Words::BYTES`] bytes of these words.
    fn load(proof: Self::Proof, words: &[u32; 16]) -> Self;
    /// Returns a vector with one word everywhere.
    fn splat(proof: Self::Proof, word: u32) -> Self;
    /// Returns a vector with four words in each lane.
    fn repeat(proof: Self::Proof, words: &[u32; 4]) -> Self;

    /// Adds word by word, modulo 2³².
    fn add(self, other: Self) -> Self;
    /// Computes the exclusive or.
    fn xor(self, other: Self) -> Self;
    /// Rotates each word left by 16 bits.
    fn rotl16(self) -> Self;
    /// Rotates each word left by 12 bits.
    fn rotl12(self) -> Self;
    /// Rotates each word left by 8 bits.
    fn rotl8(self) -> Self;
    /// Rotates each word left by 7 bits.
    fn rotl7(self) -> Self;
    /// Rotates each word left by 9 bits.
    fn rotl9(self) -> Self;
    /// Rotates each word left by 13 bits.
    fn rotl13(self) -> Self;
    /// Rotates each word left by 18 bits.
    fn rotl18(self) -> Self;

    /// Moves word i + 1 of each lane to word i.
    fn turn1(self) -> Self;
    /// Moves word i + 2 of each lane to word i.
    fn turn2(self) -> Self;
    /// Moves word i + 3 of each lane to word i.
    fn turn3(self) -> Self;

    /// Transposes the 4 x 4 words of four vectors in each lane.
    fn transpose(rows: [Self; 4]) -> [Self; 4];
    /// Reorders the lanes of four vectors: lane 0 of each, lane 1 of each, and so on.
    fn deal(rows: [Self; 4]) -> [Self; 4];

    /// Adds the first bytes to `bytes`, which has at most [`Words::BYTES`].
    fn xor_into(self, bytes: &mut [u8]);
}

/// Adds the keystream from block `state[12]` on to `buf`.
#[inline(always)]
pub(super) fn xor_chacha<W: Words>(
    proof: W::Proof,
    state: &[u32; 16],
    rounds: ChaChaRounds,
    buf: &mut [u8],
) {
    let mut counter = state[12];
    let (chunks, rest) = buf.split_at_mut(buf.len() - buf.len() % (16 * W::BYTES));
    for chunk in chunks.chunks_exact_mut(16 * W::BYTES) {
        xor_columns::<W, ChaCha>(proof, state, counter, rounds, chunk);
        counter = counter.wrapping_add(const { W::BYTES as u32 / 4 });
    }
    match rest.len().div_ceil(4 * W::BYTES) {
        0 => {}
        1 => xor_rows::<W, 1>(proof, state, counter, rounds, rest),
        2 => xor_rows::<W, 2>(proof, state, counter, rounds, rest),
        3 => xor_rows::<W, 3>(proof, state, counter, rounds, rest),
        _ => xor_rows::<W, 4>(proof, state, counter, rounds, rest),
    }
}

/// Index of the Salsa20 state word that counts blocks.
pub(super) const SALSA_COUNTER: usize = Salsa::COUNTER;

/// Adds the keystream of Salsa20 from block `state[8]` on to `buf`.
#[inline(always)]
pub(super) fn xor_salsa<W: Words>(proof: W::Proof, state: &[u32; 16], buf: &mut [u8]) {
    const ROUNDS: ChaChaRounds = ChaChaRounds::TWENTY;
    let mut counter = state[Salsa::COUNTER];
    let (chunks, rest) = buf.split_at_mut(buf.len() - buf.len() % (16 * W::BYTES));
    for chunk in chunks.chunks_exact_mut(16 * W::BYTES) {
        xor_columns::<W, Salsa>(proof, state, counter, ROUNDS, chunk);
        counter = counter.wrapping_add(const { W::BYTES as u32 / 4 });
    }
    if !rest.is_empty() {
        // No other method is much faster for the rest.
        xor_columns::<W, Salsa>(proof, state, counter, ROUNDS, rest);
    }
}

/// Adds the keystream of Salsa20 to blocks of any streams, at most as many as a vector has words; nonce and
/// counter of `state` are ignored.
#[inline(always)]
pub(super) fn xor_salsa_blocks<W: Words>(
    proof: W::Proof,
    state: &[u32; 16],
    pieces: SalsaBlocks<'_, '_>,
) {
    let SalsaBlocks { words, bytes } = pieces;
    assert!(bytes.len() <= W::BYTES / 4);
    let mut start = [W::splat(proof, 0); 16];
    for i in 0..16 {
        start[i] = W::splat(proof, state[i]);
    }
    for i in 0..3 {
        start[Salsa::NONCE + i] = W::load(proof, &words[i]);
    }
    let mut v = start;
    for _ in 0..ChaChaRounds::TWENTY.double_rounds() {
        Salsa::double_round(&mut v);
    }
    for i in 0..16 {
        v[i] = v[i].add(start[i]);
    }
    let per_block = 64 / W::BYTES;
    let quads = transpose_quads(v);
    for k in 0..4 {
        let dealt = W::deal([quads[0][k], quads[1][k], quads[2][k], quads[3][k]]);
        for i in 0..4 {
            let Some(block) = bytes.get_mut(4 * (i / per_block) + k) else {
                continue;
            };
            let Some(bytes) = block.get_mut(i % per_block * W::BYTES..) else {
                continue;
            };
            let len = bytes.len().min(W::BYTES);
            dealt[i].xor_into(&mut bytes[..len]);
        }
    }
}

/// Returns `quads[g][k]`, whose lane l has words 4g to 4g + 3 of block 4l + k.
#[inline(always)]
fn transpose_quads<W: Words>(v: [W; 16]) -> [[W; 4]; 4] {
    [
        W::transpose([v[0], v[1], v[2], v[3]]),
        W::transpose([v[4], v[5], v[6], v[7]]),
        W::transpose([v[8], v[9], v[10], v[11]]),
        W::transpose([v[12], v[13], v[14], v[15]]),
    ]
}

/// The rounds of one cipher on columns.
trait ColumnCipher {
    /// Index of the word that counts blocks.
    const COUNTER: usize;
    /// Performs two rounds.
    fn double_round<W: Words>(v: &mut [W; 16]);
}

/// Adds at most 16 vectors of keystream.
#[inline(always)]
fn xor_columns<W: Words, C: ColumnCipher>(
    proof: W::Proof,
    state: &[u32; 16],
    counter: u32,
    rounds: ChaChaRounds,
    buf: &mut [u8],
) {
    assert!(buf.len() <= 16 * W::BYTES);
    let count = W::load(
        proof,
        &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    );
    let mut v = [count; 16];
    for i in 0..16 {
        v[i] = W::splat(proof, state[i]);
    }
    v[C::COUNTER] = W::splat(proof, counter).add(count);
    for _ in 0..rounds.double_rounds() {
        C::double_round(&mut v);
    }
    v[C::COUNTER] = v[C::COUNTER].add(count);
    for i in 0..16 {
        let word = if i == C::COUNTER { counter } else { state[i] };
        v[i] = v[i].add(W::splat(proof, word));
    }
    let quads = transpose_quads(v);
    let per_block = 64 / W::BYTES;
    let whole = buf.len() == 16 * W::BYTES;
    for k in 0..4 {
        let dealt = W::deal([quads[0][k], quads[1][k], quads[2][k], quads[3][k]]);
        for i in 0..4 {
            let at = (4 * (i / per_block) + k) * 64 + i % per_block * W::BYTES;
            if whole {
                dealt[i].xor_into(&mut buf[at..at + W::BYTES]);
            } else if let Some(bytes) = buf.get_mut(at..) {
                let len = bytes.len().min(W::BYTES);
                dealt[i].xor_into(&mut bytes[..len]);
            }
        }
    }
}

struct ChaCha;

impl ColumnCipher for ChaCha {
    const COUNTER: usize = 12;

    #[inline(always)]
    fn double_round<W: Words>(v: &mut [W; 16]) {
        // Written out: a loop over the indices leaves `v` in memory.
        Self::quarter(v, 0, 4, 8, 12);
        Self::quarter(v, 1, 5, 9, 13);
        Self::quarter(v, 2, 6, 10, 14);
        Self::quarter(v, 3, 7, 11, 15);
        Self::quarter(v, 0, 5, 10, 15);
        Self::quarter(v, 1, 6, 11, 12);
        Self::quarter(v, 2, 7, 8, 13);
        Self::quarter(v, 3, 4, 9, 14);
    }
}

impl ChaCha {
    #[inline(always)]
    fn quarter<W: Words>(v: &mut [W; 16], a: usize, b: usize, c: usize, d: usize) {
        v[a] = v[a].add(v[b]);
        v[d] = v[d].xor(v[a]).rotl16();
        v[c] = v[c].add(v[d]);
        v[b] = v[b].xor(v[c]).rotl12();
        v[a] = v[a].add(v[b]);
        v[d] = v[d].xor(v[a]).rotl8();
        v[c] = v[c].add(v[d]);
        v[b] = v[b].xor(v[c]).rotl7();
    }
}

struct Salsa;

impl ColumnCipher for Salsa {
    const COUNTER: usize = 8;

    #[inline(always)]
    fn double_round<W: Words>(v: &mut [W; 16]) {
        Self::quarter(v, 0, 4, 8, 12);
        Self::quarter(v, 5, 9, 13, 1);
        Self::quarter(v, 10, 14, 2, 6);
        Self::quarter(v, 15, 3, 7, 11);
        Self::quarter(v, 0, 1, 2, 3);
        Self::quarter(v, 5, 6, 7, 4);
        Self::quarter(v, 10, 11, 8, 9);
        Self::quarter(v, 15, 12, 13, 14);
    }
}

impl Salsa {
    /// Index of the two nonce words, which the block counter follows.
    const NONCE: usize = 6;

    #[inline(always)]
    fn quarter<W: Words>(v: &mut [W; 16], a: usize, b: usize, c: usize, d: usize) {
        v[b] = v[b].xor(v[a].add(v[d]).rotl7());
        v[c] = v[c].xor(v[b].add(v[a]).rotl9());
        v[d] = v[d].xor(v[c].add(v[b]).rotl13());
        v[a] = v[a].xor(v[d].add(v[c]).rotl18());
    }
}

/// Adds at most 4 · `SETS` vectors of keystream.
#[inline(always)]
fn xor_rows<W: Words, const SETS: usize>(
    proof: W::Proof,
    state: &[u32; 16],
    counter: u32,
    rounds: ChaChaRounds,
    buf: &mut [u8],
) {
    let a = W::repeat(proof, &[state[0], state[1], state[2], state[3]]);
    let b = W::repeat(proof, &[state[4], state[5], state[6], state[7]]);
    let c = W::repeat(proof, &[state[8], state[9], state[10], state[11]]);
    let lanes = W::load(proof, &[0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]);
    let d = W::repeat(proof, &[counter, state[13], state[14], state[15]]).add(lanes);
    let skip = const { W::BYTES as u32 / 16 };
    let mut sets = [[a, b, c, d]; SETS];
    for set in 1..SETS {
        let on = W::repeat(proof, &[set as u32 * skip, 0, 0, 0]);
        sets[set][3] = d.add(on);
    }
    for _ in 0..rounds.double_rounds() {
        quarter_rounds::<W, SETS>(&mut sets);
        for [_, b, c, d] in &mut sets {
            (*b, *c, *d) = (b.turn1(), c.turn2(), d.turn3());
        }
        quarter_rounds::<W, SETS>(&mut sets);
        for [_, b, c, d] in &mut sets {
            (*b, *c, *d) = (b.turn3(), c.turn2(), d.turn1());
        }
    }
    for set in 0..SETS {
        let v = sets[set];
        let on = W::repeat(proof, &[set as u32 * skip, 0, 0, 0]);
        let dealt = W::deal([v[0].add(a), v[1].add(b), v[2].add(c), v[3].add(d).add(on)]);
        for i in 0..4 {
            let at = (4 * set + i) * W::BYTES;
            let Some(bytes) = buf.get_mut(at..) else {
                return;
            };
            let len = bytes.len().min(W::BYTES);
            dealt[i].xor_into(&mut bytes[..len]);
        }
    }
}

/// Performs a quarter round on each column of every set, interleaving the sets so that they hide each
/// other's latency.
#[inline(always)]
fn quarter_rounds<W: Words, const SETS: usize>(sets: &mut [[W; 4]; SETS]) {
    for [a, b, _, d] in &mut *sets {
        *a = a.add(*b);
        *d = d.xor(*a).rotl16();
    }
    for [_, b, c, d] in &mut *sets {
        *c = c.add(*d);
        *b = b.xor(*c).rotl12();
    }
    for [a, b, _, d] in &mut *sets {
        *a = a.add(*b);
        *d = d.xor(*a).rotl8();
    }
    for [_, b, c, d] in &mut *sets {
        *c = c.add(*d);
        *b = b.xor(*c).rotl7();
    }
}
