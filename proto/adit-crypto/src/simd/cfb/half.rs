//! AES-CFB with two blocks per 256-bit vector and eight vectors in step: enough chains for the two units
//! that a CPU has for AES rounds.

use core::arch::x86_64::*;

use super::{Block, MAX_CHAINS};
use crate::simd::aes::{Aes, AnyKeys, Keys};
use crate::simd::clmul256::Clmul256;

/// Number of vectors in step.
const SIDE: usize = MAX_CHAINS / 2;

/// Implements [`super::Chains::encrypt`]; does nothing for fewer packets than [`MAX_CHAINS`].
pub(super) fn in_step(
    keys: &AnyKeys<Clmul256>,
    packets: &mut [&mut [u8]],
    registers: &mut [Block; MAX_CHAINS],
) -> usize {
    if packets.len() < MAX_CHAINS {
        return 0;
    }
    let mut lanes: [[&mut [Block]; 2]; SIDE] = core::array::from_fn(|_| Default::default());
    let mut steps = usize::MAX;
    for (lane, packet) in lanes.as_flattened_mut().iter_mut().zip(packets) {
        let (blocks, _) = packet.as_chunks_mut();
        steps = steps.min(blocks.len());
        *lane = blocks;
    }
    match keys {
        // SAFETY: expanded keys show that the features are there.
        AnyKeys::Aes128(keys) => unsafe { encrypt_chains(keys, lanes, registers, steps) },
        // SAFETY: as above.
        AnyKeys::Aes192(keys) => unsafe { encrypt_chains(keys, lanes, registers, steps) },
        // SAFETY: as above.
        AnyKeys::Aes256(keys) => unsafe { encrypt_chains(keys, lanes, registers, steps) },
    }
    steps
}

#[target_feature(enable = "avx2,aes,vaes")]
#[inline(never)]
fn encrypt_chains<const RK: usize>(
    keys: &Keys<Clmul256, RK>,
    mut lanes: [[&mut [Block]; 2]; SIDE],
    registers: &mut [Block; MAX_CHAINS],
    steps: usize,
) {
    let (registers, _) = registers.as_chunks_mut::<2>();
    let mut states = [_mm256_setzero_si256(); SIDE];
    for (state, [a, b]) in states.iter_mut().zip(&*registers) {
        *state = gather(a, b);
    }
    let first = broadcast_key(keys, 0);
    for step in 0..steps {
        for (state, lane) in states.iter_mut().zip(&mut lanes) {
            let [Some(a), Some(b)] = lane.each_mut().map(|lane| lane.get_mut(step)) else {
                return;
            };
            *state = _mm256_xor_si256(*state, gather(a, b));
            scatter_blocks(*state, a, b);
            *state = _mm256_xor_si256(*state, first);
        }
        for key in 1..RK - 1 {
            let key = broadcast_key(keys, key);
            for state in &mut states {
                *state = _mm256_aesenc_epi128(*state, key);
            }
        }
        let last = broadcast_key(keys, RK - 1);
        for state in &mut states {
            *state = _mm256_aesenclast_epi128(*state, last);
        }
    }
    for (state, [a, b]) in states.iter().zip(registers) {
        scatter_blocks(*state, a, b);
    }
}

/// Returns the key of a round in both halves.
#[target_feature(enable = "avx2")]
#[inline]
fn broadcast_key<const RK: usize>(keys: &Keys<Clmul256, RK>, round: usize) -> __m256i {
    keys.proof().everywhere(keys.rounds()[round]).raw()
}

/// Gathers two blocks into a vector.
#[target_feature(enable = "avx2")]
#[inline]
fn gather(a: &Block, b: &Block) -> __m256i {
    _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(load_block(a)), load_block(b))
}

/// Scatters the two blocks of a vector to their places.
#[target_feature(enable = "avx2")]
#[inline]
fn scatter_blocks(two: __m256i, a: &mut Block, b: &mut Block) {
    store_block(a, _mm256_castsi256_si128(two));
    store_block(b, _mm256_extracti128_si256::<1>(two));
}

#[target_feature(enable = "avx2")]
#[inline]
fn load_block(block: &Block) -> __m128i {
    // SAFETY: 16 bytes are read from a reference to as many, aligned or not.
    unsafe { _mm_loadu_si128(block.as_ptr().cast()) }
}

#[target_feature(enable = "avx2")]
#[inline]
fn store_block(block: &mut Block, bytes: __m128i) {
    // SAFETY: 16 bytes are written to a reference to as many, aligned or not.
    unsafe { _mm_storeu_si128(block.as_mut_ptr().cast(), bytes) }
}
