//! Payload bytes of a window in one growing ring.
//!
//! Bytes keep their position until the ring is released past it, however often the ring grows, so
//! that a window stores a segment by position and length alone.

use alloc::{boxed::Box, vec};

use adit_wire::subslice;

/// Size of the ring after the first push, in bytes.
const MIN_RING: usize = 256;

/// A ring of bytes. Positions count all bytes pushed since the ring was last empty.
#[derive(Debug)]
pub(crate) struct ByteRing {
    /// A power of two of bytes, or empty.
    buf: Box<[u8]>,
    head: usize,
    tail: usize,
}

impl ByteRing {
    pub(crate) fn new() -> Self {
        Self {
            buf: Box::default(),
            head: 0,
            tail: 0,
        }
    }

    const fn len(&self) -> usize {
        self.tail.wrapping_sub(self.head)
    }

    /// Returns the position of the next push.
    pub(crate) fn next_position(&mut self) -> usize {
        if self.len() == 0 {
            // An empty ring starts over, so that a small flow always uses the same cache lines.
            self.head = 0;
            self.tail = 0;
        }
        self.tail
    }

    /// Appends bytes. The caller limits the size of the ring.
    pub(crate) fn push(&mut self, data: &[u8]) {
        let at = self.next_position();
        let wanted = self.len() + data.len();
        if wanted > self.buf.len() {
            self.grow(wanted.next_power_of_two().max(MIN_RING));
        }
        self.write(at, data);
        self.tail = at.wrapping_add(data.len());
    }

    /// Returns the bytes from `pos` on, in two parts if they wrap around the end of the ring.
    pub(crate) fn slices(&self, pos: usize, len: usize) -> (&[u8], &[u8]) {
        debug_assert!(len <= self.buf.len(), "the length exceeds the ring");
        let start = pos & self.buf.len().wrapping_sub(1);
        let first = len.min(self.buf.len().saturating_sub(start));
        // In an empty ring all positions are out of range.
        let head = self.buf.get(start..start + first).unwrap_or_default();
        let tail = subslice(&self.buf, ..len - first);
        (head, tail)
    }

    /// Discards the bytes before `pos`.
    pub(crate) const fn release_to(&mut self, pos: usize) {
        self.head = pos;
    }

    /// Discards all bytes.
    pub(crate) const fn clear(&mut self) {
        self.head = self.tail;
    }

    /// Frees the memory of an empty ring.
    pub(crate) fn release_memory(&mut self) {
        *self = Self::new();
    }

    pub(crate) const fn heap_size(&self) -> usize {
        self.buf.len()
    }

    fn write(&mut self, pos: usize, data: &[u8]) {
        debug_assert!(data.len() <= self.buf.len(), "the ring was not grown");
        let start = pos & self.buf.len().wrapping_sub(1);
        let first = data.len().min(self.buf.len().saturating_sub(start));
        let (head, tail) = data.split_at(first);
        if let Some(to) = self.buf.get_mut(start..start + first) {
            to.copy_from_slice(head);
        }
        if let Some(to) = self.buf.get_mut(..tail.len()) {
            to.copy_from_slice(tail);
        }
    }

    #[cold]
    fn grow(&mut self, size: usize) {
        let old = core::mem::replace(self, Self::new());
        self.buf = vec![0; size].into_boxed_slice();
        self.head = old.head;
        self.tail = old.tail;
        let (first, second) = old.slices(old.head, old.len());
        self.write(old.head, first);
        self.write(old.head.wrapping_add(first.len()), second);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(ring: &ByteRing, pos: usize, len: usize) -> Vec<u8> {
        let (a, b) = ring.slices(pos, len);
        [a, b].concat()
    }

    #[test]
    fn positions_survive_wrapping_and_growing() {
        let mut ring = ByteRing::new();
        let mut kept = Vec::new();
        for n in 0..200_u8 {
            let data = vec![n; usize::from(n) % 61 + 1];
            let pos = ring.next_position();
            ring.push(&data);
            kept.push((pos, data));
            // One in, one out for a while; then only in, so that the ring grows while it is
            // wrapped.
            if n < 100 && kept.len() > 5 {
                kept.remove(0);
                ring.release_to(kept[0].0);
            }
        }
        assert!(ring.heap_size() > MIN_RING);
        for (pos, data) in kept {
            assert_eq!(joined(&ring, pos, data.len()), data);
        }
    }

    #[test]
    fn a_small_flow_needs_no_more_than_the_smallest_ring() {
        let mut ring = ByteRing::new();
        for _ in 0..1000 {
            let pos = ring.next_position();
            ring.push(&[7; 200]);
            assert_eq!(joined(&ring, pos, 200), [7; 200]);
            ring.clear();
        }
        assert_eq!(ring.heap_size(), MIN_RING);
        ring.release_memory();
        assert_eq!(ring.heap_size(), 0);
        assert_eq!(ring.slices(0, 0), (&[][..], &[][..]));
    }
}
