//! Bit sets of the segments that are in flight, due or overtaken, in groups of 64.
//!
//! A flush compares the time with the earliest time-out of the window, and looks into a group only
//! when that group's own earliest time-out has passed. An acknowledgement clears bits.

use crate::seq::Sn;

/// No time-out is armed.
pub(crate) const NEVER: u64 = u64::MAX;

/// The states of 64 adjacent slots of the ring.
#[derive(Debug, Clone, Copy)]
struct Group {
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

impl Group {
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
pub(crate) struct Flight {
    groups: Vec<Group>,
    /// Number of slots in the ring, a power of two or 0.
    size: usize,
    live: u32,
    due: u32,
    hinted: u32,
    earliest: u64,
}

/// A state to search for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Sent and not acknowledged.
    Live,
    /// To be sent again.
    Due,
    /// To be counted when overtaken.
    Watched,
}

impl Flight {
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
    pub(crate) const fn live(&self) -> u32 {
        self.live
    }

    /// Returns the number of segments to be sent again.
    pub(crate) const fn due(&self) -> u32 {
        self.due
    }

    /// Returns the number of segments that a flush with nothing new sends again.
    pub(crate) const fn hinted(&self) -> u32 {
        self.hinted
    }

    /// Returns a lower bound of all time-outs, in milliseconds; [`NEVER`] if nothing is in flight.
    pub(crate) const fn earliest(&self) -> u64 {
        self.earliest
    }

    pub(crate) const fn heap(&self) -> usize {
        self.groups.capacity() * size_of::<Group>()
    }

    /// Grows with the ring of segments, keeping the states of `first..first + count`.
    pub(crate) fn grow(&mut self, size: usize, first: Sn, count: u32) {
        if size <= self.size {
            return;
        }
        let mut wider = Self {
            groups: vec![Group::EMPTY; size.div_ceil(64)],
            size,
            ..*self
        };
        for sn in (0..count).map(|n| first.plus(n)) {
            let Some((from, old)) = self.group(sn) else {
                continue;
            };
            let from = *from;
            let Some((to, new)) = wider.group_mut(sn) else {
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
    pub(crate) fn release(&mut self) {
        *self = Self::new();
    }

    pub(crate) fn is_live(&self, sn: Sn) -> bool {
        self.group(sn)
            .is_some_and(|(group, bit)| group.live & bit != 0)
    }

    /// Records that the segment was sent and times out at `deadline`.
    pub(crate) fn sent(&mut self, sn: Sn, deadline: u64) {
        let Some((group, bit)) = self.group_mut(sn) else {
            return;
        };
        let fresh = group.live & bit == 0;
        group.live |= bit;
        group.watched |= bit;
        group.earliest = group.earliest.min(deadline);
        self.live += u32::from(fresh);
        self.earliest = self.earliest.min(deadline);
        self.settle(sn);
    }

    /// Records an acknowledgement. Returns false if the segment was not in flight.
    pub(crate) fn acked(&mut self, sn: Sn) -> bool {
        if !self.is_live(sn) {
            return false;
        }
        self.settle(sn);
        if let Some((group, bit)) = self.group_mut(sn) {
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
    pub(crate) fn make_due(&mut self, sn: Sn) {
        if let Some((group, bit)) = self.group_mut(sn) {
            let fresh = group.due & bit == 0;
            group.due |= bit;
            self.due += u32::from(fresh);
        }
    }

    /// Makes a segment wait for its time-out that was due without need.
    pub(crate) fn wait(&mut self, sn: Sn, deadline: u64) {
        self.settle(sn);
        if let Some((group, _)) = self.group_mut(sn) {
            group.earliest = group.earliest.min(deadline);
            self.earliest = self.earliest.min(deadline);
        }
    }

    /// Makes an overtaken segment due as soon as nothing new is.
    pub(crate) fn hint(&mut self, sn: Sn) {
        if let Some((group, bit)) = self.group_mut(sn) {
            let fresh = group.hinted & bit == 0;
            group.hinted |= bit;
            self.hinted += u32::from(fresh);
        }
    }

    /// Stops counting for this segment until it is sent again.
    pub(crate) fn unwatch(&mut self, sn: Sn) {
        if let Some((group, bit)) = self.group_mut(sn) {
            group.watched &= !bit;
        }
    }

    /// Makes every hinted segment due.
    pub(crate) fn hinted_are_due(&mut self) {
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
    pub(crate) fn time_out(&mut self, now: u64, deadline: impl Fn(usize) -> u64) {
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
    pub(crate) fn find(&self, mark: Mark, from: Sn, to: Sn) -> Option<Sn> {
        let mut at = from;
        while at.before(to) {
            let index = self.index(at);
            let group = self.groups.get(index / 64)?;
            let word = match mark {
                Mark::Live => group.live,
                Mark::Due => group.due,
                Mark::Watched => group.watched,
            };
            let bits = word >> (index % 64);
            if bits != 0 {
                return Some(at.plus(bits.trailing_zeros())).filter(|sn| sn.before(to));
            }
            let step = self.size.min(64) - index % 64;
            at = at.plus(u32::try_from(step).ok()?);
        }
        None
    }

    /// Removes the segment from those to be sent.
    fn settle(&mut self, sn: Sn) {
        if let Some((group, bit)) = self.group_mut(sn) {
            let due = u32::from(group.due & bit != 0);
            let hinted = u32::from(group.hinted & bit != 0);
            group.due &= !bit;
            group.hinted &= !bit;
            self.due -= due;
            self.hinted -= hinted;
        }
    }

    const fn index(&self, sn: Sn) -> usize {
        (sn.0 as usize) & self.size.wrapping_sub(1)
    }

    fn group(&self, sn: Sn) -> Option<(&Group, u64)> {
        let index = self.index(sn);
        Some((self.groups.get(index / 64)?, 1 << (index % 64)))
    }

    fn group_mut(&mut self, sn: Sn) -> Option<(&mut Group, u64)> {
        let index = self.index(sn);
        Some((self.groups.get_mut(index / 64)?, 1 << (index % 64)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn time_outs_are_looked_for_where_they_are() {
        let first = Sn(u32::MAX - 70);
        let mut flight = Flight::new();
        flight.grow(256, first, 0);
        let deadlines: Vec<u64> = (0..256).map(|slot| 1000 + slot * 7 % 256).collect();
        let at = |slot: usize| deadlines[slot];
        for n in 0..200 {
            let sn = first.plus(n);
            flight.sent(sn, at(flight.index(sn)));
        }
        let least = (0..200)
            .map(|n| at(flight.index(first.plus(n))))
            .min()
            .unwrap();
        assert_eq!(flight.earliest(), least);
        flight.time_out(least - 1, |_| panic!("no deadline has passed"));
        flight.time_out(1100, at);
        for n in 0..200 {
            let sn = first.plus(n);
            let due = at(flight.index(sn)) <= 1100;
            assert_eq!(flight.find(Mark::Due, sn, sn.plus(1)).is_some(), due);
        }
        assert!(flight.earliest() > 1100);
    }

    proptest! {
        #[test]
        fn equals_sets(start in any::<u32>(), steps in proptest::collection::vec((0u8..6, 0u32..90), 1..300)) {
            use std::collections::BTreeSet;
            let first = Sn(start);
            let mut flight = Flight::new();
            let mut size = 8;
            flight.grow(size, first, 0);
            let [mut live, mut due, mut watched] = [const { BTreeSet::new() }; 3];
            for (what, n) in steps {
                let sn = first.plus(n);
                if n as usize >= size {
                    size = (n as usize + 1).next_power_of_two();
                    flight.grow(size, first, 90.min(flight.size as u32));
                }
                match what {
                    0 | 1 => { flight.sent(sn, 5); live.insert(n); watched.insert(n); due.remove(&n); }
                    2 => { prop_assert_eq!(flight.acked(sn), live.remove(&n)); watched.remove(&n); due.remove(&n); }
                    3 if live.contains(&n) => { flight.make_due(sn); due.insert(n); }
                    4 => { flight.unwatch(sn); watched.remove(&n); }
                    5 if live.contains(&n) => { flight.hint(sn); flight.hinted_are_due(); due.insert(n); }
                    _ => {}
                }
                prop_assert_eq!((flight.live(), flight.due()), (live.len() as u32, due.len() as u32));
                for (mark, set) in [(Mark::Live, &live), (Mark::Due, &due), (Mark::Watched, &watched)] {
                    let (from, to) = (n / 2, n + 1);
                    let wanted = set.range(from..to).next().map(|n| first.plus(*n));
                    prop_assert_eq!(flight.find(mark, first.plus(from), first.plus(to)), wanted);
                }
            }
        }
    }
}
