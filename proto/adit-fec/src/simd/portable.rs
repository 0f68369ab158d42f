//! The path for every CPU, in safe Rust: eight bytes in a word, and several words in parallel where
//! compilers can vectorize.
//!
//! A product is a sum of doublings, and doubling a sum doubles its terms: so the sum is doubled once for
//! each bit of the factors, from the highest down, and the inputs whose factors have the bit set are added
//! in between. No input is multiplied individually.
//!
//! The other kernels are tested against it, and it is tested against the definition and the published
//! vectors.

use super::FactorRows;
use crate::gf256::gf_mul;

/// Number of words in a full round.
const WORDS: usize = 16;
const WORD: usize = 8;
/// Number of bytes whose products are added at a time.
const PIECE: usize = 64;

pub(super) fn sum_products(factors: FactorRows<'_>, inputs: &[&[u8]], outputs: &mut [&mut [u8]]) {
    for (row, output) in outputs.iter_mut().enumerate() {
        let factors = factors.row_factors(row);
        let (mut at, len) = (0, output.len());
        while len - at >= WORDS * WORD {
            sum_words::<WORDS>(factors, inputs, output, at);
            at += WORDS * WORD;
        }
        while len - at >= WORD {
            sum_words::<1>(factors, inputs, output, at);
            at += WORD;
        }
        for (place, sum) in output.iter_mut().enumerate().skip(at) {
            let bytes = inputs.iter().filter_map(|input| input.get(place));
            let products = factors.iter().zip(bytes).map(|(f, byte)| gf_mul(*f, *byte));
            *sum = products.fold(0, |sum, product| sum ^ product);
        }
    }
}

/// Adds the products of one input to the outputs.
pub(super) fn add_products(factors: &[u8], input: &[u8], outputs: &mut [&mut [u8]]) {
    for (factor, output) in factors.chunks(1).zip(outputs) {
        let (sums, _) = output.as_chunks_mut::<PIECE>();
        let (pieces, _) = input.as_chunks::<PIECE>();
        for (sum, piece) in sums.iter_mut().zip(pieces) {
            let mut product = [0; PIECE];
            sum_products(FactorRows::new(factor, 1), &[piece], &mut [&mut product]);
            for (sum, product) in sum.iter_mut().zip(product) {
                *sum ^= product;
            }
        }
    }
}

/// Computes `W` words of an output at `at`.
fn sum_words<const W: usize>(factors: &[u8], inputs: &[&[u8]], output: &mut [u8], at: usize) {
    let place = at..at + W * WORD;
    let mut sum = [0; W];
    for bit in (0..8).rev() {
        sum.iter_mut().for_each(|word| *word = double_bytes(*word));
        for (factor, input) in factors.iter().zip(inputs) {
            if factor >> bit & 1 == 0 {
                continue;
            }
            let Some(bytes) = input.get(place.clone()) else {
                return;
            };
            for (word, bytes) in sum.iter_mut().zip(bytes.as_chunks().0) {
                *word ^= u64::from_ne_bytes(*bytes);
            }
        }
    }
    if let Some(bytes) = output.get_mut(place) {
        for (bytes, word) in bytes.as_chunks_mut().0.iter_mut().zip(sum) {
            *bytes = word.to_ne_bytes();
        }
    }
}

/// Returns 2 · a for each byte.
const fn double_bytes(word: u64) -> u64 {
    let high = word & 0x8080_8080_8080_8080;
    // 0x7f in the bytes that overflow, which has all bits of the polynomial.
    let over = high - (high >> 7);
    ((word ^ high) << 1) ^ (over & 0x1d1d_1d1d_1d1d_1d1d)
}
