//! MACs of several messages at a time, each message in a vector lane.
//!
//! A hash is sequential: each step waits for the previous one, and most of a wide CPU idles. Messages of
//! equal length can share its vectors. With AVX-512, seven frames of ShadowsocksR take a quarter of the
//! sequential time under HMAC-MD5, and a fifth under SipHash.
//!
//! The loops are plain Rust, compiled for the widest vectors of this CPU ([`crate::simd::VectorLoop`]).

use adit_wire::subslice;
use zeroize::{Zeroize, Zeroizing};

use crate::md5_block::SINES;
use crate::simd::{CpuLevel, CpuPath, MinimumLevel, VectorLoop, cpu_level, run_in_vectors};

/// Number of messages in a batch. Missing ones are filled in and cost as much.
pub const MAC_LANES: usize = 8;

/// A word of each lane.
type LaneWords<T> = [T; MAC_LANES];

/// HMAC-MD5 (RFC 2104) of a batch, with a key for each lane.
pub struct HmacMd5Batch {
    path: CpuPath,
    inner: [LaneWords<u32>; 4],
    outer: [LaneWords<u32>; 4],
}

/// Block size of MD5, in bytes.
const BLOCK: usize = 64;
/// The initial state of MD5 (RFC 1321, section 3.3).
const MD5_INITIAL: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
/// The rotation of each step, by round (RFC 1321, section 3.4).
const MD5_ROTATIONS: [[u32; 4]; 4] = [
    [7, 12, 17, 22],
    [5, 9, 14, 20],
    [4, 11, 16, 23],
    [6, 10, 15, 21],
];

impl HmacMd5Batch {
    /// Returns the number of messages from which on a batch is faster than single messages on this CPU;
    /// `None` if batches are not supported.
    #[must_use]
    pub fn min_messages() -> Option<usize> {
        match cpu_level() {
            CpuLevel::Avx512 => Some(3),
            CpuLevel::Avx2 | CpuLevel::Avx2Vaes => Some(4),
            CpuLevel::Portable => None,
        }
    }

    /// Creates a batch with keys of at most 64 bytes; longer ones are truncated. Returns `None` if batches
    /// are not supported.
    #[must_use]
    pub fn new(keys: [&[u8]; MAC_LANES]) -> Option<Self> {
        Self::min_messages()?;
        Some(Self::new_on_path(CpuPath::of_process(), keys))
    }

    fn new_on_path(path: CpuPath, keys: [&[u8]; MAC_LANES]) -> Self {
        debug_assert!(
            keys.iter().all(|key| key.len() <= BLOCK),
            "a key is longer than a block"
        );
        let begun = |pad: u8| {
            let padded = Zeroizing::new(keys.map(|key| {
                let mut block = [pad; BLOCK];
                block
                    .iter_mut()
                    .zip(key)
                    .for_each(|(place, byte)| *place ^= byte);
                block
            }));
            let mut state = MD5_INITIAL.map(|word| [word; MAC_LANES]);
            md5_blocks(
                path,
                &mut state,
                padded.each_ref().map(|block| block.as_slice()),
            );
            state
        };
        Self {
            path,
            inner: begun(0x36),
            outer: begun(0x5c),
        }
    }

    /// Returns the tags of messages that all have the length of the first; the excess of longer ones is
    /// ignored.
    #[must_use]
    pub fn compute_tags(&self, messages: [&[u8]; MAC_LANES]) -> [[u8; 16]; MAC_LANES] {
        let digests = finish_md5(self.path, self.inner, messages);
        finish_md5(
            self.path,
            self.outer,
            digests.each_ref().map(|digest| digest.as_slice()),
        )
    }
}

impl Drop for HmacMd5Batch {
    fn drop(&mut self) {
        self.inner.as_flattened_mut().zeroize();
        self.outer.as_flattened_mut().zeroize();
    }
}

/// Returns the digests of a block that is already in `state`, followed by messages.
fn finish_md5(
    path: CpuPath,
    mut state: [LaneWords<u32>; 4],
    messages: [&[u8]; MAC_LANES],
) -> [[u8; 16]; MAC_LANES] {
    let len = messages[0].len();
    debug_assert!(
        messages.iter().all(|message| message.len() == len),
        "messages of unequal length"
    );
    let messages = messages.map(|message| message.split_at_checked(len - len % BLOCK));
    let messages = messages.map(Option::unwrap_or_default);
    md5_blocks(path, &mut state, messages.map(|(whole, _)| whole));
    // RFC 1321, section 3.1: a bit, zeros, and the length in bits.
    let ends = if len % BLOCK < BLOCK - 8 {
        BLOCK
    } else {
        2 * BLOCK
    };
    let bits = (((BLOCK + len) as u64).wrapping_mul(8)).to_le_bytes();
    let ending = messages.map(|(_, last)| {
        let mut ending = [0; 2 * BLOCK];
        ending
            .iter_mut()
            .zip(last)
            .for_each(|(place, byte)| *place = *byte);
        ending[len % BLOCK] = 0x80;
        ending[ends - 8..ends].copy_from_slice(&bits);
        ending
    });
    md5_blocks(
        path,
        &mut state,
        ending.each_ref().map(|ending| &ending[..ends]),
    );
    core::array::from_fn(|lane| {
        let mut digest = [0; 16];
        let places = digest.as_chunks_mut().0.iter_mut();
        for (place, words) in places.zip(&state) {
            *place = words[lane].to_le_bytes();
        }
        digest
    })
}

fn md5_blocks(path: CpuPath, state: &mut [LaneWords<u32>; 4], blocks: [&[u8]; MAC_LANES]) {
    let blocks = blocks.map(|bytes| bytes.as_chunks().0);
    let done = run_in_vectors(path, Md5Blocks { state, blocks });
    debug_assert!(done, "batches exist only on CPUs with vectors");
}

struct Md5Blocks<'a> {
    state: &'a mut [LaneWords<u32>; 4],
    blocks: [&'a [[u8; BLOCK]]; MAC_LANES],
}

impl MinimumLevel for Md5Blocks<'_> {
    const LEAST: CpuLevel = CpuLevel::Avx2;
}

impl VectorLoop for Md5Blocks<'_> {
    #[inline(always)]
    fn run_loop(self) {
        let mut state = *self.state;
        let mut count = usize::MAX;
        for blocks in &self.blocks {
            count = count.min(blocks.len());
        }
        for at in 0..count {
            let mut words = [[0; MAC_LANES]; 16];
            for (lane, blocks) in self.blocks.iter().enumerate() {
                let (bytes, _) = blocks[at].as_chunks();
                for (word, bytes) in words.iter_mut().zip(bytes) {
                    word[lane] = u32::from_le_bytes(*bytes);
                }
            }
            let before = state;
            for i in 0..16 {
                md5_step::<0>(&mut state, &words, i);
            }
            for i in 0..16 {
                md5_step::<1>(&mut state, &words, i);
            }
            for i in 0..16 {
                md5_step::<2>(&mut state, &words, i);
            }
            for i in 0..16 {
                md5_step::<3>(&mut state, &words, i);
            }
            for (now, before) in state
                .as_flattened_mut()
                .iter_mut()
                .zip(before.as_flattened())
            {
                *now = now.wrapping_add(*before);
            }
        }
        *self.state = state;
    }
}

/// Performs step `i` of a round, in all lanes.
#[inline(always)]
fn md5_step<const ROUND: usize>(
    state: &mut [LaneWords<u32>; 4],
    words: &[LaneWords<u32>; 16],
    i: usize,
) {
    let [a, b, c, d] = *state;
    let word = match ROUND {
        0 => i,
        1 => (5 * i + 1) % 16,
        2 => (3 * i + 5) % 16,
        _ => 7 * i % 16,
    };
    let sine = SINES[16 * ROUND + i];
    let by = MD5_ROTATIONS[ROUND][i % 4];
    let mut stepped = [0; MAC_LANES];
    for lane in 0..MAC_LANES {
        let (b, c, d) = (b[lane], c[lane], d[lane]);
        let mixed = match ROUND {
            0 => d ^ (b & (c ^ d)),
            1 => c ^ (d & (b ^ c)),
            2 => b ^ c ^ d,
            _ => c ^ (b | !d),
        };
        let sum = a[lane].wrapping_add(mixed).wrapping_add(sine);
        let sum = sum.wrapping_add(words[word][lane]);
        stepped[lane] = sum.rotate_left(by).wrapping_add(b);
    }
    *state = [d, stepped, b, c];
}

/// SipHash-1-3 of a batch, with a key for each lane.
pub struct SipBatch {
    path: CpuPath,
    state: [LaneWords<u64>; 4],
}

impl SipBatch {
    /// Returns the number of messages from which on a batch is faster than single messages on this CPU;
    /// `None` if batches are not supported. Eight 64-bit lanes exceed the registers of AVX2.
    #[must_use]
    pub fn min_messages() -> Option<usize> {
        (cpu_level() == CpuLevel::Avx512).then_some(3)
    }

    /// Creates a batch; returns `None` if batches are not supported.
    #[must_use]
    pub fn new(keys: &[[u8; 16]; MAC_LANES]) -> Option<Self> {
        Self::min_messages()?;
        Some(Self::new_on_path(CpuPath::of_process(), keys))
    }

    fn new_on_path(path: CpuPath, keys: &[[u8; 16]; MAC_LANES]) -> Self {
        let half = |at: usize| {
            keys.map(|key| {
                let half = key.as_chunks().0.get(at);
                half.map_or(0, |bytes| u64::from_le_bytes(*bytes))
            })
        };
        let (k0, k1) = (half(0), half(1));
        let with = |half: LaneWords<u64>, word: u64| half.map(|half| half ^ word);
        // "somepseudorandomlygeneratedbytes", as in the SipHash paper.
        let state = [
            with(k0, 0x736f_6d65_7073_6575),
            with(k1, 0x646f_7261_6e64_6f6d),
            with(k0, 0x6c79_6765_6e65_7261),
            with(k1, 0x7465_6462_7974_6573),
        ];
        Self { path, state }
    }

    /// Returns the hashes of messages that all have the length of the first; the excess of longer ones is
    /// ignored.
    #[must_use]
    pub fn compute_hashes(&self, messages: [&[u8]; MAC_LANES]) -> [u64; MAC_LANES] {
        let len = messages[0].len();
        debug_assert!(
            messages.iter().all(|message| message.len() == len),
            "messages of unequal length"
        );
        let words = messages.map(|message| message.as_chunks().0);
        let last = messages.map(|message| {
            let mut last = [0; 8];
            let behind = subslice(message, len - len % 8..len);
            last.iter_mut()
                .zip(behind)
                .for_each(|(place, byte)| *place = *byte);
            // The last byte is the length, modulo 256.
            u64::from_le_bytes(last) | (len as u64) << 56
        });
        let mut state = self.state;
        let state = &mut state;
        let done = run_in_vectors(self.path, SipWords { state, words, last });
        debug_assert!(done, "batches exist only on CPUs with vectors");
        let [a, b, c, d] = *state;
        core::array::from_fn(|lane| a[lane] ^ b[lane] ^ c[lane] ^ d[lane])
    }
}

impl Drop for SipBatch {
    fn drop(&mut self) {
        self.state.as_flattened_mut().zeroize();
    }
}

struct SipWords<'a> {
    state: &'a mut [LaneWords<u64>; 4],
    words: [&'a [[u8; 8]]; MAC_LANES],
    last: LaneWords<u64>,
}

impl MinimumLevel for SipWords<'_> {
    const LEAST: CpuLevel = CpuLevel::Avx512;
}

impl VectorLoop for SipWords<'_> {
    #[inline(always)]
    fn run_loop(self) {
        let mut state = *self.state;
        let mut count = usize::MAX;
        for words in &self.words {
            count = count.min(words.len());
        }
        for at in 0..count {
            let mut word = [0; MAC_LANES];
            for (word, words) in word.iter_mut().zip(&self.words) {
                *word = u64::from_le_bytes(words[at]);
            }
            sip_word(&mut state, word);
        }
        sip_word(&mut state, self.last);
        for word in &mut state[2] {
            *word ^= 0xff;
        }
        for _ in 0..3 {
            sip_round(&mut state);
        }
        *self.state = state;
    }
}

#[inline(always)]
fn sip_word(state: &mut [LaneWords<u64>; 4], word: LaneWords<u64>) {
    state[3] = xor_lanes(state[3], word);
    sip_round(state);
    state[0] = xor_lanes(state[0], word);
}

#[inline(always)]
fn sip_round(state: &mut [LaneWords<u64>; 4]) {
    let [mut a, mut b, mut c, mut d] = *state;
    a = add_lanes(a, b);
    b = xor_lanes(rotate_lanes::<13>(b), a);
    a = rotate_lanes::<32>(a);
    c = add_lanes(c, d);
    d = xor_lanes(rotate_lanes::<16>(d), c);
    a = add_lanes(a, d);
    d = xor_lanes(rotate_lanes::<21>(d), a);
    c = add_lanes(c, b);
    b = xor_lanes(rotate_lanes::<17>(b), c);
    c = rotate_lanes::<32>(c);
    *state = [a, b, c, d];
}

// Loops rather than closures: library functions that are called for each lane are not compiled for the
// vectors.

#[inline(always)]
fn add_lanes(mut a: LaneWords<u64>, b: LaneWords<u64>) -> LaneWords<u64> {
    for lane in 0..MAC_LANES {
        a[lane] = a[lane].wrapping_add(b[lane]);
    }
    a
}

#[inline(always)]
fn xor_lanes(mut a: LaneWords<u64>, b: LaneWords<u64>) -> LaneWords<u64> {
    for lane in 0..MAC_LANES {
        a[lane] ^= b[lane];
    }
    a
}

#[inline(always)]
fn rotate_lanes<const BY: u32>(mut words: LaneWords<u64>) -> LaneWords<u64> {
    for word in &mut words {
        *word = word.rotate_left(BY);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SipKey, hmac_md5};

    fn bytes(seed: usize, len: usize) -> Vec<u8> {
        (0..len)
            .map(|at| (at * 31 + seed * 7 + at / 200) as u8)
            .collect()
    }

    #[test]
    fn a_batch_has_the_tags_of_its_messages() {
        for len in [0, 1, 2, 7, 8, 55, 56, 63, 64, 65, 119, 120, 1000, 8105] {
            let keys: [Vec<u8>; MAC_LANES] = core::array::from_fn(|lane| bytes(lane, 20 + lane));
            let messages: [Vec<u8>; MAC_LANES] = core::array::from_fn(|lane| bytes(lane + 9, len));
            let all = messages.each_ref().map(Vec::as_slice);
            let short = keys.each_ref().map(|key| *key.first_chunk().unwrap());
            for path in CpuPath::available().filter(|path| path.level() > CpuLevel::Portable) {
                let md5 = HmacMd5Batch::new_on_path(path, keys.each_ref().map(Vec::as_slice));
                let tags = md5.compute_tags(all);
                for lane in 0..MAC_LANES {
                    let alone = hmac_md5(&keys[lane], &[all[lane]]);
                    assert_eq!(tags[lane], alone, "{path:?}, {len}, {lane}");
                }
                if path.level() < CpuLevel::Avx512 {
                    continue;
                }
                let hashes = SipBatch::new_on_path(path, &short).compute_hashes(all);
                for lane in 0..MAC_LANES {
                    let alone = SipKey::new(short[lane]).hash_bytes(all[lane]);
                    assert_eq!(hashes[lane], alone, "{path:?}, {len}, {lane}");
                }
            }
        }
    }
}
