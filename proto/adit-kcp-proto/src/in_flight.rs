//! Bit sets of the segments that are in flight, due or overtaken, in groups of 64.
//!
//! A flush compares the time with the earliest time-out of the window, and looks into a group only
//! when that group's own earliest time-out has passed. An acknowledgement clears bits.

use alloc::{vec, vec::Vec};

use crate::seq::SeqNum;

/// No time-out is armed.
pub(crate) const NEVER: u64 = u64::MAX;

/// The states of 64 adjacent slots of the ring.
#[derive(Debug, Clone, Copy)]
struct SlotGroup {
    /// Sent and not acknowledged.
    live: u64,
    /// To be sent again by the current flush or the next.
    due: u64,
    /// Live, and to be counted when a later one is acknowledged.
    watched: u64,
    /// Overtaken, but not often enough: due only when a flush has nothing new.
    hinted: u64,
    /// A lower bound of the time-outs of the live ones, in milliseconds.
    earliest: u64,
}

impl SlotGroup {
    const EMPTY: Self = Self {
        live: 0,
        due: 0,
        watched: 0,
        hinted: 0,
        earliest: NEVER,
    };
}

/// The states of a ring of segments.
#[derive(Debug)]
pub(crate) struct InFlight {
    groups: Vec<SlotGroup>,
    /// Number of slots in the ring, a power of two or 0.
    size: usize,
    live: u32,
    due: u32,
    hinted: u32,
    earliest: u64,
}

/// A state to search for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SegmentMark {
    /// Sent and not acknowledged.
    Live,
    /// To be sent again.
    Due,
    /// To be counted when overtaken.
    Watched,
}

impl InFlight {
    pub(crate) const fn new() -> Self {
        Self {
            groups: Vec::new(),
            size: 0,
            live: 0,
            due: 0,
            hinted: 0,
            earliest: NEVER,
        }
    }

    /// Returns the number of segments sent and not acknowledged.
    pub(crate) const fn live_count(&self) -> u32 {
        self.live
    }

    /// Returns the number of segments to be sent again.
    pub(crate) const fn due_count(&self) -> u32 {
        self.due
    }

    /// Returns the number of segments that a flush with nothing new sends again.
    pub(crate) const fn hinted_count(&self) -> u32 {
        self.hinted
    }

    /// Returns a lower bound of all time-outs, in milliseconds; [`NEVER`] if nothing is in flight.
    pub(crate) const fn earliest_timeout(&self) -> u64 {
        self.earliest
    }

    pub(crate) const fn heap_size(&self) -> usize {
        self.groups.capacity() * size_of::<SlotGroup>()
    }

    /// Grows with the ring of segments, keeping the states of `first..first + count`.
    pub(crate) fn grow_to(&mut self, size: usize, first: SeqNum, count: u32) {
        if size > self.size {
            self.grow_groups(size, first, count);
        }
    }

    #[cold]
    fn grow_groups(&mut self, size: usize, first: SeqNum, count: u32) {
        let mut wider = Self {
            groups: vec![SlotGroup::EMPTY; size.div_ceil(64)],
            size,
            ..*self
        };
        for sn in (0..count).map(|n| first.wrapping_add(n)) {
            let Some((from, old)) = self.group_of(sn) else {
                continue;
            };
            let from = *from;
            let Some((to, new)) = wider.group_of_mut(sn) else {
                continue;
            };
            let carry = |word: u64| if word & old == 0 { 0 } else { new };
            to.live |= carry(from.live);
            to.due |= carry(from.due);
            to.watched |= carry(from.watched);
            to.hinted |= carry(from.hinted);
            to.earliest = to.earliest.min(from.earliest);
        }
        *self = wider;
    }

    /// Frees the memory. Nothing may be in flight.
    pub(crate) fn release_memory(&mut self) {
        *self = Self::new();
    }

    pub(crate) fn is_live(&self, sn: SeqNum) -> bool {
        self.group_of(sn)
            .is_some_and(|(group, bit)| group.live & bit != 0)
    }

    /// Records that the segment was sent and times out at `deadline`.
    pub(crate) fn mark_sent(&mut self, sn: SeqNum, deadline: u64) {
        let Some((group, bit)) = self.group_of_mut(sn) else {
            return;
        };
        let fresh = group.live & bit == 0;
        group.live |= bit;
        group.watched |= bit;
        group.earliest = group.earliest.min(deadline);
        self.live += u32::from(fresh);
        self.earliest = self.earliest.min(deadline);
        self.clear_pending(sn);
    }

    /// Records an acknowledgement. Returns false if the segment was not in flight.
    pub(crate) fn mark_acked(&mut self, sn: SeqNum) -> bool {
        if !self.is_live(sn) {
            return false;
        }
        self.clear_pending(sn);
        if let Some((group, bit)) = self.group_of_mut(sn) {
            group.live &= !bit;
            group.watched &= !bit;
            if group.live == 0 {
                group.earliest = NEVER;
            }
        }
        self.live -= 1;
        if self.live == 0 {
            self.earliest = NEVER;
        }
        true
    }

    /// Has the next flush send the segment again.
    pub(crate) fn mark_due(&mut self, sn: SeqNum) {
        if let Some((group, bit)) = self.group_of_mut(sn) {
            let fresh = group.due & bit == 0;
            group.due |= bit;
            self.due += u32::from(fresh);
        }
    }

    /// Makes a segment wait for its time-out that was due without need.
    pub(crate) fn wait_for_timeout(&mut self, sn: SeqNum, deadline: u64) {
        self.clear_pending(sn);
        if let Some((group, _)) = self.group_of_mut(sn) {
            group.earliest = group.earliest.min(deadline);
            self.earliest = self.earliest.min(deadline);
        }
    }

    /// Makes an overtaken segment due as soon as nothing new is.
    pub(crate) fn mark_hinted(&mut self, sn: SeqNum) {
        if let Some((group, bit)) = self.group_of_mut(sn) {
            let fresh = group.hinted & bit == 0;
            group.hinted |= bit;
            self.hinted += u32::from(fresh);
        }
    }

    /// Stops counting for this segment until it is sent again.
    pub(crate) fn stop_watching(&mut self, sn: SeqNum) {
        if let Some((group, bit)) = self.group_of_mut(sn) {
            group.watched &= !bit;
        }
    }

    /// Makes every hinted segment due.
    pub(crate) fn make_hinted_due(&mut self) {
        if self.hinted == 0 {
            return;
        }
        for group in &mut self.groups {
            self.due += (group.hinted & !group.due).count_ones();
            group.due |= group.hinted;
            group.hinted = 0;
        }
        self.hinted = 0;
    }

    /// Makes every segment due whose time-out has passed. `deadline` returns that of a ring slot.
    pub(crate) fn mark_timed_out(&mut self, now: u64, deadline: impl Fn(usize) -> u64) {
        if now < self.earliest {
            return;
        }
        self.earliest = NEVER;
        for (at, group) in self.groups.iter_mut().enumerate() {
            if group.earliest <= now {
                group.earliest = NEVER;
                let mut bits = group.live & !group.due;
                while bits != 0 {
                    let bit = bits & bits.wrapping_neg();
                    let when = deadline(at * 64 + bits.trailing_zeros() as usize);
                    if when <= now {
                        group.due |= bit;
                        self.due += 1;
                    } else {
                        group.earliest = group.earliest.min(when);
                    }
                    bits ^= bit;
                }
            }
            self.earliest = self.earliest.min(group.earliest);
        }
    }

    /// Returns the first segment in `from..to` with the mark.
    pub(crate) fn find_marked(
        &self,
        mark: SegmentMark,
        from: SeqNum,
        to: SeqNum,
    ) -> Option<SeqNum> {
        let mut at = from;
        while at.is_before(to) {
            let index = self.slot_index(at);
            let group = self.groups.get(index / 64)?;
            let word = match mark {
                SegmentMark::Live => group.live,
                SegmentMark::Due => group.due,
                SegmentMark::Watched => group.watched,
            };
            let bits = word >> (index % 64);
            if bits != 0 {
                return Some(at.wrapping_add(bits.trailing_zeros())).filter(|sn| sn.is_before(to));
            }
            let step = self.size.min(64) - index % 64;
            at = at.wrapping_add(u32::try_from(step).ok()?);
        }
        None
    }

    /// Removes the segment from those to be sent.
    fn clear_pending(&mut self, sn: SeqNum) {
        if let Some((group, bit)) = self.group_of_mut(sn) {
            let due = u32::from(group.due & bit != 0);
            let hinted = u32::from(group.hinted & bit != 0);
            group.due &= !bit;
            group.hinted &= !bit;
            self.due -= due;
            self.hinted -= hinted;
        }
    }

    const fn slot_index(&self, sn: SeqNum) -> usize {
        (sn.0 as usize) & self.size.wrapping_sub(1)
    }

    fn group_of(&self, sn: SeqNum) -> Option<(&SlotGroup, u64)> {
        let index = self.slot_index(sn);
        Some((self.groups.get(index / 64)?, 1 << (index % 64)))
    }

    fn group_of_mut(&mut self, sn: SeqNum) -> Option<(&mut SlotGroup, u64)> {
        let index = self.slot_index(sn);
        Some((self.groups.get_mut(index / 64)?, 1 << (index % 64)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn time_outs_are_looked_for_where_they_are() {
        let first = SeqNum(u32::MAX - 70);
        let mut flight = InFlight::new();
        flight.grow_to(256, first, 0);
        let deadlines: Vec<u64> = (0..256).map(|slot| 1000 + slot * 7 % 256).collect();
        let at = |slot: usize| deadlines[slot];
        for n in 0..200 {
            let sn = first.wrapping_add(n);
            flight.mark_sent(sn, at(flight.slot_index(sn)));
        }
        let least = (0..200)
            .map(|n| at(flight.slot_index(first.wrapping_add(n))))
            .min()
            .unwrap();
        assert_eq!(flight.earliest_timeout(), least);
        flight.mark_timed_out(least - 1, |_| panic!("no deadline has passed"));
        flight.mark_timed_out(1100, at);
        for n in 0..200 {
            let sn = first.wrapping_add(n);
            let due = at(flight.slot_index(sn)) <= 1100;
            assert_eq!(
                flight
                    .find_marked(SegmentMark::Due, sn, sn.wrapping_add(1))
                    .is_some(),
                due
            );
        }
        assert!(flight.earliest_timeout() > 1100);
    }

    proptest! {
        #[test]
        fn equals_sets(start in any::<u32>(), steps in proptest::collection::vec((0u8..6, 0u32..90), 1..300)) {
            use std::collections::BTreeSet;
            let first = SeqNum(start);
            let mut flight = InFlight::new();
            let mut size = 8;
            flight.grow_to(size, first, 0);
            let [mut live, mut due, mut watched] = [const { BTreeSet::new() }; 3];
            for (what, n) in steps {
                let sn = first.wrapping_add(n);
                if n as usize >= size {
                    size = (n as usize + 1).next_power_of_two();
                    flight.grow_to(size, first, 90.min(flight.size as u32));
                }
                match what {
                    0 | 1 => { flight.mark_sent(sn, 5); live.insert(n); watched.insert(n); due.remove(&n); }
                    2 => { prop_assert_eq!(flight.mark_acked(sn), live.remove(&n)); watched.remove(&n); due.remove(&n); }
                    3 if live.contains(&n) => { flight.mark_due(sn); due.insert(n); }
                    4 => { flight.stop_watching(sn); watched.remove(&n); }
                    5 if live.contains(&n) => { flight.mark_hinted(sn); flight.make_hinted_due(); due.insert(n); }
                    _ => {}
                }
                prop_assert_eq!((flight.live_count(), flight.due_count()), (live.len() as u32, due.len() as u32));
                for (mark, set) in [(SegmentMark::Live, &live), (SegmentMark::Due, &due), (SegmentMark::Watched, &watched)] {
                    let (from, to) = (n / 2, n + 1);
                    let wanted = set.range(from..to).next().map(|n| first.wrapping_add(*n));
                    prop_assert_eq!(flight.find_marked(mark, first.wrapping_add(from), first.wrapping_add(to)), wanted);
                }
            }
        }
    }
}
