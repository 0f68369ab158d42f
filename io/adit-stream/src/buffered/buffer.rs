//! Bytes on their way, in a buffer on loan.

use adit_wire::{subslice, subslice_mut};

use crate::pool::{Class, Lease};

/// Bytes in `start..end` of a buffer that is taken when there are bytes and given back when there
/// are none. Its size follows the traffic.
#[derive(Debug, Default)]
pub struct Buffer {
    lease: Lease,
    start: usize,
    end: usize,
    class: Class,
}

impl Buffer {
    /// An empty one that will be of this size.
    #[must_use]
    pub fn of(class: Class) -> Self {
        Self {
            class,
            ..Self::default()
        }
    }

    /// The size that it takes, or would take.
    #[must_use]
    pub const fn class(&self) -> Class {
        self.class
    }

    /// How many bytes there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.end - self.start
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        subslice(&self.lease, self.start..self.end)
    }

    /// The bytes, to be changed in place.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        subslice_mut(&mut self.lease, self.start..self.end)
    }

    /// Room behind the bytes, as much as there is now.
    pub fn room(&mut self) -> &mut [u8] {
        subslice_mut(&mut self.lease, self.end..)
    }

    /// Takes or changes the buffer so that it has room for `min` bytes behind the present ones.
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

    /// The first `n` bytes of the room are bytes now.
    pub fn fill(&mut self, n: usize) {
        self.end = self.end.saturating_add(n).min(self.lease.len());
    }

    /// Passes over bytes; gives the buffer back with the last.
    pub fn consume(&mut self, n: usize) {
        self.start = self.start.saturating_add(n).min(self.end);
        self.rest();
    }

    /// Passes over bytes; the buffer stays.
    pub fn pass(&mut self, n: usize) {
        self.start = self.start.saturating_add(n).min(self.end);
    }

    /// Forgets the bytes; the buffer stays.
    pub const fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
    }

    /// The octets of the buffer, 0 without one.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.lease.len()
    }

    /// Takes the place of an empty one without a buffer, of which it keeps what was learned.
    #[must_use]
    pub fn instead_of(mut self, other: &Self) -> Self {
        self.class = other.class;
        self
    }

    /// Gives the buffer back if there are no bytes.
    pub fn rest(&mut self) {
        if self.is_empty() {
            (self.start, self.end) = (0, 0);
            self.lease.release();
        }
    }

    /// Learns from a transfer of `n` bytes where `offered` were possible.
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
