//! SM4 (GB/T 32907-2016), encryption only: CFB mode needs no more.
//!
//! Four tables of 256 words combine the S-box with the linear transformation L; four blocks are processed
//! in parallel where the mode allows it. Not in constant time: the look-ups depend on secrets.

use aes::cipher::{
    Block, InOut, InOutBuf,
    consts::{U4, U16},
};
use zeroize::{Zeroize, ZeroizeOnDrop};

use super::side::side_by_side;

/// The S-box (section 6.2).
#[rustfmt::skip]
const S: [u8; 256] = [
    0xd6, 0x90, 0xe9, 0xfe, 0xcc, 0xe1, 0x3d, 0xb7, 0x16, 0xb6, 0x14, 0xc2, 0x28, 0xfb, 0x2c, 0x05,
    0x2b, 0x67, 0x9a, 0x76, 0x2a, 0xbe, 0x04, 0xc3, 0xaa, 0x44, 0x13, 0x26, 0x49, 0x86, 0x06, 0x99,
    0x9c, 0x42, 0x50, 0xf4, 0x91, 0xef, 0x98, 0x7a, 0x33, 0x54, 0x0b, 0x43, 0xed, 0xcf, 0xac, 0x62,
    0xe4, 0xb3, 0x1c, 0xa9, 0xc9, 0x08, 0xe8, 0x95, 0x80, 0xdf, 0x94, 0xfa, 0x75, 0x8f, 0x3f, 0xa6,
    0x47, 0x07, 0xa7, 0xfc, 0xf3, 0x73, 0x17, 0xba, 0x83, 0x59, 0x3c, 0x19, 0xe6, 0x85, 0x4f, 0xa8,
    0x68, 0x6b, 0x81, 0xb2, 0x71, 0x64, 0xda, 0x8b, 0xf8, 0xeb, 0x0f, 0x4b, 0x70, 0x56, 0x9d, 0x35,
    0x1e, 0x24, 0x0e, 0x5e, 0x63, 0x58, 0xd1, 0xa2, 0x25, 0x22, 0x7c, 0x3b, 0x01, 0x21, 0x78, 0x87,
    0xd4, 0x00, 0x46, 0x57, 0x9f, 0xd3, 0x27, 0x52, 0x4c, 0x36, 0x02, 0xe7, 0xa0, 0xc4, 0xc8, 0x9e,
    0xea, 0xbf, 0x8a, 0xd2, 0x40, 0xc7, 0x38, 0xb5, 0xa3, 0xf7, 0xf2, 0xce, 0xf9, 0x61, 0x15, 0xa1,
    0xe0, 0xae, 0x5d, 0xa4, 0x9b, 0x34, 0x1a, 0x55, 0xad, 0x93, 0x32, 0x30, 0xf5, 0x8c, 0xb1, 0xe3,
    0x1d, 0xf6, 0xe2, 0x2e, 0x82, 0x66, 0xca, 0x60, 0xc0, 0x29, 0x23, 0xab, 0x0d, 0x53, 0x4e, 0x6f,
    0xd5, 0xdb, 0x37, 0x45, 0xde, 0xfd, 0x8e, 0x2f, 0x03, 0xff, 0x6a, 0x72, 0x6d, 0x6c, 0x5b, 0x51,
    0x8d, 0x1b, 0xaf, 0x92, 0xbb, 0xdd, 0xbc, 0x7f, 0x11, 0xd9, 0x5c, 0x41, 0x1f, 0x10, 0x5a, 0xd8,
    0x0a, 0xc1, 0x31, 0x88, 0xa5, 0xcd, 0x7b, 0xbd, 0x2d, 0x74, 0xd0, 0x12, 0xb8, 0xe5, 0xb4, 0xb0,
    0x89, 0x69, 0x97, 0x4a, 0x0c, 0x96, 0x77, 0x7e, 0x65, 0xb9, 0xf1, 0x09, 0xc5, 0x6e, 0xc6, 0x84,
    0x18, 0xf0, 0x7d, 0xec, 0x3a, 0xdc, 0x4d, 0x20, 0x79, 0xee, 0x5f, 0x3e, 0xd7, 0xcb, 0x39, 0x48,
];

/// The system parameters FK (section 7.3).
const FK: [u32; 4] = [0xa3b1_bac6, 0x56aa_3350, 0x677d_9197, 0xb270_22dc];

const ROUNDS: usize = 32;

/// S-box, then L, for each byte of a word from the left.
static T: [[u32; 256]; 4] = build_tables();

/// An expanded key; cleared on drop.
pub(super) struct Sm4([u32; ROUNDS]);

impl Sm4 {
    pub(super) fn new(key: &[u8; 16]) -> Self {
        let (words, _) = key.as_chunks();
        let mut k: [u32; 4] = core::array::from_fn(|i| u32::from_be_bytes(words[i]) ^ FK[i]);
        let rounds = core::array::from_fn(|i| {
            // The constants CK: bytes that increase by seven.
            let i = 4 * i as u8;
            let ck = u32::from_be_bytes([0, 1, 2, 3].map(|j| (i + j).wrapping_mul(7)));
            let boxed = (k[1] ^ k[2] ^ k[3] ^ ck).to_be_bytes();
            let boxed = u32::from_be_bytes(boxed.map(|byte| S[usize::from(byte)]));
            let next = k[0] ^ boxed ^ boxed.rotate_left(13) ^ boxed.rotate_left(23);
            k = [k[1], k[2], k[3], next];
            next
        });
        k.zeroize();
        Self(rounds)
    }

    #[inline(always)]
    fn blocks<const N: usize>(&self, mut blocks: InOutBuf<'_, '_, Block<Self>>) {
        let mut x = [[0; N]; 4];
        for (i, block) in blocks.get_in().iter().enumerate() {
            for (x, word) in x.iter_mut().zip(block.0.as_chunks().0) {
                x[i] = u32::from_be_bytes(*word);
            }
        }
        let [a, b, c, d] = &mut x;
        for [k0, k1, k2, k3] in self.0.as_chunks().0 {
            mix_word(a, [b, c, d], *k0);
            mix_word(b, [c, d, a], *k1);
            mix_word(c, [d, a, b], *k2);
            mix_word(d, [a, b, c], *k3);
        }
        for (i, block) in blocks.get_out().iter_mut().enumerate() {
            for (x, word) in x.iter().rev().zip(block.0.as_chunks_mut().0) {
                *word = x[i].to_be_bytes();
            }
        }
    }
}

side_by_side!(Sm4, U16, U4);

impl Drop for Sm4 {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl ZeroizeOnDrop for Sm4 {}

#[inline(always)]
fn mix_word<const N: usize>(word: &mut [u32; N], others: [&[u32; N]; 3], key: u32) {
    for i in 0..N {
        let [a, b, c, d] = (others[0][i] ^ others[1][i] ^ others[2][i] ^ key).to_be_bytes();
        word[i] ^= T[0][usize::from(a)]
            ^ T[1][usize::from(b)]
            ^ T[2][usize::from(c)]
            ^ T[3][usize::from(d)];
    }
}

const fn build_tables() -> [[u32; 256]; 4] {
    let mut tables = [[0; 256]; 4];
    let mut byte = 0;
    while byte < 256 {
        let b = (S[byte] as u32) << 24;
        let l = b ^ b.rotate_left(2) ^ b.rotate_left(10) ^ b.rotate_left(18) ^ b.rotate_left(24);
        let mut place = 0;
        while place < 4 {
            tables[place][byte] = l.rotate_right(8 * place as u32);
            place += 1;
        }
        byte += 1;
    }
    tables
}

#[cfg(test)]
mod tests {
    use super::*;
    use aes::cipher::{BlockCipherEncBackend, BlockCipherEncrypt};

    /// Appendix A: one block, the same in parallel, and the chain of a million.
    #[test]
    fn vectors_of_the_standard() {
        let key = 0x0123_4567_89ab_cdef_fedc_ba98_7654_3210_u128.to_be_bytes();
        let sm4 = Sm4::new(&key);
        let mut block = Block::<Sm4>::from(key);
        sm4.encrypt_block_inplace(&mut block);
        let expected = 0x681e_df34_d206_965e_86b3_e94f_536e_4246;
        assert_eq!(u128::from_be_bytes(block.0), expected);
        let mut blocks = [Block::<Sm4>::from(key); 5];
        sm4.encrypt_blocks(&mut blocks);
        assert_eq!(blocks, [block; 5]);
        for _ in 1..1_000_000 {
            sm4.encrypt_block_inplace(&mut block);
        }
        let expected = 0x5952_98c7_c6fd_271f_0402_f804_c33d_3f66;
        assert_eq!(u128::from_be_bytes(block.0), expected);
    }
}
