//! Bytes in a pooled buffer.

use adit_wire::{subslice, subslice_mut};

use crate::pool::{PoolBuffer, SizeClass};

/// Bytes in `start..end` of a pooled buffer. The buffer is taken when there are bytes and returned
/// when there are none. Its size follows the traffic.
#[derive(Debug, Default)]
pub struct PooledBuffer {
    buffer: PoolBuffer,
    start: usize,
    end: usize,
    class: SizeClass,
}

impl PooledBuffer {
    /// Creates an empty buffer that will be of this size.
    #[must_use]
    pub fn with_class(class: SizeClass) -> Self {
        Self {
            class,
            ..Self::default()
        }
    }

    /// Returns the size class that the buffer has or would take.
    #[must_use]
    pub const fn class(&self) -> SizeClass {
        self.class
    }

    /// Returns the number of bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.end - self.start
    }

    /// True if there are no bytes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Returns the bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        subslice(&self.buffer, self.start..self.end)
    }

    /// Returns the bytes, to be changed in place.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        subslice_mut(&mut self.buffer, self.start..self.end)
    }

    /// Returns the space after the bytes, as much as there is now.
    pub fn spare_mut(&mut self) -> &mut [u8] {
        subslice_mut(&mut self.buffer, self.end..)
    }

    /// Takes or changes the buffer so that it has space for `min` more bytes.
    pub fn reserve(&mut self, min: usize) {
        if self.buffer.len() - self.end >= min && !self.buffer.is_none() {
            return;
        }
        let held = self.len();
        if self.buffer.len() >= held + min && !self.buffer.is_none() {
            self.buffer.copy_within(self.start..self.end, 0);
        } else {
            let mut larger = PoolBuffer::take(self.class, held + min);
            if let Some(front) = larger.get_mut(..held) {
                front.copy_from_slice(self.bytes());
            }
            self.buffer = larger;
        }
        (self.start, self.end) = (0, held);
    }

    /// Marks the first `n` bytes of the space as bytes.
    pub fn advance_end(&mut self, n: usize) {
        self.end = self.end.saturating_add(n).min(self.buffer.len());
    }

    /// Removes `n` bytes from the front. Returns the buffer to the pool with the last.
    pub fn consume(&mut self, n: usize) {
        self.start = self.start.saturating_add(n).min(self.end);
        self.release_if_empty();
    }

    /// Removes `n` bytes from the front. Keeps the buffer.
    pub fn advance_start(&mut self, n: usize) {
        self.start = self.start.saturating_add(n).min(self.end);
    }

    /// Removes all bytes. Keeps the buffer.
    pub const fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
    }

    /// Returns the size of the buffer in bytes, 0 without one.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.buffer.len()
    }

    /// Returns this buffer with the size class of `other`, an empty one without a buffer that it
    /// replaces.
    #[must_use]
    pub fn with_class_of(mut self, other: &Self) -> Self {
        self.class = other.class;
        self
    }

    /// Returns the buffer to the pool if there are no bytes.
    pub fn release_if_empty(&mut self) {
        if self.is_empty() {
            (self.start, self.end) = (0, 0);
            self.buffer.release();
        }
    }

    /// Adapts the size class to a transfer of `n` bytes where `offered` were possible.
    pub fn adapt_class(&mut self, n: usize, offered: usize) {
        if n >= offered {
            self.class = self.class.next_larger();
        } else if n < self.class.next_smaller().bytes() / 2 {
            self.class = self.class.next_smaller();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_survive_growth_and_moves() {
        let mut buffer = PooledBuffer::default();
        buffer.reserve(10);
        buffer.spare_mut()[..10].copy_from_slice(b"0123456789");
        buffer.advance_end(10);
        buffer.consume(4);
        buffer.reserve(20_000);
        assert_eq!(buffer.bytes(), b"456789");
        assert!(buffer.spare_mut().len() >= 20_000);
        let room = buffer.spare_mut().len();
        buffer.advance_end(room);
        buffer.consume(room);
        buffer.reserve(100);
        assert_eq!(buffer.len(), 6, "moved to the front, not grown");
        buffer.consume(99);
        assert!(buffer.is_empty() && buffer.spare_mut().is_empty());
    }
}
