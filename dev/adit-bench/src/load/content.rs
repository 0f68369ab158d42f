//! The bytes that are sent: generated once, known at every offset, cheap to compare.
//!
//! A repeated block whose length is prime, so that a lost, duplicated or misplaced record shows,
//! whatever its size.

use std::sync::OnceLock;

use adit_interop::BytePattern;

/// Maximum length that [`ByteContent::slice_at`] returns, and the size of every buffer here.
pub(crate) const CHUNK: usize = 256 * 1024;

const PERIOD: usize = 65_521;
/// Number of bytes that a sampled comparison checks …
const SAMPLE_LEN: usize = 64;
/// … at the front of each stretch of this length.
const SAMPLE_STRIDE: usize = 4096;

/// The extent of the comparison; the discriminant is sent over the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum CheckMode {
    /// Every byte.
    Whole = b'W',
    /// One byte in 64, and the end of each read: costs next to nothing compared with the read
    /// itself.
    Sampled = b'S',
}

/// The bytes of every stream.
#[derive(Debug)]
pub(crate) struct ByteContent {
    ring: Vec<u8>,
}

impl ByteContent {
    /// Returns the only instance.
    pub(crate) fn get() -> &'static Self {
        static CONTENT: OnceLock<ByteContent> = OnceLock::new();
        CONTENT.get_or_init(|| {
            let block = BytePattern::new(0xad17).next_bytes(PERIOD);
            Self {
                ring: block.iter().copied().cycle().take(PERIOD + CHUNK).collect(),
            }
        })
    }

    /// Returns the `len` bytes at `offset` of the stream; `len` is at most [`CHUNK`].
    pub(crate) fn slice_at(&self, offset: u64, len: usize) -> &[u8] {
        let start = usize::try_from(offset % PERIOD as u64).unwrap_or(0);
        self.ring
            .get(start..start + len.min(CHUNK))
            .unwrap_or_default()
    }

    /// Returns true if these bytes, at most [`CHUNK`], are those at `offset`.
    pub(crate) fn matches(&self, offset: u64, bytes: &[u8], check: CheckMode) -> bool {
        let wanted = self.slice_at(offset, bytes.len());
        match check {
            CheckMode::Whole => wanted == bytes,
            CheckMode::Sampled => {
                let tail = bytes.len().saturating_sub(SAMPLE_LEN);
                wanted.len() == bytes.len()
                    && wanted.get(tail..) == bytes.get(tail..)
                    && wanted
                        .chunks(SAMPLE_STRIDE)
                        .zip(bytes.chunks(SAMPLE_STRIDE))
                        .all(same_front)
            }
        }
    }
}

fn same_front((a, b): (&[u8], &[u8])) -> bool {
    a.get(..SAMPLE_LEN.min(a.len())) == b.get(..SAMPLE_LEN.min(b.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_the_same_from_any_offset() {
        let content = ByteContent::get();
        let whole = content.slice_at(0, CHUNK).to_vec();
        assert_eq!(whole.len(), CHUNK);
        assert_eq!(content.slice_at(1000, 5000), &whole[1000..6000]);
        assert_eq!(content.slice_at(PERIOD as u64 * 7 + 3, 100), &whole[3..103]);
    }

    #[test]
    fn what_is_shifted_or_changed_does_not_agree() {
        let content = ByteContent::get();
        for check in [CheckMode::Whole, CheckMode::Sampled] {
            let good = content.slice_at(777, 20_000).to_vec();
            assert!(content.matches(777, &good, check));
            for shift in [1, 16, 1024, 16_384, 65_536] {
                assert!(
                    !content.matches(777 + shift, &good, check),
                    "{check:?} {shift}"
                );
            }
            let mut bad = good.clone();
            bad[SAMPLE_STRIDE + 5] ^= 1;
            assert!(!content.matches(777, &bad, check));
            let mut bad = good;
            bad[19_999] ^= 1;
            assert!(!content.matches(777, &bad, check));
        }
    }

    #[test]
    fn only_the_whole_check_sees_every_byte() {
        let content = ByteContent::get();
        let mut bad = content.slice_at(0, 20_000).to_vec();
        bad[1000] ^= 1;
        assert!(!content.matches(0, &bad, CheckMode::Whole));
        assert!(content.matches(0, &bad, CheckMode::Sampled));
    }
}
