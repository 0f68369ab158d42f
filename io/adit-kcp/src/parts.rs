//! The bytes of several buffers, part by part.

use std::io::IoSlice;

use adit_wire::subslice;

/// A range of the concatenated bytes of several buffers.
#[derive(Debug, Clone)]
pub(super) struct Parts<'a> {
    bufs: &'a [IoSlice<'a>],
    /// Number of consumed bytes of the first buffer.
    passed: usize,
    /// Maximum number of bytes.
    most: usize,
}

impl<'a> Parts<'a> {
    /// Creates a range of all bytes of `bufs`.
    pub(super) const fn of(bufs: &'a [IoSlice<'a>]) -> Self {
        Self {
            bufs,
            passed: 0,
            most: usize::MAX,
        }
    }

    /// Splits off the first `most` bytes, or all if there are fewer.
    pub(super) fn split_front(&mut self, most: usize) -> Self {
        let front = Self {
            most: most.min(self.most),
            ..self.clone()
        };
        let mut left = front.most;
        while let Some(part) = self.first() {
            if part.len() > left {
                self.passed += left;
                break;
            }
            left -= part.len();
            self.pass();
        }
        front
    }

    /// Returns the rest of the first buffer.
    fn first(&self) -> Option<&'a [u8]> {
        let first: &'a [u8] = self.bufs.first()?;
        first.get(self.passed..)
    }

    fn pass(&mut self) {
        self.bufs = subslice(self.bufs, 1..);
        self.passed = 0;
    }
}

impl<'a> Iterator for Parts<'a> {
    type Item = &'a [u8];

    /// Returns the next bytes; no part is empty.
    fn next(&mut self) -> Option<&'a [u8]> {
        while self.most > 0 {
            let part = self.first()?;
            self.pass();
            let part = part.get(..self.most).unwrap_or(part);
            self.most -= part.len();
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
            let mut rest = Parts::of(&bufs);
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
            Parts::of(&bufs).split_front(usize::MAX).flatten().count(),
            10
        );
    }
}
