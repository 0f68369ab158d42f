//! xorshift128+, from which both sides draw the same numbers.

use adit_wire::{narrow_int, u64_from};

#[derive(Debug, Clone)]
pub(crate) struct Generator {
    v0: u64,
    v1: u64,
}

impl Generator {
    pub(crate) fn from_seed(bytes: &[u8; 16]) -> Self {
        let half = |bytes: Option<&[u8; 8]>| bytes.map_or(0, |b| u64::from_le_bytes(*b));
        Self {
            v0: half(bytes.first_chunk()),
            v1: half(bytes.last_chunk()),
        }
    }

    /// Creates a generator seeded with a hash and a length; the first four numbers are discarded.
    pub(crate) fn from_hash_and_len(bytes: &[u8; 16], len: usize) -> Self {
        let [_, _, rest @ ..] = bytes;
        let mut seed = [0; 16];
        // A frame's data has fewer than 65,536 bytes.
        let len = narrow_int::<u16>(len).to_le_bytes();
        for (place, byte) in seed.iter_mut().zip(len.iter().chain(rest)) {
            *place = *byte;
        }
        let mut generator = Self::from_seed(&seed);
        for _ in 0..4 {
            generator.next();
        }
        generator
    }

    pub(crate) const fn next(&mut self) -> u64 {
        let (mut x, y) = (self.v0, self.v1);
        self.v0 = y;
        x ^= x << 23;
        x ^= y ^ (x >> 17) ^ (y >> 26);
        self.v1 = x;
        x.wrapping_add(y)
    }

    /// Draws a number below `limit`; 0 if `limit` is 0.
    pub(crate) fn draw_below(&mut self, limit: usize) -> usize {
        let limit = u64_from(limit).max(1);
        narrow_int(self.next() % limit)
    }

    /// Draws a position in a padding of `pad` bytes.
    pub(crate) fn draw_start(&mut self, pad: usize) -> usize {
        let drawn = self.next() % 8_589_934_609;
        let pad = u64_from(pad).max(1);
        narrow_int(drawn % pad)
    }
}
