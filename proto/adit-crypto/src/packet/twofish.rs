//! Twofish (Schneier et al., 1998) with a key of 32 bytes, encryption only: CFB mode needs no more.
//!
//! "Full keying" of the paper's section 5.1: four tables of 256 words per key contain the key-dependent
//! S-boxes multiplied by the MDS matrix, so that the function g is four look-ups. They cost 4 KiB and some
//! microseconds for each key. Not in constant time: the look-ups depend on secrets.

use aes::cipher::{
    Block, InOut, InOutBuf,
    consts::{U2, U16},
};
use zeroize::{Zeroize, ZeroizeOnDrop};

use super::side::side_by_side;

/// The byte permutations q0 and q1 (section 4.3.5).
const Q: [[u8; 256]; 2] = [
    build_q([
        [8, 1, 7, 13, 6, 15, 3, 2, 0, 11, 5, 9, 14, 12, 10, 4],
        [14, 12, 11, 8, 1, 2, 3, 5, 15, 4, 10, 6, 7, 0, 9, 13],
        [11, 10, 5, 14, 6, 13, 9, 0, 12, 8, 15, 3, 2, 4, 7, 1],
        [13, 7, 15, 4, 1, 2, 6, 14, 9, 11, 3, 0, 8, 5, 12, 10],
    ]),
    build_q([
        [2, 8, 11, 13, 15, 7, 6, 14, 3, 1, 9, 4, 0, 10, 12, 5],
        [1, 14, 2, 11, 4, 12, 3, 7, 6, 13, 10, 5, 15, 9, 0, 8],
        [4, 12, 7, 5, 1, 6, 9, 10, 0, 14, 13, 8, 2, 11, 3, 15],
        [11, 9, 5, 1, 12, 3, 13, 14, 6, 4, 7, 15, 2, 0, 8, 10],
    ]),
];

/// The permutation of [`Q`] for byte `j`, from the last key word to the first, and then without a key word
/// (section 4.3.2, figure 2).
const ORDER: [[usize; 4]; 5] = [
    [1, 0, 0, 1],
    [1, 1, 0, 0],
    [0, 1, 0, 1],
    [0, 0, 1, 1],
    [1, 0, 1, 0],
];

/// The MDS matrix by rows, over GF(2⁸) modulo [`MDS_POLYNOMIAL`].
const MDS: [[u8; 4]; 4] = [
    [0x01, 0xef, 0x5b, 0x5b],
    [0x5b, 0xef, 0xef, 0x01],
    [0xef, 0x5b, 0x01, 0xef],
    [0xef, 0x01, 0xef, 0x5b],
];
const MDS_POLYNOMIAL: u16 = 0x169;

/// The RS matrix by rows, over GF(2⁸) modulo [`RS_POLYNOMIAL`].
const RS: [[u8; 8]; 4] = [
    [0x01, 0xa4, 0x55, 0x87, 0x5a, 0x58, 0xdb, 0x9e],
    [0xa4, 0x56, 0x82, 0xf3, 0x1e, 0xc6, 0x68, 0xe5],
    [0x02, 0xa1, 0xfc, 0xc1, 0x47, 0xae, 0x3d, 0x19],
    [0xa4, 0x55, 0x87, 0x5a, 0x58, 0xdb, 0x9e, 0x03],
];
const RS_POLYNOMIAL: u16 = 0x14d;

const ROUNDS: usize = 16;

/// An expanded key; cleared on drop.
pub(super) struct Twofish {
    whitening: [u32; 8],
    rounds: [[u32; 2]; ROUNDS],
    tables: [[u32; 256]; 4],
}

impl Twofish {
    pub(super) fn new(key: &[u8; 32]) -> Self {
        let (words, _) = key.as_chunks::<4>();
        let (eights, _) = key.as_chunks::<8>();
        let mut even: [[u8; 4]; 4] = core::array::from_fn(|i| words[2 * i]);
        let mut odd: [[u8; 4]; 4] = core::array::from_fn(|i| words[2 * i + 1]);
        // The words of the S-box key are in reverse order.
        let mut boxes: [[u8; 4]; 4] = core::array::from_fn(|i| rs_remainder(&eights[3 - i]));

        let pair = |i: usize| {
            let i = i as u8;
            let a = h_function([2 * i; 4], &even);
            let b = h_function([2 * i + 1; 4], &odd).rotate_left(8);
            let first = a.wrapping_add(b);
            [first, first.wrapping_add(b).rotate_left(9)]
        };
        let mut whitening = [0; 8];
        for (i, words) in whitening.chunks_exact_mut(2).enumerate() {
            words.copy_from_slice(&pair(i));
        }
        let rounds = core::array::from_fn(|i| pair(i + 4));
        let tables = core::array::from_fn(|j| {
            core::array::from_fn(|x| mds_column(j, keyed_byte(j, x as u8, &boxes)))
        });
        for secret in [&mut even, &mut odd, &mut boxes] {
            secret.as_flattened_mut().zeroize();
        }
        Self {
            whitening,
            rounds,
            tables,
        }
    }

    #[inline(always)]
    fn g_function(&self, word: u32) -> u32 {
        let [t0, t1, t2, t3] = &self.tables;
        let [a, b, c, d] = word.to_le_bytes();
        t0[usize::from(a)] ^ t1[usize::from(b)] ^ t2[usize::from(c)] ^ t3[usize::from(d)]
    }

    /// Performs a round: words `a` and `b` change `c` and `d`.
    #[inline(always)]
    fn feistel_round<const N: usize>(
        &self,
        keys: &[u32; 2],
        (a, b): (&[u32; N], &[u32; N]),
        (c, d): (&mut [u32; N], &mut [u32; N]),
    ) {
        for i in 0..N {
            let first = self.g_function(a[i]);
            let second = self.g_function(b[i].rotate_left(8));
            let sum = first.wrapping_add(second);
            c[i] = (c[i] ^ sum.wrapping_add(keys[0])).rotate_right(1);
            d[i] = d[i].rotate_left(1) ^ sum.wrapping_add(second).wrapping_add(keys[1]);
        }
    }

    #[inline(always)]
    fn blocks<const N: usize>(&self, mut blocks: InOutBuf<'_, '_, Block<Self>>) {
        let [mut a, mut b, mut c, mut d] = [[0; N]; 4];
        for (i, block) in blocks.get_in().iter().enumerate() {
            let (words, _) = block.0.as_chunks();
            let word = |w: usize| u32::from_le_bytes(words[w]) ^ self.whitening[w];
            (a[i], b[i], c[i], d[i]) = (word(0), word(1), word(2), word(3));
        }
        for [one, two] in self.rounds.as_chunks().0 {
            self.feistel_round(one, (&a, &b), (&mut c, &mut d));
            self.feistel_round(two, (&c, &d), (&mut a, &mut b));
        }
        for (i, block) in blocks.get_out().iter_mut().enumerate() {
            let words = [c[i], d[i], a[i], b[i]]
                .into_iter()
                .zip(&self.whitening[4..]);
            for (out, (word, key)) in block.0.as_chunks_mut().0.iter_mut().zip(words) {
                *out = (word ^ key).to_le_bytes();
            }
        }
    }
}

side_by_side!(Twofish, U16, U2);

impl Drop for Twofish {
    fn drop(&mut self) {
        self.whitening.zeroize();
        self.rounds.as_flattened_mut().zeroize();
        self.tables.as_flattened_mut().zeroize();
    }
}

impl ZeroizeOnDrop for Twofish {}

/// Computes the function h (section 4.3.2), which generates the subkeys.
fn h_function(word: [u8; 4], key: &[[u8; 4]; 4]) -> u32 {
    (0..4).fold(0, |sum, j| sum ^ mds_column(j, keyed_byte(j, word[j], key)))
}

/// Returns the value of byte `j` before the MDS matrix.
fn keyed_byte(j: usize, byte: u8, key: &[[u8; 4]; 4]) -> u8 {
    let at = |step: usize, byte: u8| Q[ORDER[step][j]][usize::from(byte)];
    let through = key.iter().rev().enumerate();
    at(
        4,
        through.fold(byte, |byte, (step, key)| at(step, byte) ^ key[j]),
    )
}

/// Returns `byte` times column `j` of the MDS matrix, as a little-endian word.
fn mds_column(j: usize, byte: u8) -> u32 {
    u32::from_le_bytes(MDS.map(|row| gf_multiply(row[j], byte, MDS_POLYNOMIAL)))
}

/// Returns a word of the S-box key: the RS matrix times eight bytes of the key.
fn rs_remainder(bytes: &[u8; 8]) -> [u8; 4] {
    RS.map(|row| {
        let products = row.iter().zip(bytes);
        products.fold(0, |sum, (a, b)| sum ^ gf_multiply(*a, *b, RS_POLYNOMIAL))
    })
}

/// Multiplies in GF(2⁸), without branches: one factor is secret.
fn gf_multiply(constant: u8, secret: u8, polynomial: u16) -> u8 {
    let mut product = 0;
    let mut power = u16::from(secret);
    for bit in 0..8 {
        product ^= power * u16::from(constant >> bit & 1);
        power <<= 1;
        power ^= (power >> 8) * polynomial;
    }
    product.to_le_bytes()[0]
}

const fn build_q(t: [[u8; 16]; 4]) -> [u8; 256] {
    let mut out = [0; 256];
    let mut x = 0;
    while x < 256 {
        let (a, b) = mix_nibbles(x as u8 >> 4, x as u8 & 15);
        let (a, b) = mix_nibbles(t[0][a as usize], t[1][b as usize]);
        out[x] = t[3][b as usize] << 4 | t[2][a as usize];
        x += 1;
    }
    out
}

/// Mixes two nibbles.
const fn mix_nibbles(a: u8, b: u8) -> (u8, u8) {
    (a ^ b, a ^ (b >> 1 | b << 3 & 15) ^ (a << 3 & 15))
}

#[cfg(test)]
mod tests {
    use super::*;
    use aes::cipher::BlockCipherEncBackend;

    /// The paper's table of test vectors for 256-bit keys, and the first steps of its chain.
    #[test]
    fn vectors_of_the_paper() {
        assert_eq!(
            (Q[0][0], Q[1][0], Q[0][255], Q[1][255]),
            (0xa9, 0x75, 0xe0, 0x91)
        );
        let key = [
            0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54,
            0x32, 0x10, 0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb,
            0xcc, 0xdd, 0xee, 0xff,
        ];
        let mut block = Block::<Twofish>::default();
        Twofish::new(&key).encrypt_block_inplace(&mut block);
        assert_eq!(
            u128::from_be_bytes(block.0),
            0x3752_7be0_0523_34b8_9f0c_fcca_e87c_fa20
        );
        let mut block = Block::<Twofish>::default();
        let zero = Twofish::new(&[0; 32]);
        zero.encrypt_block_inplace(&mut block);
        let first = 0x57ff_739d_4dc9_2c1b_d7fc_0170_0cc8_216f;
        assert_eq!(u128::from_be_bytes(block.0), first);
        zero.encrypt_block_inplace(&mut block);
        let second = 0xd43b_b755_6ea3_2e46_f2a2_82b7_d45b_4e0d;
        assert_eq!(u128::from_be_bytes(block.0), second);
    }
}
