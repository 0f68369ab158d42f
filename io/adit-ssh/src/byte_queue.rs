//! A byte queue in pooled buffers.

use std::collections::VecDeque;
use std::io::IoSlice;

use adit_stream::pool::SizeClass;
use adit_wire::subslice;

use super::spare_buffers::SpareBuffers;
use adit_stream::PooledBuffer;

/// Maximum size that is copied behind other bytes rather than kept in its own buffer, in bytes.
const MAX_COPIED: usize = 4096;

/// A queue of bytes. Growing moves no bytes, and an empty queue has no buffer.
#[derive(Debug, Default)]
pub(super) struct ByteQueue {
    queue: VecDeque<PooledBuffer>,
    len: usize,
}

impl ByteQueue {
    pub(super) const fn new() -> Self {
        Self {
            queue: VecDeque::new(),
            len: 0,
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Copies `bytes` to the end.
    pub(super) fn push(&mut self, mut bytes: &[u8], spares: &SpareBuffers) {
        self.len += bytes.len();
        while !bytes.is_empty() {
            let room = self
                .queue
                .back_mut()
                .map(PooledBuffer::spare_mut)
                .unwrap_or_default();
            let (now, later) = bytes.split_at(bytes.len().min(room.len()));
            if let Some(place) = room.get_mut(..now.len()) {
                place.copy_from_slice(now);
            }
            if let Some(back) = self.queue.back_mut() {
                back.advance_end(now.len());
            }
            bytes = later;
            if !bytes.is_empty() {
                // Buffers grow with the length of the queue.
                let room = bytes.len().max(self.len.min(SizeClass::LARGE.bytes()));
                self.queue.push_back(spares.take_buffer(room));
            }
        }
    }

    /// Appends a buffer without copying; a small one is copied if there is space.
    pub(super) fn append_buffer(&mut self, buffer: PooledBuffer, spares: &SpareBuffers) {
        let fits = self
            .queue
            .back_mut()
            .map_or(0, |back| back.spare_mut().len())
            >= buffer.len();
        if buffer.is_empty() || buffer.len() <= MAX_COPIED && fits {
            self.push(buffer.bytes(), spares);
            spares.put_buffer(buffer);
        } else {
            self.len += buffer.len();
            self.queue.push_back(buffer);
        }
    }

    /// Moves all of `other` to the end.
    pub(super) fn append_queue(&mut self, other: &mut Self) {
        if self.queue.is_empty() {
            core::mem::swap(self, other);
        } else {
            self.len += core::mem::take(&mut other.len);
            self.queue.append(&mut other.queue);
        }
    }

    /// Returns the first contiguous bytes.
    pub(super) fn front(&mut self) -> &mut [u8] {
        self.queue
            .front_mut()
            .map(PooledBuffer::bytes_mut)
            .unwrap_or_default()
    }

    /// Fills `out` with the queue's slices and returns their number.
    pub(super) fn fill_slices<'a>(&'a self, out: &mut [IoSlice<'a>]) -> usize {
        let mut count = 0;
        for (slice, buffer) in out.iter_mut().zip(&self.queue) {
            *slice = IoSlice::new(buffer.bytes());
            count += 1;
        }
        count
    }

    /// Makes the first `want` bytes contiguous, or all if there are fewer.
    pub(super) fn make_contiguous(&mut self, want: usize, spares: &SpareBuffers) {
        let want = want.min(self.len);
        let Some(mut first) = self.queue.pop_front() else {
            return;
        };
        if first.len() < want {
            first.reserve(want - first.len());
        }
        while first.len() < want {
            let Some(next) = self.queue.front_mut() else {
                break;
            };
            let n = next.len().min(want - first.len());
            if let (Some(place), Some(bytes)) =
                (first.spare_mut().get_mut(..n), next.bytes().get(..n))
            {
                place.copy_from_slice(bytes);
            }
            first.advance_end(n);
            next.advance_start(n);
            if next.is_empty()
                && let Some(next) = self.queue.pop_front()
            {
                spares.put_buffer(next);
            }
        }
        self.queue.push_front(first);
    }

    /// Removes the first `n` bytes and returns emptied buffers to `spares`.
    pub(super) fn consume(&mut self, n: usize, spares: &SpareBuffers) {
        let mut n = n.min(self.len);
        self.len -= n;
        while let Some(front) = self.queue.front_mut() {
            let now = n.min(front.len());
            front.advance_start(now);
            n -= now;
            if !front.is_empty() {
                break;
            }
            if let Some(front) = self.queue.pop_front() {
                spares.put_buffer(front);
            }
        }
    }

    /// Moves the first `n` bytes, or all if there are fewer, to the end of `out`.
    pub(super) fn move_to(&mut self, n: usize, out: &mut Vec<u8>, spares: &SpareBuffers) {
        let mut left = n.min(self.len);
        out.reserve(left);
        while left > 0 {
            let front = self.front();
            let now = subslice(front, ..left.min(front.len()));
            let moved = now.len();
            if moved == 0 {
                break;
            }
            out.extend_from_slice(now);
            self.consume(moved, spares);
            left -= moved;
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(chunks: &mut ByteQueue) -> Vec<u8> {
        let mut out = Vec::new();
        let len = chunks.len();
        chunks.move_to(len, &mut out, &SpareBuffers::default());
        assert!(chunks.is_empty() && chunks.queue.is_empty());
        out
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// Any sequence of operations matches a simple queue of bytes.
        #[test]
        fn it_is_a_queue(steps in prop::collection::vec((0u8..5, 0usize..60_000), 1..40)) {
            let (mut chunks, mut model) = (ByteQueue::default(), VecDeque::new());
            let spares = SpareBuffers::default();
            let mut next = 0u8;
            for (what, n) in steps {
                let bytes: Vec<u8> = (0..n).map(|_| { next = next.wrapping_add(7); next }).collect();
                match what {
                    0 => { chunks.push(&bytes, &spares); model.extend(bytes); }
                    1 => {
                        let mut buffer = PooledBuffer::default();
                        buffer.reserve(n);
                        buffer.spare_mut()[..n].copy_from_slice(&bytes);
                        buffer.advance_end(n);
                        chunks.append_buffer(buffer, &spares);
                        model.extend(bytes);
                    }
                    2 => { chunks.consume(n, &spares); model.drain(..n.min(model.len())); }
                    3 => {
                        chunks.make_contiguous(n, &spares);
                        let want = n.min(model.len());
                        prop_assert!(chunks.front().len() >= want);
                        prop_assert!(chunks.front()[..want].iter().eq(model.iter().take(want)));
                    }
                    _ => {
                        let mut other = ByteQueue::default();
                        other.push(&bytes, &spares);
                        chunks.append_queue(&mut other);
                        prop_assert!(other.is_empty());
                        model.extend(bytes);
                    }
                }
                prop_assert_eq!(chunks.len(), model.len());
                let mut slices = [IoSlice::new(&[]); 64];
                let count = chunks.fill_slices(&mut slices);
                prop_assert_eq!(slices[..count].iter().map(|s| s.len()).sum::<usize>(), model.len());
            }
            prop_assert_eq!(all(&mut chunks), Vec::from(model));
        }
    }
}
