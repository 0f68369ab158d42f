//! Bytes in a pooled buffer.

use adit_wire::{subslice, subslice_mut};

use crate::pool::{Class, Lease};

/// Bytes in `start..end` of a pooled buffer. The buffer is taken when there are bytes and returned
/// when there are none. Its size follows the traffic.
#[derive(Debug, Default)]
pub struct Buffer {
    lease: Lease,
    start: usize,
    end: usize,
    class: Class,
}

impl Buffer {
    /// Creates an empty buffer that will be of this size.
    #[must_use]
    pub fn of(class: Class) -> Self {
        Self {
            class,
            ..Self::default()
        }
    }

    /// Returns the size class that the buffer has or would take.
    #[must_use]
    pub const fn class(&self) -> Class {
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
        subslice(&self.lease, self.start..self.end)
    }

    /// Returns the bytes, to be changed in place.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        subslice_mut(&mut self.lease, self.start..self.end)
    }

    /// Returns the space after the bytes, as much as there is now.
    pub fn room(&mut self) -> &mut [u8] {
        subslice_mut(&mut self.lease, self.end..)
    }

    /// Takes or changes the buffer so that it has space for `min` more bytes.
    pub fn reserve(&mut self, min: usize) {
        if self.lease.len() - self.end >= min && !self.lease.is_none() {
            return;
        }
        let held = self.len();
        if self.lease.len() >= held + min && !self.lease.is_none() {
            self.lease.copy_within(self.start..self.end, 0);
        } else {
            let mut larger = Lease::take(self.class, held + min);
            if let Some(front) = larger.get_mut(..held) {
                front.copy_from_slice(self.bytes());
            }
            self.lease = larger;
        }
        (self.start, self.end) = (0, held);
    }

    /// Marks the first `n` bytes of the space as bytes.
    pub fn fill(&mut self, n: usize) {
        self.end = self.end.saturating_add(n).min(self.lease.len());
    }

    /// Removes `n` bytes from the front. Returns the buffer to the pool with the last.
    pub fn consume(&mut self, n: usize) {
        self.start = self.start.saturating_add(n).min(self.end);
        self.rest();
    }

    /// Removes `n` bytes from the front. Keeps the buffer.
    pub fn pass(&mut self, n: usize) {
        self.start = self.start.saturating_add(n).min(self.end);
    }

    /// Removes all bytes. Keeps the buffer.
    pub const fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
    }

    /// Returns the size of the buffer in bytes, 0 without one.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.lease.len()
    }

    /// Returns this buffer with the size class of `other`, an empty one without a buffer that it
    /// replaces.
    #[must_use]
    pub fn instead_of(mut self, other: &Self) -> Self {
        self.class = other.class;
        self
    }

    /// Returns the buffer to the pool if there are no bytes.
    pub fn rest(&mut self) {
        if self.is_empty() {
            (self.start, self.end) = (0, 0);
            self.lease.release();
        }
    }

    /// Adapts the size class to a transfer of `n` bytes where `offered` were possible.
    pub fn learn(&mut self, n: usize, offered: usize) {
        if n >= offered {
            self.class = self.class.grown();
        } else if n < self.class.shrunk().bytes() / 2 {
            self.class = self.class.shrunk();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_survive_growth_and_moves() {
        let mut buffer = Buffer::default();
        buffer.reserve(10);
        buffer.room()[..10].copy_from_slice(b"0123456789");
        buffer.fill(10);
        buffer.consume(4);
        buffer.reserve(20_000);
        assert_eq!(buffer.bytes(), b"456789");
        assert!(buffer.room().len() >= 20_000);
        let room = buffer.room().len();
        buffer.fill(room);
        buffer.consume(room);
        buffer.reserve(100);
        assert_eq!(buffer.len(), 6, "moved to the front, not grown");
        buffer.consume(99);
        assert!(buffer.is_empty() && buffer.room().is_empty());
    }
}
