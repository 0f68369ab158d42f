//! L1 (RFC 4418 section 5.2): NH, which hashes up to 1,024 bytes to 64 bits.
//!
//! A message is divided into blocks of 1,024 bytes, and a block into *groups* of 32, each with two
//! halves of four little-endian words. The key is divided into pieces of four words. For each
//! group, stream `s` adds key piece `2·group + s` to the first half and the next piece to the
//! second half, and sums the products of corresponding words. The streams are thus shifted along
//! one key, and vector code finds the keys of two or four streams next to each other in memory.
//!
//! This is the portable version; [`crate::simd`] contains the vector versions.

use zeroize::Zeroize;

use crate::kdf::STREAMS;

/// The unit that NH processes.
pub(crate) type Group = [u8; GROUP];

/// Length of a group, in bytes.
pub(crate) const GROUP: usize = 32;

/// Number of groups in a full block.
pub(crate) const GROUPS: usize = 32;

/// Length of a full block, in bytes.
pub(crate) const BLOCK: usize = GROUP * GROUPS;

/// NH results, one for each stream; those of streams that the tag does not use are unspecified.
pub(crate) type Sums = [u64; STREAMS];

/// Key of NH: 1,024 bytes for the first stream and 16 more for each further one, as native words.
#[derive(Clone)]
#[repr(C, align(64))]
pub(crate) struct NhKey([u32; Self::OCTETS / 4]);

impl NhKey {
    /// Length of the key for all streams, in bytes.
    pub(crate) const OCTETS: usize = BLOCK + 16 * (STREAMS - 1);

    pub(crate) fn new(raw: &[u8; Self::OCTETS]) -> Self {
        let mut words = [0; Self::OCTETS / 4];
        let (octets, _) = raw.as_chunks();
        for (word, octets) in words.iter_mut().zip(octets) {
            *word = u32::from_be_bytes(*octets);
        }
        Self(words)
    }

    /// Returns the key from piece `piece` on, in units of `WORDS` words: 4 are a piece; 8 are the
    /// key of two streams for half a group, or of one stream for both halves.
    #[inline(always)]
    pub(crate) fn words_from<const WORDS: usize>(&self, piece: usize) -> &[[u32; WORDS]] {
        debug_assert!(4 * piece <= self.0.len(), "a piece of the key");
        self.0.get(4 * piece..).unwrap_or_default().as_chunks().0
    }
}

impl Zeroize for NhKey {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

/// Consecutive groups of a block, and the remaining bytes after them.
#[derive(Clone, Copy)]
pub(crate) struct GroupRun<'a> {
    first: usize,
    groups: &'a [Group],
    tail: Option<&'a [u8]>,
}

impl<'a> GroupRun<'a> {
    /// Creates a run of `groups`, preceded by `first` groups of the block, and a `tail` shorter
    /// than a group, which is padded with zeros.
    ///
    /// # Panics
    ///
    /// If the groups exceed a block; the callers divide the message accordingly.
    #[inline(always)]
    pub(crate) fn new(first: usize, groups: &'a [Group], tail: Option<&'a [u8]>) -> Self {
        assert!(tail.is_none_or(|tail| tail.len() < GROUP));
        let count = groups.len() + usize::from(tail.is_some());
        assert!(first <= GROUPS && count <= GROUPS - first);
        Self {
            first,
            groups,
            tail,
        }
    }

    /// Returns the whole groups, and the key piece of the first one for the first stream.
    #[inline(always)]
    pub(crate) const fn groups(&self) -> (usize, &'a [Group]) {
        (2 * self.first, self.groups)
    }

    /// Returns the tail, if there is one, and its key piece for the first stream.
    #[inline(always)]
    pub(crate) const fn tail(&self) -> (usize, Option<&'a [u8]>) {
        (2 * (self.first + self.groups.len()), self.tail)
    }

    /// Returns the groups if they are a full block.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(crate) fn block(&self) -> Option<&'a [Group; GROUPS]> {
        self.groups.try_into().ok()
    }
}

/// Returns the two halves of a group.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
pub(crate) fn halves(group: &Group) -> (&[u8; 16], &[u8; 16]) {
    match group.as_chunks().0 {
        [low, high] => (low, high),
        _ => unreachable!("a group has 32 bytes"),
    }
}

/// Computes the contribution of `run` to the NH of its block, without the block's length in bits,
/// for each stream of a tag of `TAG` bytes.
pub(crate) fn nh_portable<const TAG: usize>(key: &NhKey, run: GroupRun<'_>) -> Sums {
    let mut sums = [0; STREAMS];
    let (piece, groups) = run.groups();
    let (tail_piece, tail) = run.tail();
    let tail = tail.map(pad_tail);
    // One stream at a time, because the compiler vectorizes this form.
    for (stream, sum) in sums.iter_mut().take(TAG / 4).enumerate() {
        *sum = stream_sum(0, key.words_from(piece + stream), groups);
        *sum = stream_sum(*sum, key.words_from(tail_piece + stream), tail.as_slice());
    }
    sums
}

/// Pads `tail` with zeros to a group.
#[inline]
pub(crate) fn pad_tail(tail: &[u8]) -> Group {
    let mut group = [0; GROUP];
    if let Some(place) = group.get_mut(..tail.len()) {
        place.copy_from_slice(tail);
    }
    group
}

fn stream_sum(mut sum: u64, keys: &[[u32; 8]], groups: &[Group]) -> u64 {
    for (group, key) in groups.iter().zip(keys) {
        let [a, b, c, d, e, f, g, h] = to_words(group);
        let [k, l, m, n, o, p, q, r] = *key;
        for (low, key_low, high, key_high) in
            [(a, k, e, o), (b, l, f, p), (c, m, g, q), (d, n, h, r)]
        {
            let (low, high) = (low.wrapping_add(key_low), high.wrapping_add(key_high));
            sum = sum.wrapping_add(u64::from(low) * u64::from(high));
        }
    }
    sum
}

#[inline(always)]
fn to_words(group: &Group) -> [u32; 8] {
    let mut words = [0; 8];
    for (word, octets) in words.iter_mut().zip(group.as_chunks().0) {
        *word = u32::from_le_bytes(*octets);
    }
    words
}
