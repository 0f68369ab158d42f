//! Bytes that can be generated and checked anywhere without storing them.

/// An endless stream of bytes that look random, the same for the same seed.
#[derive(Debug, Clone)]
pub struct BytePattern {
    state: u64,
}

impl BytePattern {
    /// Starts a stream.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self {
            state: seed ^ 0x9e37_79b9_7f4a_7c15,
        }
    }

    /// Returns the next `len` bytes. After a length that is not a multiple of eight, the bytes
    /// differ from those of another splitting.
    #[must_use]
    pub fn next_bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        for chunk in bytes.chunks_mut(8) {
            // xorshift64
            self.state ^= self.state << 13;
            self.state ^= self.state >> 7;
            self.state ^= self.state << 17;
            let word = self.state.to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
        bytes
    }
}

/// A checksum that depends on every byte and its position (FNV-1a).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checksum(pub u64);

impl Checksum {
    /// The checksum of no bytes.
    pub const EMPTY: Self = Self(0xcbf2_9ce4_8422_2325);

    /// Returns the checksum of all bytes so far and these.
    #[must_use]
    pub fn extend_with(self, bytes: &[u8]) -> Self {
        let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        Self(bytes.iter().fold(self.0, step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_the_same_however_it_is_taken() {
        let whole = BytePattern::new(7).next_bytes(64);
        let mut parts = BytePattern::new(7);
        assert_eq!([parts.next_bytes(40), parts.next_bytes(24)].concat(), whole);
        assert_ne!(BytePattern::new(8).next_bytes(64), whole);
    }

    #[test]
    fn the_sum_sees_order() {
        assert_eq!(
            Checksum::EMPTY.extend_with(b"ab").extend_with(b"c"),
            Checksum::EMPTY.extend_with(b"abc")
        );
        assert_ne!(
            Checksum::EMPTY.extend_with(b"ab"),
            Checksum::EMPTY.extend_with(b"ba")
        );
    }
}
