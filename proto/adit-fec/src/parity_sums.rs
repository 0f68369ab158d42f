//! Incremental parity: each data shard is added as it arrives, so that none has to be stored.

use alloc::{vec, vec::Vec};

use crate::ErasureCode;

/// Size of the widest register and of a cache line, in bytes.
const ALIGNMENT: usize = 64;

/// The parity shards of a group, as computed so far.
#[derive(Debug, Default)]
pub(crate) struct ParitySums {
    /// Rows of `stride` bytes from `start` on, each aligned to a cache line; none before the first shard.
    bytes: Vec<u8>,
    start: usize,
    stride: usize,
    /// Number of bytes of each row used by this group, a multiple of [`ALIGNMENT`].
    extent: usize,
    /// Length of the longest shard.
    len: usize,
}

impl ParitySums {
    /// Creates sums for shards of at most `longest` bytes.
    pub(crate) fn new(longest: usize) -> Self {
        Self {
            stride: longest.next_multiple_of(ALIGNMENT),
            ..Self::default()
        }
    }

    /// Starts a new group.
    pub(crate) const fn start_group(&mut self) {
        (self.extent, self.len) = (0, 0);
    }

    /// Frees the memory and discards its content.
    pub(crate) fn release_memory(&mut self) {
        self.bytes = Vec::new();
        self.start_group();
    }

    /// Returns a parity shard.
    pub(crate) fn parity_row(&self, row: usize) -> Option<&[u8]> {
        let rows = self.bytes.get(self.start..)?;
        rows.chunks_exact(self.stride).nth(row)?.get(..self.len)
    }

    /// Adds data shard `place`, of at most the maximum length.
    pub(crate) fn add_shard(&mut self, code: &ErasureCode, place: usize, shard: &[u8]) {
        let wanted = shard.len().next_multiple_of(ALIGNMENT).min(self.stride);
        let size = code.parity_shards() * self.stride;
        if self.bytes.is_empty() {
            self.bytes = vec![0; size + ALIGNMENT];
            self.start = self.bytes.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
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
        code.add_contribution(place, shard, rows, self.stride);
    }
}
