//! Sequence numbers, which wrap at 2³², and a ring of slots indexed by them.

use alloc::{vec, vec::Vec};

/// A sequence number. Order follows the shorter way around.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SeqNum(pub(crate) u32);

impl SeqNum {
    pub(crate) const fn wrapping_add(self, n: u32) -> Self {
        Self(self.0.wrapping_add(n))
    }

    /// True if `self` precedes `other`.
    pub(crate) const fn is_before(self, other: Self) -> bool {
        self.0.wrapping_sub(other.0).cast_signed() < 0
    }

    /// Returns the count of numbers in `from..self`. Only meaningful if `from` is not after `self`.
    pub(crate) const fn distance_from(self, from: Self) -> u32 {
        self.0.wrapping_sub(from.0)
    }
}

/// Returns the milliseconds from `ts` to `now`, both on the wrapping clock of the wire; negative if
/// `ts` is later.
pub(crate) const fn elapsed_ms(now: u32, ts: u32) -> i32 {
    now.wrapping_sub(ts).cast_signed()
}

/// Returns the low half of a 64-bit clock, which is its value on the wire.
pub(crate) const fn low_u32(value: u64) -> u32 {
    let [a, b, c, d, ..] = value.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

/// One slot for each number of a range that is not longer than the ring. Empty until it grows.
#[derive(Debug)]
pub(crate) struct SeqRing<T> {
    /// A power of two of slots, or none.
    slots: Vec<T>,
}

impl<T: Copy + Default> SeqRing<T> {
    pub(crate) const fn new() -> Self {
        Self { slots: Vec::new() }
    }

    pub(crate) const fn slot_count(&self) -> usize {
        self.slots.len()
    }

    pub(crate) const fn slot_index(&self, sn: SeqNum) -> usize {
        (sn.0 as usize) & self.slots.len().wrapping_sub(1)
    }

    pub(crate) fn get(&self, sn: SeqNum) -> Option<&T> {
        self.slots.get(self.slot_index(sn))
    }

    pub(crate) fn get_mut(&mut self, sn: SeqNum) -> Option<&mut T> {
        let index = self.slot_index(sn);
        self.slots.get_mut(index)
    }

    /// Returns the slot at an index of the ring, as returned by [`slot_index`](Self::slot_index).
    pub(crate) fn slot_at(&self, index: usize) -> Option<&T> {
        self.slots.get(index)
    }

    /// Makes the ring at least `size` slots long, keeping those of `first..first + count`.
    pub(crate) fn grow_to(&mut self, size: usize, first: SeqNum, count: u32) {
        let size = size.next_power_of_two();
        if size > self.slots.len() {
            self.grow_slots(size, first, count);
        }
    }

    // Out of the way of each segment: in line, it took some nanoseconds more.
    #[cold]
    fn grow_slots(&mut self, size: usize, first: SeqNum, count: u32) {
        let mut wider = Self {
            slots: vec![T::default(); size],
        };
        for sn in (0..count).map(|n| first.wrapping_add(n)) {
            if let (Some(to), Some(from)) = (wider.get_mut(sn), self.get(sn)) {
                *to = *from;
            }
        }
        *self = wider;
    }

    /// Frees the memory and discards the content.
    pub(crate) fn release_memory(&mut self) {
        self.slots = Vec::new();
    }

    pub(crate) const fn heap_size(&self) -> usize {
        self.slots.capacity() * size_of::<T>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_goes_the_short_way_round() {
        assert!(SeqNum(u32::MAX).is_before(SeqNum(0)) && !SeqNum(0).is_before(SeqNum(u32::MAX)));
        assert!(!SeqNum(7).is_before(SeqNum(7)));
        assert_eq!(SeqNum(3).distance_from(SeqNum(u32::MAX - 1)), 5);
        assert_eq!(elapsed_ms(4, u32::MAX - 5), 10);
        assert_eq!(elapsed_ms(4, 6), -2);
        assert_eq!(low_u32(0x1_0000_0007), 7);
    }

    #[test]
    fn growing_keeps_a_range_that_wraps() {
        let first = SeqNum(u32::MAX - 2);
        let mut ring = SeqRing::new();
        assert!(ring.get(first).is_none());
        ring.grow_to(6, first, 0);
        for n in 0..8 {
            *ring.get_mut(first.wrapping_add(n)).unwrap() = n;
        }
        ring.grow_to(9, first, 8);
        assert_eq!(ring.slot_count(), 16);
        for n in 0..8 {
            assert_eq!(ring.get(first.wrapping_add(n)), Some(&n));
        }
    }
}
