//! AES in CFB mode over many packets in parallel: four blocks per 512-bit vector, three or four vectors in
//! step (FIPS 197, NIST SP 800-38A section 6.3).
//!
//! A CFB chain waits for each of its blocks, so only blocks of different packets can be processed together.
//! These are not adjacent in memory: they are inserted into a vector and extracted from it one by one. That
//! pays from [`MIN_CHAINS`] packets on. CPUs with `VAES` on 256 bits alone use two blocks per vector, and eight
//! vectors in step ([`half`]). For CPUs without `VAES`, and for fewer packets, the crate `aes` is used.

use super::CpuPath;
#[cfg(target_arch = "x86_64")]
use super::aes::AesKey;

/// Maximum number of packets in step.
pub(crate) const MAX_CHAINS: usize = 16;
/// Minimum number of packets in step.
#[cfg(target_arch = "x86_64")]
const MIN_CHAINS: usize = 12;

/// A block of AES.
pub(crate) type Block = [u8; 16];

/// The expanded key of chains; cleared on drop.
pub(crate) struct Chains(#[cfg(target_arch = "x86_64")] AesKey);

impl Chains {
    /// Creates chains for a key of 16, 24 or 32 bytes, if this path is faster than the crate.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn new(path: CpuPath, key: &[u8]) -> Option<Self> {
        AesKey::new(path, key).map(Self)
    }

    /// Returns `None`: this architecture has no such chains.
    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) const fn new(_: CpuPath, _: &[u8]) -> Option<Self> {
        None
    }

    /// Returns how many of `count` packets, at most [`MAX_CHAINS`], are better processed in step.
    #[cfg(target_arch = "x86_64")]
    pub(crate) const fn parallel_count(&self, count: usize) -> usize {
        match &self.0 {
            _ if count >= MAX_CHAINS => MAX_CHAINS,
            AesKey::Wide(_) if count >= MIN_CHAINS => MIN_CHAINS,
            AesKey::Wide(_) | AesKey::Half(_) => 0,
        }
    }

    /// Returns 0.
    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) const fn parallel_count(&self, _: usize) -> usize {
        0
    }

    /// Encrypts the first blocks of [`MIN_CHAINS`] to [`MAX_CHAINS`] packets, as many whole blocks as all of them
    /// have, and returns the number of blocks. `registers` are initially the encrypted IVs, and afterwards
    /// the keystream of the next block.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn encrypt(
        &self,
        packets: &mut [&mut [u8]],
        registers: &mut [Block; MAX_CHAINS],
    ) -> usize {
        match &self.0 {
            AesKey::Wide(keys) if packets.len() >= MAX_CHAINS => {
                wide::in_step::<4>(keys, packets, registers)
            }
            AesKey::Wide(keys) => wide::in_step::<3>(keys, packets, registers),
            AesKey::Half(keys) => half::in_step(keys, packets, registers),
        }
    }

    /// Never called: returns 0.
    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) const fn encrypt(&self, _: &mut [&mut [u8]], _: &mut [Block; MAX_CHAINS]) -> usize {
        0
    }
}

#[cfg(target_arch = "x86_64")]
mod half;

#[cfg(target_arch = "x86_64")]
mod wide {
    use core::arch::x86_64::*;

    use super::{Block, MAX_CHAINS};
    use crate::simd::aes::{Aes, AnyKeys, Keys};
    use crate::simd::avx512::Z;
    use crate::simd::vaes::Vaes;

    /// Encrypts `Q` vectors of four packets each.
    pub(super) fn in_step<const Q: usize>(
        keys: &AnyKeys<Vaes>,
        packets: &mut [&mut [u8]],
        registers: &mut [Block; MAX_CHAINS],
    ) -> usize {
        let mut lanes: [[&mut [Block]; 4]; Q] = core::array::from_fn(|_| Default::default());
        let mut steps = usize::MAX;
        let mut count = 0;
        for (lane, packet) in lanes.as_flattened_mut().iter_mut().zip(packets) {
            let (blocks, _) = packet.as_chunks_mut();
            steps = steps.min(blocks.len());
            *lane = blocks;
            count += 1;
        }
        if count < 4 * Q {
            return 0;
        }
        match keys {
            // SAFETY: expanded keys show that the features are there.
            AnyKeys::Aes128(keys) => unsafe { encrypt_chains(keys, lanes, registers, steps) },
            // SAFETY: expanded keys show that the features are there.
            AnyKeys::Aes192(keys) => unsafe { encrypt_chains(keys, lanes, registers, steps) },
            // SAFETY: expanded keys show that the features are there.
            AnyKeys::Aes256(keys) => unsafe { encrypt_chains(keys, lanes, registers, steps) },
        }
        steps
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,aes,vaes")]
    #[inline(never)]
    fn encrypt_chains<const Q: usize, const RK: usize>(
        keys: &Keys<Vaes, RK>,
        mut lanes: [[&mut [Block]; 4]; Q],
        registers: &mut [Block; MAX_CHAINS],
        steps: usize,
    ) {
        let mut round = [_mm512_setzero_si512(); RK];
        for (round, key) in round.iter_mut().zip(keys.rounds()) {
            *round = Z::raw(keys.proof().everywhere(*key));
        }
        let (registers, _) = registers.as_chunks_mut::<4>();
        let mut states = [_mm512_setzero_si512(); Q];
        for q in 0..Q {
            states[q] = gather(registers[q].each_ref());
        }
        for step in 0..steps {
            for q in 0..Q {
                let [Some(a), Some(b), Some(c), Some(d)] =
                    lanes[q].each_mut().map(|lane| lane.get_mut(step))
                else {
                    return;
                };
                states[q] = _mm512_xor_si512(states[q], gather([&*a, &*b, &*c, &*d]));
                scatter_blocks(states[q], [a, b, c, d]);
                states[q] = _mm512_xor_si512(states[q], round[0]);
            }
            for key in &round[1..RK - 1] {
                for state in &mut states {
                    *state = _mm512_aesenc_epi128(*state, *key);
                }
            }
            for state in &mut states {
                *state = _mm512_aesenclast_epi128(*state, round[RK - 1]);
            }
        }
        for q in 0..Q {
            scatter_blocks(states[q], registers[q].each_mut());
        }
    }

    /// Gathers four blocks into a vector.
    #[target_feature(enable = "avx512f,avx512dq")]
    #[inline]
    fn gather([a, b, c, d]: [&Block; 4]) -> __m512i {
        let four = _mm512_castsi128_si512(load_block(a));
        let four = _mm512_inserti32x4::<1>(four, load_block(b));
        let four = _mm512_inserti32x4::<2>(four, load_block(c));
        _mm512_inserti32x4::<3>(four, load_block(d))
    }

    /// Scatters the four blocks of a vector to their places.
    #[target_feature(enable = "avx512f,avx512dq")]
    #[inline]
    fn scatter_blocks(four: __m512i, [a, b, c, d]: [&mut Block; 4]) {
        store_block(a, _mm512_castsi512_si128(four));
        store_block(b, _mm512_extracti32x4_epi32::<1>(four));
        store_block(c, _mm512_extracti32x4_epi32::<2>(four));
        store_block(d, _mm512_extracti32x4_epi32::<3>(four));
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    fn load_block(block: &Block) -> __m128i {
        // SAFETY: 16 bytes are read from a reference to as many, aligned or not.
        unsafe { _mm_loadu_si128(block.as_ptr().cast()) }
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    fn store_block(block: &mut Block, bytes: __m128i) {
        // SAFETY: 16 bytes are written to a reference to as many, aligned or not.
        unsafe { _mm_storeu_si128(block.as_mut_ptr().cast(), bytes) }
    }
}
