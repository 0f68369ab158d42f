//! Salsa20's state, and HSalsa20: the key derivation behind the 24-byte nonces of XSalsa20
//! (D. J. Bernstein, "Extending the Salsa20 nonce").

use zeroize::Zeroize;

use crate::{Secret, chacha::SIGMA, chacha::fill_words};

/// Returns the state of a stream at block 0. Its counter is in words 8 and 9.
pub(crate) fn initial_state(key: &[u8; 32], nonce: &[u8; 8]) -> [u32; 16] {
    let mut input = [0; 16];
    input[..8].copy_from_slice(nonce);
    build_state(key, &input)
}

/// Splits a 24-byte nonce into a derived key and the 8-byte nonce to use with it.
pub(crate) fn derive_xsalsa(key: &[u8; 32], nonce: &[u8; 24]) -> (Secret<[u8; 32]>, [u8; 8]) {
    let (mut input, mut inner) = ([0; 16], [0; 8]);
    input.copy_from_slice(&nonce[..16]);
    inner.copy_from_slice(&nonce[16..]);
    (hsalsa20(key, &input), inner)
}

/// Builds a state: the constants are on the diagonal, the key surrounds the input.
fn build_state(key: &[u8; 32], input: &[u8; 16]) -> [u32; 16] {
    let mut state = [0; 16];
    for (word, constant) in state.iter_mut().step_by(5).zip(SIGMA) {
        *word = constant;
    }
    let (low, high) = key.split_at(16);
    fill_words(&mut state[1..5], low);
    fill_words(&mut state[6..10], input);
    fill_words(&mut state[11..15], high);
    state
}

/// Computes HSalsa20: without feed-forward; the diagonal and the words of the input are the key.
fn hsalsa20(key: &[u8; 32], input: &[u8; 16]) -> Secret<[u8; 32]> {
    let mut s = build_state(key, input);
    for _ in 0..10 {
        // Columns, then rows.
        quarter_round(&mut s, 0, 4, 8, 12);
        quarter_round(&mut s, 5, 9, 13, 1);
        quarter_round(&mut s, 10, 14, 2, 6);
        quarter_round(&mut s, 15, 3, 7, 11);
        quarter_round(&mut s, 0, 1, 2, 3);
        quarter_round(&mut s, 5, 6, 7, 4);
        quarter_round(&mut s, 10, 11, 8, 9);
        quarter_round(&mut s, 15, 12, 13, 14);
    }
    let mut out = Secret::new([0; 32]);
    let words = [s[0], s[5], s[10], s[15], s[6], s[7], s[8], s[9]];
    for (chunk, word) in out.expose_mut().chunks_exact_mut(4).zip(words) {
        chunk.copy_from_slice(&word.to_le_bytes());
    }
    s.zeroize();
    out
}

const fn quarter_round(s: &mut [u32; 16], a: usize, b: usize, c: usize, d: usize) {
    s[b] ^= s[a].wrapping_add(s[d]).rotate_left(7);
    s[c] ^= s[b].wrapping_add(s[a]).rotate_left(9);
    s[d] ^= s[c].wrapping_add(s[b]).rotate_left(13);
    s[a] ^= s[d].wrapping_add(s[c]).rotate_left(18);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NaCl's `core1`: the first key derivation of the paper's example.
    #[test]
    fn vector_of_the_paper() {
        let shared = [
            0x4a, 0x5d, 0x9d, 0x5b, 0xa4, 0xce, 0x2d, 0xe1, 0x72, 0x8e, 0x3b, 0xf4, 0x80, 0x35,
            0x0f, 0x25, 0xe0, 0x7e, 0x21, 0xc9, 0x47, 0xd1, 0x9e, 0x33, 0x76, 0xf0, 0x9b, 0x3c,
            0x1e, 0x16, 0x17, 0x42,
        ];
        let expected = [
            0x1b, 0x27, 0x55, 0x64, 0x73, 0xe9, 0x85, 0xd4, 0x62, 0xcd, 0x51, 0x19, 0x7a, 0x9a,
            0x46, 0xc7, 0x60, 0x09, 0x54, 0x9e, 0xac, 0x64, 0x74, 0xf2, 0x06, 0xc4, 0xee, 0x08,
            0x44, 0xf6, 0x83, 0x89,
        ];
        assert_eq!(hsalsa20(&shared, &[0; 16]).expose(), &expected);
    }
}
