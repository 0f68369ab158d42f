//! L1 (RFC 4418 section 5.2): NH, which makes 64 bits of up to 1,024 octets.
//!
//! A message is cut into blocks of 1,024 octets, a block into *groups* of 32, each two halves of
//! four little-endian words. To a group belong pieces of the key of four words, too: stream `s`
//! adds piece `2·group + s` to the first half and the next piece to the second, and sums up the
//! products of the words that face each other. So the streams shift along one key, and vector code
//! finds the keys of two or four streams side by side in memory.
//!
//! Here stands the plain version; [`crate::simd`] has its twins.

use zeroize::Zeroize;

use crate::kdf::STREAMS;

/// What NH takes at a time, in octets.
pub(crate) type Group = [u8; GROUP];

/// Octets of a group.
pub(crate) const GROUP: usize = 32;

/// Groups of a full block.
pub(crate) const GROUPS: usize = 32;

/// Octets of a full block.
pub(crate) const BLOCK: usize = GROUP * GROUPS;

/// NH results, one for each stream; those of streams that the tag has not are of no meaning.
pub(crate) type Sums = [u64; STREAMS];

/// 1,024 octets for the first stream and 16 more for each further one, as native words.
#[repr(C, align(64))]
pub(crate) struct NhKey([u32; Self::OCTETS / 4]);

impl NhKey {
    /// Octets of the key for all streams.
    pub(crate) const OCTETS: usize = BLOCK + 16 * (STREAMS - 1);

    pub(crate) fn new(raw: &[u8; Self::OCTETS]) -> Self {
        let mut words = [0; Self::OCTETS / 4];
        let (octets, _) = raw.as_chunks();
        for (word, octets) in words.iter_mut().zip(octets) {
            *word = u32::from_be_bytes(*octets);
        }
        Self(words)
    }

    /// The key from piece `piece` on, `WORDS` words at a time: 4 make a piece, 8 what two streams
    /// need for one half of a group, or one stream for both.
    #[inline(always)]
    pub(crate) fn at<const WORDS: usize>(&self, piece: usize) -> &[[u32; WORDS]] {
        debug_assert!(4 * piece <= self.0.len(), "a piece of the key");
        self.0.get(4 * piece..).unwrap_or_default().as_chunks().0
    }
}

impl Zeroize for NhKey {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

/// Groups that follow each other in one block, and what is left behind them.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a> {
    first: usize,
    groups: &'a [Group],
    tail: Option<&'a [u8]>,
}

impl<'a> Run<'a> {
    /// `groups`, of which `first` came before in the block, and a `tail` that is less than a group;
    /// zeros make it one.
    ///
    /// # Panics
    ///
    /// If a block has not so many groups; the callers cut the message so that it has.
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

    /// The whole groups, and the piece of the key that the first of them begins at for the first
    /// stream.
    #[inline(always)]
    pub(crate) const fn groups(&self) -> (usize, &'a [Group]) {
        (2 * self.first, self.groups)
    }

    /// The tail, if there is one, in the same way.
    #[inline(always)]
    pub(crate) const fn tail(&self) -> (usize, Option<&'a [u8]>) {
        (2 * (self.first + self.groups.len()), self.tail)
    }

    /// The groups of a full block.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(crate) fn block(&self) -> Option<&'a [Group; GROUPS]> {
        self.groups.as_array()
    }
}

/// The two halves of a group.
#[inline(always)]
pub(crate) fn halves(group: &Group) -> (&[u8; 16], &[u8; 16]) {
    match group.as_chunks().0 {
        [low, high] => (low, high),
        _ => unreachable!("a group has 32 octets"),
    }
}

/// What `run` adds to the NH of its block, without its length in bits, for each stream of a tag
/// of `TAG` octets.
pub(crate) fn portable<const TAG: usize>(key: &NhKey, run: Run<'_>) -> Sums {
    let mut sums = [0; STREAMS];
    let (piece, groups) = run.groups();
    let (tail_piece, tail) = run.tail();
    let tail = tail.map(padded);
    // A stream at a time: so the compiler finds vectors by itself.
    for (stream, sum) in sums.iter_mut().take(TAG / 4).enumerate() {
        *sum = stream_sum(0, key.at(piece + stream), groups);
        *sum = stream_sum(*sum, key.at(tail_piece + stream), tail.as_slice());
    }
    sums
}

/// `tail` with zeros behind.
#[inline]
pub(crate) fn padded(tail: &[u8]) -> Group {
    let mut group = [0; GROUP];
    if let Some(place) = group.get_mut(..tail.len()) {
        place.copy_from_slice(tail);
    }
    group
}

fn stream_sum(mut sum: u64, keys: &[[u32; 8]], groups: &[Group]) -> u64 {
    for (group, key) in groups.iter().zip(keys) {
        let [a, b, c, d, e, f, g, h] = words(group);
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
fn words(group: &Group) -> [u32; 8] {
    let mut words = [0; 8];
    for (word, octets) in words.iter_mut().zip(group.as_chunks().0) {
        *word = u32::from_le_bytes(*octets);
    }
    words
}
