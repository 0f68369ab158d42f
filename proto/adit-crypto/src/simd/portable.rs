//! The path for every CPU, in safe Rust: four blocks of ChaCha or Salsa20 in parallel, which compilers turn
//! into 128-bit vectors where the target has them, and the scalar Poly1305.
//!
//! The other paths are tested against it, and it is tested against the published vectors and other
//! libraries.

use super::{
    ChaChaRounds, Kernel, SalsaBlocks, TagInput, Task,
    poly1305::{MessageEnding, Poly1305},
    wipe_stack,
};

/// Number of blocks in parallel.
const SIDE: usize = 4;
const BLOCK: usize = 64;

/// One word of each of four blocks.
type Column = [u32; SIDE];

/// The proof of the portable path, which needs no features.
#[derive(Clone, Copy, Debug)]
pub(super) struct Portable;

impl Kernel for Portable {
    const TOGETHER: bool = false;

    fn enter<T: Task>(self, task: T) -> T::Output {
        task.run_on(self)
    }

    fn xor_chacha(self, state: &[u32; 16], rounds: ChaChaRounds, buf: &mut [u8]) {
        xor_keystream::<12>(state, rounds, chacha_double_round, buf);
    }

    fn xor_salsa(self, state: &[u32; 16], buf: &mut [u8]) {
        xor_keystream::<8>(state, ChaChaRounds::TWENTY, salsa_double_round, buf);
    }

    fn xor_salsa_blocks(self, state: &[u32; 16], pieces: SalsaBlocks<'_, '_>) {
        let [first, second, counters] = pieces.words;
        let words = first.iter().zip(second).zip(counters);
        for (bytes, ((first, second), counter)) in pieces.bytes.iter_mut().zip(words) {
            let mut state = *state;
            [state[6], state[7], state[8]] = [*first, *second, *counter];
            self.xor_salsa(&state, bytes);
        }
    }

    fn poly1305_tag(self, key: &[u8; 32], data: &[u8], form: TagInput) -> [u8; 16] {
        let (whole, ending) = MessageEnding::split(data, form);
        let mut poly = Poly1305::new(key);
        poly.absorb(whole);
        poly.absorb(ending.as_bytes());
        if let Some(block) = ending.partial_block() {
            poly.absorb_partial(block);
        }
        poly.finish()
    }
}

/// Adds the keystream of the cipher with the double round `stir` and the block counter at index `COUNTER`.
#[inline(always)]
fn xor_keystream<const COUNTER: usize>(
    state: &[u32; 16],
    rounds: ChaChaRounds,
    stir: impl Fn(&mut [Column; 16]),
    buf: &mut [u8],
) {
    let mut counter = state[COUNTER];
    let mut keystream = [0; SIDE * BLOCK];
    for chunk in buf.chunks_mut(SIDE * BLOCK) {
        keystream_blocks::<COUNTER>(state, counter, rounds, &stir, &mut keystream);
        for (byte, key) in chunk.iter_mut().zip(&keystream) {
            *byte ^= key;
        }
        counter = counter.wrapping_add(const { SIDE as u32 });
    }
    wipe_stack(&mut keystream);
}

#[inline(always)]
fn keystream_blocks<const COUNTER: usize>(
    state: &[u32; 16],
    counter: u32,
    rounds: ChaChaRounds,
    stir: impl Fn(&mut [Column; 16]),
    out: &mut [u8; SIDE * BLOCK],
) {
    let mut start: [Column; 16] = state.map(|word| [word; SIDE]);
    start[COUNTER] = [0, 1, 2, 3].map(|block| counter.wrapping_add(block));
    let mut v = start;
    for _ in 0..rounds.double_rounds() {
        stir(&mut v);
    }
    for (i, (v, start)) in v.iter().zip(&start).enumerate() {
        for (block, word) in add_columns(*v, *start).into_iter().enumerate() {
            let at = block * BLOCK + i * 4;
            out[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
    }
    wipe_stack(v.as_flattened_mut());
    wipe_stack(start.as_flattened_mut());
}

#[inline(always)]
fn chacha_double_round(v: &mut [Column; 16]) {
    chacha_quarter(v, [0, 4, 8, 12]);
    chacha_quarter(v, [1, 5, 9, 13]);
    chacha_quarter(v, [2, 6, 10, 14]);
    chacha_quarter(v, [3, 7, 11, 15]);
    chacha_quarter(v, [0, 5, 10, 15]);
    chacha_quarter(v, [1, 6, 11, 12]);
    chacha_quarter(v, [2, 7, 8, 13]);
    chacha_quarter(v, [3, 4, 9, 14]);
}

#[inline(always)]
fn chacha_quarter(v: &mut [Column; 16], [a, b, c, d]: [usize; 4]) {
    v[a] = add_columns(v[a], v[b]);
    v[d] = rotate_columns::<16>(xor_columns(v[d], v[a]));
    v[c] = add_columns(v[c], v[d]);
    v[b] = rotate_columns::<12>(xor_columns(v[b], v[c]));
    v[a] = add_columns(v[a], v[b]);
    v[d] = rotate_columns::<8>(xor_columns(v[d], v[a]));
    v[c] = add_columns(v[c], v[d]);
    v[b] = rotate_columns::<7>(xor_columns(v[b], v[c]));
}

#[inline(always)]
fn salsa_double_round(v: &mut [Column; 16]) {
    salsa_quarter(v, [0, 4, 8, 12]);
    salsa_quarter(v, [5, 9, 13, 1]);
    salsa_quarter(v, [10, 14, 2, 6]);
    salsa_quarter(v, [15, 3, 7, 11]);
    salsa_quarter(v, [0, 1, 2, 3]);
    salsa_quarter(v, [5, 6, 7, 4]);
    salsa_quarter(v, [10, 11, 8, 9]);
    salsa_quarter(v, [15, 12, 13, 14]);
}

#[inline(always)]
fn salsa_quarter(v: &mut [Column; 16], [a, b, c, d]: [usize; 4]) {
    v[b] = xor_columns(v[b], rotate_columns::<7>(add_columns(v[a], v[d])));
    v[c] = xor_columns(v[c], rotate_columns::<9>(add_columns(v[b], v[a])));
    v[d] = xor_columns(v[d], rotate_columns::<13>(add_columns(v[c], v[b])));
    v[a] = xor_columns(v[a], rotate_columns::<18>(add_columns(v[d], v[c])));
}

#[inline(always)]
fn add_columns(a: Column, b: Column) -> Column {
    core::array::from_fn(|i| a[i].wrapping_add(b[i]))
}

#[inline(always)]
fn xor_columns(a: Column, b: Column) -> Column {
    core::array::from_fn(|i| a[i] ^ b[i])
}

#[inline(always)]
fn rotate_columns<const BITS: u32>(a: Column) -> Column {
    a.map(|word| word.rotate_left(BITS))
}
