//! DES-EDE with three keys (FIPS 46-3), encryption only: CFB mode needs no more.
//!
//! Eight tables combine each S-box with the permutation after it. The halves are kept rotated by three
//! bits, so that the expansion's groups of six bits are at the low end of bytes, and the initial and final
//! permutations between the three stages, which cancel out, are omitted. Four blocks are processed in
//! parallel where the mode allows it. Not in constant time: the look-ups depend on secrets.

use aes::cipher::{
    Block, InOut, InOutBuf,
    consts::{U4, U8},
};
use zeroize::{Zeroize, ZeroizeOnDrop};

use super::side::side_by_side;

/// Number of rounds of the three stages.
const ROUNDS: usize = 3 * 16;

/// The S-boxes by rows (FIPS 46-3 appendix 1).
#[rustfmt::skip]
const S: [[u8; 64]; 8] = [
    [
        14, 4, 13, 1, 2, 15, 11, 8, 3, 10, 6, 12, 5, 9, 0, 7,
        0, 15, 7, 4, 14, 2, 13, 1, 10, 6, 12, 11, 9, 5, 3, 8,
        4, 1, 14, 8, 13, 6, 2, 11, 15, 12, 9, 7, 3, 10, 5, 0,
        15, 12, 8, 2, 4, 9, 1, 7, 5, 11, 3, 14, 10, 0, 6, 13,
    ], [
        15, 1, 8, 14, 6, 11, 3, 4, 9, 7, 2, 13, 12, 0, 5, 10,
        3, 13, 4, 7, 15, 2, 8, 14, 12, 0, 1, 10, 6, 9, 11, 5,
        0, 14, 7, 11, 10, 4, 13, 1, 5, 8, 12, 6, 9, 3, 2, 15,
        13, 8, 10, 1, 3, 15, 4, 2, 11, 6, 7, 12, 0, 5, 14, 9,
    ], [
        10, 0, 9, 14, 6, 3, 15, 5, 1, 13, 12, 7, 11, 4, 2, 8,
        13, 7, 0, 9, 3, 4, 6, 10, 2, 8, 5, 14, 12, 11, 15, 1,
        13, 6, 4, 9, 8, 15, 3, 0, 11, 1, 2, 12, 5, 10, 14, 7,
        1, 10, 13, 0, 6, 9, 8, 7, 4, 15, 14, 3, 11, 5, 2, 12,
    ], [
        7, 13, 14, 3, 0, 6, 9, 10, 1, 2, 8, 5, 11, 12, 4, 15,
        13, 8, 11, 5, 6, 15, 0, 3, 4, 7, 2, 12, 1, 10, 14, 9,
        10, 6, 9, 0, 12, 11, 7, 13, 15, 1, 3, 14, 5, 2, 8, 4,
        3, 15, 0, 6, 10, 1, 13, 8, 9, 4, 5, 11, 12, 7, 2, 14,
    ], [
        2, 12, 4, 1, 7, 10, 11, 6, 8, 5, 3, 15, 13, 0, 14, 9,
        14, 11, 2, 12, 4, 7, 13, 1, 5, 0, 15, 10, 3, 9, 8, 6,
        4, 2, 1, 11, 10, 13, 7, 8, 15, 9, 12, 5, 6, 3, 0, 14,
        11, 8, 12, 7, 1, 14, 2, 13, 6, 15, 0, 9, 10, 4, 5, 3,
    ], [
        12, 1, 10, 15, 9, 2, 6, 8, 0, 13, 3, 4, 14, 7, 5, 11,
        10, 15, 4, 2, 7, 12, 9, 5, 6, 1, 13, 14, 0, 11, 3, 8,
        9, 14, 15, 5, 2, 8, 12, 3, 7, 0, 4, 10, 1, 13, 11, 6,
        4, 3, 2, 12, 9, 5, 15, 10, 11, 14, 1, 7, 6, 0, 8, 13,
    ], [
        4, 11, 2, 14, 15, 0, 8, 13, 3, 12, 9, 7, 5, 10, 6, 1,
        13, 0, 11, 7, 4, 9, 1, 10, 14, 3, 5, 12, 2, 15, 8, 6,
        1, 4, 11, 13, 12, 3, 7, 14, 10, 15, 6, 8, 0, 5, 9, 2,
        6, 11, 13, 8, 1, 4, 10, 7, 9, 5, 0, 15, 14, 2, 3, 12,
    ], [
        13, 2, 8, 4, 6, 15, 11, 1, 10, 9, 3, 14, 5, 0, 12, 7,
        1, 15, 13, 8, 10, 3, 7, 4, 12, 5, 6, 11, 0, 14, 9, 2,
        7, 11, 4, 1, 9, 12, 14, 2, 0, 6, 10, 13, 15, 3, 5, 8,
        2, 1, 14, 7, 4, 10, 8, 13, 15, 12, 9, 0, 3, 5, 6, 11,
    ],
];

/// The permutation P: for each bit of the result its source bit, counted from 1 at the left.
const P: [u8; 32] = [
    16, 7, 20, 21, 29, 12, 28, 17, 1, 15, 23, 26, 5, 18, 31, 10, 2, 8, 24, 14, 32, 27, 3, 9, 19,
    13, 30, 6, 22, 11, 4, 25,
];

/// Permuted choice 1: the key bits, counted in the same way, that form the halves C and D.
const PC1: [u8; 56] = [
    57, 49, 41, 33, 25, 17, 9, 1, 58, 50, 42, 34, 26, 18, 10, 2, 59, 51, 43, 35, 27, 19, 11, 3, 60,
    52, 44, 36, 63, 55, 47, 39, 31, 23, 15, 7, 62, 54, 46, 38, 30, 22, 14, 6, 61, 53, 45, 37, 29,
    21, 13, 5, 28, 20, 12, 4,
];

/// Permuted choice 2: the bits of C and D that form a round key.
const PC2: [u8; 48] = [
    14, 17, 11, 24, 1, 5, 3, 28, 15, 6, 21, 10, 23, 19, 12, 4, 26, 8, 16, 7, 27, 20, 13, 2, 41, 52,
    31, 37, 47, 55, 30, 40, 51, 45, 33, 48, 44, 49, 39, 56, 34, 53, 46, 42, 50, 36, 29, 32,
];

/// Rotation of C and D before each round.
const KEY_ROTATIONS: [u32; 16] = [1, 1, 2, 2, 2, 2, 2, 2, 1, 2, 2, 2, 2, 2, 2, 1];

/// Rotation of the halves to the right.
const HALF_ROTATION: u32 = 3;

/// S-box, then P, then the rotation of the halves.
static SP: [[u32; 64]; 8] = build_tables();

/// An expanded key: for each round the groups of the odd S-boxes (1, 3, 5, 7), then of the even ones.
/// Cleared on drop.
pub(super) struct TripleDes([[u32; 2]; ROUNDS]);

impl TripleDes {
    /// Expands a key. Parity bits are ignored.
    pub(super) fn new(key: &[u8; 24]) -> Self {
        let mut rounds = [[0; 2]; ROUNDS];
        let stages = rounds.as_chunks_mut::<16>().0;
        for (stage, key) in stages.iter_mut().zip(key.as_chunks::<8>().0) {
            key_schedule(u64::from_be_bytes(*key), stage);
        }
        // The middle stage decrypts.
        stages[1].reverse();
        Self(rounds)
    }

    #[inline(always)]
    fn blocks<const N: usize>(&self, mut blocks: InOutBuf<'_, '_, Block<Self>>) {
        let (mut left, mut right) = ([0; N], [0; N]);
        for ((block, l), r) in blocks.get_in().iter().zip(&mut left).zip(&mut right) {
            let (a, b) = initial_permutation(u64::from_be_bytes(block.0));
            (*l, *r) = (a.rotate_right(HALF_ROTATION), b.rotate_right(HALF_ROTATION));
        }
        for stage in self.0.as_chunks::<16>().0 {
            for [one, two] in stage.as_chunks().0 {
                for i in 0..N {
                    left[i] ^= round_function(right[i], one);
                }
                for i in 0..N {
                    right[i] ^= round_function(left[i], two);
                }
            }
            // A stage outputs its halves swapped.
            core::mem::swap(&mut left, &mut right);
        }
        for ((block, l), r) in blocks.get_out().iter_mut().zip(left).zip(right) {
            block.0 = final_permutation(l.rotate_left(HALF_ROTATION), r.rotate_left(HALF_ROTATION))
                .to_be_bytes();
        }
    }
}

/// Computes the cipher function f, without its last step.
#[inline(always)]
fn round_function(half: u32, key: &[u32; 2]) -> u32 {
    let odd = half ^ key[0];
    let even = half.rotate_left(4) ^ key[1];
    let at = |table: usize, word: u32, shift: u32| SP[table][(word >> shift & 63) as usize];
    (at(0, odd, 24) ^ at(2, odd, 16) ^ at(4, odd, 8) ^ at(6, odd, 0))
        ^ (at(1, even, 24) ^ at(3, even, 16) ^ at(5, even, 8) ^ at(7, even, 0))
}

side_by_side!(TripleDes, U8, U4);

impl Drop for TripleDes {
    fn drop(&mut self) {
        self.0.as_flattened_mut().zeroize();
    }
}

impl ZeroizeOnDrop for TripleDes {}

/// Computes the round keys of one stage (FIPS 46-3, "Key schedule calculation").
fn key_schedule(key: u64, rounds: &mut [[u32; 2]; 16]) {
    const HALF: u32 = 28;
    let turn = |half: u64, by: u32| (half << by | half >> (HALF - by)) & ((1 << HALF) - 1);
    let chosen = permute_bits(key, 64, &PC1);
    let (mut c, mut d) = (chosen >> HALF, chosen & ((1 << HALF) - 1));
    for (round, by) in rounds.iter_mut().zip(KEY_ROTATIONS) {
        (c, d) = (turn(c, by), turn(d, by));
        let bits = permute_bits(c << HALF | d, 2 * HALF, &PC2);
        let group = |i: u32| (bits >> (42 - 6 * i) & 63) as u32;
        *round =
            [0, 1].map(|i| group(i) << 24 | group(i + 2) << 16 | group(i + 4) << 8 | group(i + 6));
    }
}

/// Returns the bits of `word`, which has `width` bits, in the order of `table`.
fn permute_bits(word: u64, width: u32, table: &[u8]) -> u64 {
    let bit = |place: &u8| word >> (width - u32::from(*place)) & 1;
    table.iter().fold(0, |out, place| out << 1 | bit(place))
}

/// Computes the initial permutation, by swaps between the halves.
#[inline(always)]
const fn initial_permutation(block: u64) -> (u32, u32) {
    let (mut l, mut r) = ((block >> 32) as u32, (block & 0xffff_ffff) as u32);
    (l, r) = swap_bits(l, r, 4, 0x0f0f_0f0f);
    (l, r) = swap_bits(l, r, 16, 0x0000_ffff);
    (r, l) = swap_bits(r, l, 2, 0x3333_3333);
    (r, l) = swap_bits(r, l, 8, 0x00ff_00ff);
    swap_bits(l, r, 1, 0x5555_5555)
}

/// Computes the inverse of the initial permutation.
#[inline(always)]
const fn final_permutation(mut l: u32, mut r: u32) -> u64 {
    (l, r) = swap_bits(l, r, 1, 0x5555_5555);
    (r, l) = swap_bits(r, l, 8, 0x00ff_00ff);
    (r, l) = swap_bits(r, l, 2, 0x3333_3333);
    (l, r) = swap_bits(l, r, 16, 0x0000_ffff);
    (l, r) = swap_bits(l, r, 4, 0x0f0f_0f0f);
    (l as u64) << 32 | r as u64
}

/// Swaps the bits of `b` under `mask` with those of `a`, `by` positions further left.
#[inline(always)]
const fn swap_bits(a: u32, b: u32, by: u32, mask: u32) -> (u32, u32) {
    let t = (a >> by ^ b) & mask;
    (a ^ t << by, b ^ t)
}

const fn build_tables() -> [[u32; 64]; 8] {
    let mut tables = [[0; 64]; 8];
    let mut table = 0;
    while table < 8 {
        let mut input = 0;
        while input < 64 {
            // The outer bits select the row.
            let row = input >> 4 & 2 | input & 1;
            let nibble = S[table][row * 16 + (input >> 1 & 15)];
            let placed = (nibble as u32) << (28 - 4 * table);
            let mut out = 0;
            let mut bit = 0;
            while bit < 32 {
                out = out << 1 | placed >> (32 - P[bit]) & 1;
                bit += 1;
            }
            tables[table][input] = out.rotate_right(HALF_ROTATION);
            input += 1;
        }
        table += 1;
    }
    tables
}

#[cfg(test)]
mod tests {
    use super::*;
    use aes::cipher::{BlockCipherEncBackend, BlockCipherEncrypt};
    use des::{TdesEde3, cipher::KeyInit};
    use proptest::prelude::*;

    /// NIST SP 800-20's first answers: one bit of the text, the same key three times, which is single DES.
    #[test]
    fn variable_plaintext() {
        let cipher = TripleDes::new(&[1; 24]);
        let mut block = Block::<TripleDes>::from([0x80, 0, 0, 0, 0, 0, 0, 0]);
        cipher.encrypt_block_inplace(&mut block);
        assert_eq!(u64::from_be_bytes(block.0), 0x95f8_a5e5_dd31_d900);
    }

    proptest! {
        #[test]
        fn equals_another_implementation(
            key in any::<[u8; 24]>(), text in proptest::collection::vec(any::<[u8; 8]>(), 0..11),
        ) {
            let mut ours: Vec<Block<TripleDes>> = text.iter().map(|t| (*t).into()).collect();
            let mut theirs = ours.clone();
            TripleDes::new(&key).encrypt_blocks(&mut ours);
            TdesEde3::new(&key.into()).encrypt_blocks(&mut theirs);
            prop_assert_eq!(ours, theirs);
        }
    }
}
