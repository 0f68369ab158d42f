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

    /// `WORDS` words of the key from those of piece `piece` on.
    #[inline(always)]
    pub(crate) fn piece_on<const WORDS: usize>(&self, piece: usize) -> &[u32; WORDS] {
        let words = self.0.get(4 * piece..).and_then(|w| w.first_chunk());
        // The bounds of `Run` keep every kernel inside; the compiler sees it and drops the check.
        words.unwrap_or_else(|| unreachable!("no piece {piece} in the key of NH"))
    }
}

impl Zeroize for NhKey {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

/// Groups that follow each other in one block.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a> {
    first: usize,
    whole: &'a [Group],
    last: Option<&'a Group>,
}

impl<'a> Run<'a> {
    /// `whole` and then `last`, of which `first` groups of the block came before.
    ///
    /// # Panics
    ///
    /// If a block has not so many groups; the callers cut the message so that it has.
    #[inline(always)]
    pub(crate) fn new(first: usize, whole: &'a [Group], last: Option<&'a Group>) -> Self {
        let groups = whole.len() + usize::from(last.is_some());
        assert!(first <= GROUPS && groups <= GROUPS - first);
        Self { first, whole, last }
    }

    /// Calls `each` for all groups, with the first piece of the key that belongs to each.
    #[inline(always)]
    pub(crate) fn each(self, mut each: impl FnMut(usize, &Group)) {
        let first = self.first.min(GROUPS);
        for (n, group) in (first..GROUPS).zip(self.whole) {
            each(2 * n, group);
        }
        if let Some(group) = self.last {
            each(2 * (first + self.whole.len()).min(GROUPS - 1), group);
        }
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
#[inline(never)]
pub(crate) fn portable<const TAG: usize>(key: &NhKey, run: Run<'_>) -> Sums {
    let mut sums = [0u64; STREAMS];
    run.each(|piece, group| {
        let (low, high) = halves(group);
        let (low, high) = (words(low), words(high));
        for (stream, sum) in sums.iter_mut().take(TAG / 4).enumerate() {
            let (a, b): (&[_; 4], &[_; 4]) = (
                key.piece_on(piece + stream),
                key.piece_on(piece + stream + 1),
            );
            for ((m, k), (n, l)) in low.iter().zip(a).zip(high.iter().zip(b)) {
                let product = u64::from(m.wrapping_add(*k)) * u64::from(n.wrapping_add(*l));
                *sum = sum.wrapping_add(product);
            }
        }
    });
    sums
}

#[inline(always)]
fn words(half: &[u8; 16]) -> [u32; 4] {
    let mut words = [0; 4];
    for (word, octets) in words.iter_mut().zip(half.as_chunks().0) {
        *word = u32::from_le_bytes(*octets);
    }
    words
}
