//! HChaCha: the key derivation behind the 24-byte nonces of XChaCha (draft-irtf-cfrg-xchacha).

use zeroize::Zeroize;

use crate::{Secret, simd::ChaChaRounds};

pub(crate) const SIGMA: [u32; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];

/// Splits a 24-byte XChaCha nonce into a derived key and the 12-byte nonce to use with it.
pub(crate) fn derive_xchacha(
    rounds: ChaChaRounds,
    key: &[u8; 32],
    nonce: &[u8; 24],
) -> (Secret<[u8; 32]>, [u8; 12]) {
    let (front, back) = nonce.split_at(16);
    let mut input = [0; 16];
    input.copy_from_slice(front);
    let mut inner = [0; 12];
    inner[4..].copy_from_slice(back);
    (hchacha(rounds, key, &input), inner)
}

/// Returns the state of a message at block 0 (RFC 8439 section 2.3).
#[inline(always)]
pub(crate) fn initial_state(key: &[u8; 32], nonce: &[u8; 12]) -> [u32; 16] {
    let mut state = [0; 16];
    state[..4].copy_from_slice(&SIGMA);
    fill_words(&mut state[4..12], key);
    fill_words(&mut state[13..], nonce);
    state
}

#[inline(always)]
pub(crate) fn fill_words(words: &mut [u32], bytes: &[u8]) {
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
        *word = u32::from_le_bytes(*bytes);
    }
}

/// Computes HChaCha with 8, 12 or 20 rounds: without feed-forward; the first and the last row are the key.
fn hchacha(rounds: ChaChaRounds, key: &[u8; 32], input: &[u8; 16]) -> Secret<[u8; 32]> {
    let mut s = [0u32; 16];
    s[..4].copy_from_slice(&SIGMA);
    fill_words(&mut s[4..12], key);
    fill_words(&mut s[12..], input);
    for _ in 0..rounds.double_rounds() {
        quarter_round(&mut s, 0, 4, 8, 12);
        quarter_round(&mut s, 1, 5, 9, 13);
        quarter_round(&mut s, 2, 6, 10, 14);
        quarter_round(&mut s, 3, 7, 11, 15);
        quarter_round(&mut s, 0, 5, 10, 15);
        quarter_round(&mut s, 1, 6, 11, 12);
        quarter_round(&mut s, 2, 7, 8, 13);
        quarter_round(&mut s, 3, 4, 9, 14);
    }
    let mut out = Secret::new([0; 32]);
    let rows = s[..4].iter().chain(&s[12..]);
    for (chunk, word) in out.expose_mut().chunks_exact_mut(4).zip(rows) {
        chunk.copy_from_slice(&word.to_le_bytes());
    }
    s.zeroize();
    out
}

const fn quarter_round(s: &mut [u32; 16], a: usize, b: usize, c: usize, d: usize) {
    s[a] = s[a].wrapping_add(s[b]);
    s[d] = (s[d] ^ s[a]).rotate_left(16);
    s[c] = s[c].wrapping_add(s[d]);
    s[b] = (s[b] ^ s[c]).rotate_left(12);
    s[a] = s[a].wrapping_add(s[b]);
    s[d] = (s[d] ^ s[a]).rotate_left(8);
    s[c] = s[c].wrapping_add(s[d]);
    s[b] = (s[b] ^ s[c]).rotate_left(7);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// draft-irtf-cfrg-xchacha-03 section 2.2.1; the golden vectors cover 8 and 12 rounds.
    #[test]
    fn draft_vector() {
        let key: [u8; 32] = core::array::from_fn(|i| i as u8);
        let input = [
            0, 0, 0, 9, 0, 0, 0, 0x4a, 0, 0, 0, 0, 0x31, 0x41, 0x59, 0x27,
        ];
        let expected = [
            0x82, 0x41, 0x3b, 0x42, 0x27, 0xb2, 0x7b, 0xfe, 0xd3, 0x0e, 0x42, 0x50, 0x8a, 0x87,
            0x7d, 0x73, 0xa0, 0xf9, 0xe4, 0xd5, 0x8a, 0x74, 0xa8, 0x53, 0xc1, 0x2e, 0xc4, 0x13,
            0x26, 0xd3, 0xec, 0xdc,
        ];
        assert_eq!(
            hchacha(ChaChaRounds::TWENTY, &key, &input).expose(),
            &expected
        );
    }

    #[test]
    fn golden_vectors_of_8_12_and_20_rounds() {
        for case in crate::tests::vectors("primitives")["hchacha"]
            .as_array()
            .unwrap()
        {
            let bytes = |name: &str| crate::tests::hex(&case[name]);
            let key = bytes("key").try_into().unwrap();
            let input = bytes("nonce16").try_into().unwrap();
            let rounds = match case["rounds"].as_u64().unwrap() {
                8 => ChaChaRounds::EIGHT,
                12 => ChaChaRounds::TWELVE,
                _ => ChaChaRounds::TWENTY,
            };
            let out = hchacha(rounds, &key, &input);
            assert_eq!(out.expose()[..], bytes("out")[..]);
        }
    }
}
