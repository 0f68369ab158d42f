//! The path for every CPU, in safe Rust: four blocks of ChaCha or Salsa20 in parallel, which compilers turn
//! into 128-bit vectors where the target has them, and the scalar Poly1305.
//!
//! The other paths are tested against it, and it is tested against the published vectors and other
//! libraries.

use super::{
    Form, Kernel, Pieces, Rounds, Task,
    poly1305::{Ending, Poly1305},
    wipe,
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
        task.run(self)
    }

    fn xor(self, state: &[u32; 16], rounds: Rounds, buf: &mut [u8]) {
        xor::<12>(state, rounds, chacha, buf);
    }

    fn salsa(self, state: &[u32; 16], buf: &mut [u8]) {
        xor::<8>(state, Rounds::TWENTY, salsa, buf);
    }

    fn salsa_pieces(self, state: &[u32; 16], pieces: Pieces<'_, '_>) {
        let [first, second, counters] = pieces.words;
        let words = first.iter().zip(second).zip(counters);
        for (bytes, ((first, second), counter)) in pieces.bytes.iter_mut().zip(words) {
            let mut state = *state;
            [state[6], state[7], state[8]] = [*first, *second, *counter];
            self.salsa(&state, bytes);
        }
    }

    fn tag(self, key: &[u8; 32], data: &[u8], form: Form) -> [u8; 16] {
        let (whole, ending) = Ending::split(data, form);
        let mut poly = Poly1305::new(key);
        poly.absorb(whole);
        poly.absorb(ending.as_bytes());
        if let Some(block) = ending.broken() {
            poly.absorb_broken(block);
        }
        poly.finish()
    }
}

/// Adds the keystream of the cipher with the double round `stir` and the block counter at index `COUNTER`.
#[inline(always)]
fn xor<const COUNTER: usize>(
    state: &[u32; 16],
    rounds: Rounds,
    stir: impl Fn(&mut [Column; 16]),
    buf: &mut [u8],
) {
    let mut counter = state[COUNTER];
    let mut keystream = [0; SIDE * BLOCK];
    for chunk in buf.chunks_mut(SIDE * BLOCK) {
        blocks::<COUNTER>(state, counter, rounds, &stir, &mut keystream);
        for (byte, key) in chunk.iter_mut().zip(&keystream) {
            *byte ^= key;
        }
        counter = counter.wrapping_add(const { SIDE as u32 });
    }
    wipe(&mut keystream);
}

#[inline(always)]
fn blocks<const COUNTER: usize>(
    state: &[u32; 16],
    counter: u32,
    rounds: Rounds,
    stir: impl Fn(&mut [Column; 16]),
    out: &mut [u8; SIDE * BLOCK],
) {
    let mut start: [Column; 16] = state.map(|word| [word; SIDE]);
    start[COUNTER] = [0, 1, 2, 3].map(|block| counter.wrapping_add(block));
    let mut v = start;
    for _ in 0..rounds.doubled() {
        stir(&mut v);
    }
    for (i, (v, start)) in v.iter().zip(&start).enumerate() {
        for (block, word) in add(*v, *start).into_iter().enumerate() {
            let at = block * BLOCK + i * 4;
            out[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
    }
    wipe(v.as_flattened_mut());
    wipe(start.as_flattened_mut());
}

#[inline(always)]
fn chacha(v: &mut [Column; 16]) {
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
    v[a] = add(v[a], v[b]);
    v[d] = turn::<16>(xored(v[d], v[a]));
    v[c] = add(v[c], v[d]);
    v[b] = turn::<12>(xored(v[b], v[c]));
    v[a] = add(v[a], v[b]);
    v[d] = turn::<8>(xored(v[d], v[a]));
    v[c] = add(v[c], v[d]);
    v[b] = turn::<7>(xored(v[b], v[c]));
}

#[inline(always)]
fn salsa(v: &mut [Column; 16]) {
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
    v[b] = xored(v[b], turn::<7>(add(v[a], v[d])));
    v[c] = xored(v[c], turn::<9>(add(v[b], v[a])));
    v[d] = xored(v[d], turn::<13>(add(v[c], v[b])));
    v[a] = xored(v[a], turn::<18>(add(v[d], v[c])));
}

#[inline(always)]
fn add(a: Column, b: Column) -> Column {
    core::array::from_fn(|i| a[i].wrapping_add(b[i]))
}

#[inline(always)]
fn xored(a: Column, b: Column) -> Column {
    core::array::from_fn(|i| a[i] ^ b[i])
}

#[inline(always)]
fn turn<const BITS: u32>(a: Column) -> Column {
    a.map(|word| word.rotate_left(BITS))
}
