//! Sequence numbers, which wrap at 2³², and a ring of slots indexed by them.

/// A sequence number. Order follows the shorter way around.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sn(pub(crate) u32);

impl Sn {
    pub(crate) const fn plus(self, n: u32) -> Self {
        Self(self.0.wrapping_add(n))
    }

    /// True if `self` precedes `other`.
    pub(crate) const fn before(self, other: Self) -> bool {
        self.0.wrapping_sub(other.0).cast_signed() < 0
    }

    /// Returns the count of numbers in `from..self`. Only meaningful if `from` is not after `self`.
    pub(crate) const fn distance(self, from: Self) -> u32 {
        self.0.wrapping_sub(from.0)
    }
}

/// Returns the milliseconds from `ts` to `now`, both on the wrapping clock of the wire; negative if
/// `ts` is later.
pub(crate) const fn elapsed(now: u32, ts: u32) -> i32 {
    now.wrapping_sub(ts).cast_signed()
}

/// Returns the low half of a 64-bit clock, which is its value on the wire.
pub(crate) const fn low32(value: u64) -> u32 {
    let [a, b, c, d, ..] = value.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

/// One slot for each number of a range that is not longer than the ring. Empty until it grows.
#[derive(Debug)]
pub(crate) struct SnRing<T> {
    /// A power of two of slots, or none.
    slots: Vec<T>,
}

impl<T: Copy + Default> SnRing<T> {
    pub(crate) const fn new() -> Self {
        Self { slots: Vec::new() }
    }

    pub(crate) const fn size(&self) -> usize {
        self.slots.len()
    }

    pub(crate) const fn index(&self, sn: Sn) -> usize {
        (sn.0 as usize) & self.slots.len().wrapping_sub(1)
    }

    pub(crate) fn get(&self, sn: Sn) -> Option<&T> {
        self.slots.get(self.index(sn))
    }

    pub(crate) fn get_mut(&mut self, sn: Sn) -> Option<&mut T> {
        let index = self.index(sn);
        self.slots.get_mut(index)
    }

    /// Returns the slot at an index of the ring, as returned by [`index`](Self::index).
    pub(crate) fn slot(&self, index: usize) -> Option<&T> {
        self.slots.get(index)
    }

    /// Makes the ring at least `size` slots long, keeping those of `first..first + count`.
    pub(crate) fn grow(&mut self, size: usize, first: Sn, count: u32) {
        let size = size.next_power_of_two();
        if size <= self.slots.len() {
            return;
        }
        let mut wider = Self {
            slots: vec![T::default(); size],
        };
        for sn in (0..count).map(|n| first.plus(n)) {
            if let (Some(to), Some(from)) = (wider.get_mut(sn), self.get(sn)) {
                *to = *from;
            }
        }
        *self = wider;
    }

    /// Frees the memory and discards the content.
    pub(crate) fn release(&mut self) {
        self.slots = Vec::new();
    }

    pub(crate) const fn heap(&self) -> usize {
        self.slots.capacity() * size_of::<T>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_goes_the_short_way_round() {
        assert!(Sn(u32::MAX).before(Sn(0)) && !Sn(0).before(Sn(u32::MAX)));
        assert!(!Sn(7).before(Sn(7)));
        assert_eq!(Sn(3).distance(Sn(u32::MAX - 1)), 5);
        assert_eq!(elapsed(4, u32::MAX - 5), 10);
        assert_eq!(elapsed(4, 6), -2);
        assert_eq!(low32(0x1_0000_0007), 7);
    }

    #[test]
    fn growing_keeps_a_range_that_wraps() {
        let first = Sn(u32::MAX - 2);
        let mut ring = SnRing::new();
        assert!(ring.get(first).is_none());
        ring.grow(6, first, 0);
        for n in 0..8 {
            *ring.get_mut(first.plus(n)).unwrap() = n;
        }
        ring.grow(9, first, 8);
        assert_eq!(ring.size(), 16);
        for n in 0..8 {
            assert_eq!(ring.get(first.plus(n)), Some(&n));
        }
    }
}
