//! The bytes of several buffers, part by part.

use std::io::IoSlice;

use adit_wire::subslice;

/// A range of the concatenated bytes of several buffers.
#[derive(Debug, Clone)]
pub(super) struct ConcatenatedBuffers<'a> {
    bufs: &'a [IoSlice<'a>],
    /// Number of consumed bytes of the first buffer.
    consumed: usize,
    /// Maximum number of bytes.
    max_bytes: usize,
}

impl<'a> ConcatenatedBuffers<'a> {
    /// Creates a range of all bytes of `bufs`.
    pub(super) const fn from_buffers(bufs: &'a [IoSlice<'a>]) -> Self {
        Self {
            bufs,
            consumed: 0,
            max_bytes: usize::MAX,
        }
    }

    /// Splits off the first `most` bytes, or all if there are fewer.
    pub(super) fn split_front(&mut self, most: usize) -> Self {
        let front = Self {
            max_bytes: most.min(self.max_bytes),
            ..self.clone()
        };
        let mut left = front.max_bytes;
        while let Some(part) = self.first_rest() {
            if part.len() > left {
                self.consumed += left;
                break;
            }
            left -= part.len();
            self.pass_first();
        }
        front
    }

    /// Returns the rest of the first buffer.
    fn first_rest(&self) -> Option<&'a [u8]> {
        let first: &'a [u8] = self.bufs.first()?;
        first.get(self.consumed..)
    }

    fn pass_first(&mut self) {
        self.bufs = subslice(self.bufs, 1..);
        self.consumed = 0;
    }
}

impl<'a> Iterator for ConcatenatedBuffers<'a> {
    type Item = &'a [u8];

    /// Returns the next bytes; no part is empty.
    fn next(&mut self) -> Option<&'a [u8]> {
        while self.max_bytes > 0 {
            let part = self.first_rest()?;
            self.pass_first();
            let part = part.get(..self.max_bytes).unwrap_or(part);
            self.max_bytes -= part.len();
            if !part.is_empty() {
                return Some(part);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_follow_each_other_whatever_their_size() {
        let bufs = [&b""[..], b"abc", b"", b"d", b"efghij", b""].map(IoSlice::new);
        for size in 1..12 {
            let mut rest = ConcatenatedBuffers::from_buffers(&bufs);
            let (mut got, mut pieces) = (Vec::new(), 0);
            while rest.clone().next().is_some() {
                let piece: Vec<u8> = rest.split_front(size).flatten().copied().collect();
                assert!(piece.len() == size || got.len() + piece.len() == 10);
                got.extend(piece);
                pieces += 1;
            }
            assert_eq!(
                (&*got, pieces),
                (&b"abcdefghij"[..], 10_usize.div_ceil(size))
            );
        }
        assert_eq!(
            ConcatenatedBuffers::from_buffers(&bufs)
                .split_front(usize::MAX)
                .flatten()
                .count(),
            10
        );
    }
}
