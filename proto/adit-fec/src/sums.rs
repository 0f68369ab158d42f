//! Parity in the making: each data shard is added as it comes, so that none need be kept.

use crate::Code;

/// Bytes of the widest register, and of a line of cache.
const ROUND: usize = 64;

/// The parity shards of a group, as far as it has come.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    /// Rows of `stride` bytes from `start` on, each at the beginning of a line of cache; none until
    /// the first shard.
    bytes: Vec<u8>,
    start: usize,
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

    /// A parity shard.
    pub(crate) fn row(&self, row: usize) -> Option<&[u8]> {
        let rows = self.bytes.get(self.start..)?;
        rows.chunks_exact(self.stride).nth(row)?.get(..self.len)
    }

    /// Adds data shard `place`, of at most the longest length.
    pub(crate) fn add(&mut self, code: &Code, place: usize, shard: &[u8]) {
        let wanted = shard.len().next_multiple_of(ROUND).min(self.stride);
        let size = code.parity() * self.stride;
        if self.bytes.is_empty() {
            self.bytes = vec![0; size + ROUND];
            self.start = self.bytes.as_ptr().align_offset(ROUND).min(ROUND);
        }
        let rows = self.bytes.get_mut(self.start..self.start + size);
        let rows = rows.unwrap_or_default();
        if self.extent < wanted {
            for row in rows.chunks_exact_mut(self.stride) {
                if let Some(behind) = row.get_mut(self.extent..wanted) {
                    behind.fill(0);
                }
            }
            self.extent = wanted;
        }
        self.len = self.len.max(shard.len());
        code.add(place, shard, rows, self.stride);
    }
}
