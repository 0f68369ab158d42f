//! The path for every CPU, in safe Rust: four ChaCha blocks side by side, which compilers turn
//! into 128-bit vectors where the target has them, and the scalar Poly1305.
//!
//! The others are tested against it, and it against the published vectors and other libraries.

use super::{
    Kernel, Rounds, Task,
    poly1305::{Ending, Poly1305},
    wipe,
};

/// Blocks side by side.
const SIDE: usize = 4;
const BLOCK: usize = 64;

/// One word of each of four blocks.
type Column = [u32; SIDE];

/// Needs nothing, proves nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Portable;

impl Kernel for Portable {
    fn enter<T: Task>(self, task: T) -> T::Output {
        task.run(self)
    }

    fn xor(self, state: &[u32; 16], rounds: Rounds, buf: &mut [u8]) {
        let mut counter = state[12];
        let mut keystream = [0; SIDE * BLOCK];
        for chunk in buf.chunks_mut(SIDE * BLOCK) {
            blocks(state, counter, rounds, &mut keystream);
            for (byte, key) in chunk.iter_mut().zip(&keystream) {
                *byte ^= key;
            }
            counter = counter.wrapping_add(const { SIDE as u32 });
        }
        wipe(&mut keystream);
    }

    fn tag(self, key: &[u8; 32], data: &[u8]) -> [u8; 16] {
        let (whole, ending) = Ending::split(data);
        let mut poly = Poly1305::new(key);
        poly.absorb(whole);
        poly.absorb(ending.as_bytes());
        poly.finish()
    }
}

fn blocks(state: &[u32; 16], counter: u32, rounds: Rounds, out: &mut [u8; SIDE * BLOCK]) {
    let mut start: [Column; 16] = state.map(|word| [word; SIDE]);
    start[12] = [0, 1, 2, 3].map(|block| counter.wrapping_add(block));
    let mut v = start;
    for _ in 0..rounds.doubled() {
        quarter(&mut v, [0, 4, 8, 12]);
        quarter(&mut v, [1, 5, 9, 13]);
        quarter(&mut v, [2, 6, 10, 14]);
        quarter(&mut v, [3, 7, 11, 15]);
        quarter(&mut v, [0, 5, 10, 15]);
        quarter(&mut v, [1, 6, 11, 12]);
        quarter(&mut v, [2, 7, 8, 13]);
        quarter(&mut v, [3, 4, 9, 14]);
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
fn quarter(v: &mut [Column; 16], [a, b, c, d]: [usize; 4]) {
    v[a] = add(v[a], v[b]);
    v[d] = stir::<16>(v[d], v[a]);
    v[c] = add(v[c], v[d]);
    v[b] = stir::<12>(v[b], v[c]);
    v[a] = add(v[a], v[b]);
    v[d] = stir::<8>(v[d], v[a]);
    v[c] = add(v[c], v[d]);
    v[b] = stir::<7>(v[b], v[c]);
}

#[inline(always)]
fn add(a: Column, b: Column) -> Column {
    core::array::from_fn(|i| a[i].wrapping_add(b[i]))
}

#[inline(always)]
fn stir<const BITS: u32>(a: Column, b: Column) -> Column {
    core::array::from_fn(|i| (a[i] ^ b[i]).rotate_left(BITS))
}
