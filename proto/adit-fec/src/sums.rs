//! Parity in the making: each data shard is added as it comes, so that none need be kept.

use crate::Code;

/// A row is a multiple of the widest register.
const ROUND: usize = 64;

/// The parity shards of a group, as far as it has come.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    /// Rows of `stride` bytes; none until the first shard.
    bytes: Vec<u8>,
    stride: usize,
    /// Bytes of each row that are of this group, a multiple of [`ROUND`].
    extent: usize,
    /// Length of the longest shard.
    len: usize,
}

impl Sums {
    /// For shards of at most `longest` bytes.
    pub(crate) fn new(longest: usize) -> Self {
        Self {
            stride: longest.next_multiple_of(ROUND),
            ..Self::default()
        }
    }

    /// A group begins.
    pub(crate) const fn clear(&mut self) {
        (self.extent, self.len) = (0, 0);
    }

    /// Frees the memory, and forgets what there was.
    pub(crate) fn trim(&mut self) {
        self.bytes = Vec::new();
        self.clear();
    }

    /// Length of the parity shards.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// A parity shard.
    pub(crate) fn row(&self, row: usize) -> Option<&[u8]> {
        self.bytes
            .chunks_exact(self.stride)
            .nth(row)?
            .get(..self.len)
    }

    /// Adds data shard `place`, of at most the longest length.
    pub(crate) fn add(&mut self, code: &Code, place: usize, shard: &[u8]) {
        let wanted = shard.len().next_multiple_of(ROUND).min(self.stride);
        if self.bytes.is_empty() {
            self.bytes = vec![0; code.parity() * self.stride];
        }
        if self.extent < wanted {
            for row in self.bytes.chunks_exact_mut(self.stride) {
                if let Some(behind) = row.get_mut(self.extent..wanted) {
                    behind.fill(0);
                }
            }
            self.extent = wanted;
        }
        self.len = self.len.max(shard.len());
        code.add(place, shard, &mut self.bytes, self.stride);
    }
}
