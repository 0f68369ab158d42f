//! A sliding window over packet numbers that detects replays.

use alloc::{vec, vec::Vec};

use crate::narrow_int;

/// Width of the window, in packets. Peers use 8128; batched I/O reorders over long distances.
const BITS: u64 = 8192;
const WORDS: usize = (BITS / 64) as usize;

/// A filter that accepts each packet number once, and none that is 8,128 or more behind the highest.
///
/// The arithmetic is correct for every 64-bit number. [`would_accept`](Self::would_accept) only reads,
/// [`accept`](Self::accept) writes: mark only what has been authenticated.
///
/// # Examples
///
/// ```
/// use adit_wire::SlidingWindow;
///
/// let mut window = SlidingWindow::default();
/// assert!(window.accept(7));
/// assert!(window.accept(5), "late, but new");
/// assert!(!window.accept(7), "a replay");
/// assert!(window.accept(1_000_000));
/// assert!(!window.would_accept(6), "too far behind");
/// ```
#[derive(Debug, Clone, Default)]
pub struct SlidingWindow {
    /// The highest number seen plus one; 0 before the first.
    next: u128,
    /// The words from [`first`](Self::first) on, each at its index modulo the length, which is a power of
    /// two. A window of few numbers is short: most windows see only a handful.
    ring: Vec<u64>,
    /// The first word in the ring, until the ring has its full length. Nothing before it was seen.
    first: u64,
}

impl SlidingWindow {
    /// Maximum distance of a packet behind the highest number: one word less than the ring, since the word
    /// that is being filled is cleared as a whole.
    pub const WIDTH: u64 = BITS - 64;

    /// Creates a window that accepts only numbers above `highest`.
    #[must_use]
    pub fn starting_after(highest: u64) -> Self {
        let mut window = Self {
            next: u128::from(highest) + 1,
            ring: vec![u64::MAX; WORDS],
            first: 0,
        };
        // The bits above belong to numbers that have not arrived.
        let bit = Self::bit_of(highest);
        if let Some(word) = window.word_at_mut(highest / 64) {
            *word = bit | (bit - 1);
        }
        window
    }

    /// Returns the highest number seen; 0 before the first.
    #[must_use]
    pub fn highest(&self) -> u64 {
        narrow_int(self.next.saturating_sub(1))
    }

    /// Returns true if `id` would be accepted.
    #[must_use]
    pub fn would_accept(&self, id: u64) -> bool {
        let id128 = u128::from(id);
        if id128 >= self.next {
            return true;
        }
        if self.next - id128 > u128::from(Self::WIDTH) {
            return false;
        }
        // Numbers outside the ring have not been seen.
        !self.has_slot(id / 64) || self.word_at(id / 64) & Self::bit_of(id) == 0
    }

    /// Accepts `id` if it is new; returns false if it was seen or is too old.
    pub fn accept(&mut self, id: u64) -> bool {
        if !self.would_accept(id) {
            return false;
        }
        if !self.has_slot(id / 64) {
            self.grow_ring(id / 64);
            debug_assert!(self.has_slot(id / 64), "a grown ring has a slot");
        }
        let id128 = u128::from(id);
        if id128 >= self.next {
            if self.is_full() {
                self.clear_up_to(id / 64);
            }
            self.next = id128 + 1;
        }
        if let Some(word) = self.word_at_mut(id / 64) {
            *word |= Self::bit_of(id);
        }
        true
    }

    /// Clears every word after the last one in use, up to and including `new`, which comes into use.
    fn clear_up_to(&mut self, new: u64) {
        let last = self.last_word();
        let steps = new.saturating_sub(last).min(WORDS as u64);
        for back in 0..steps {
            if let Some(word) = self.word_at_mut(new - back) {
                *word = 0;
            }
        }
    }

    /// Makes room for `new` beside the words in use that still matter.
    fn grow_ring(&mut self, new: u64) {
        let (first, last) = match self.ring.is_empty() {
            true => (new, new),
            false => (self.first.min(new), self.last_word().max(new)),
        };
        let words = (last - first).saturating_add(1).min(WORDS as u64);
        let words = words.next_power_of_two();
        let mut grown = Self {
            next: self.next,
            ring: vec![0; narrow_int(words)],
            first,
        };
        let kept = self.first.max(last.saturating_sub(words - 1));
        for word in kept..=self.last_word() {
            if let (true, Some(place)) = (self.has_slot(word), grown.word_at_mut(word)) {
                *place = self.word_at(word);
            }
        }
        *self = grown;
    }

    /// Returns the index of the word with the highest number.
    fn last_word(&self) -> u64 {
        self.highest() / 64
    }

    fn is_full(&self) -> bool {
        self.ring.len() == WORDS
    }

    /// Returns true if the ring has a slot for a word.
    fn has_slot(&self, word: u64) -> bool {
        self.is_full()
            || word
                .checked_sub(self.first)
                .is_some_and(|n| n < self.ring.len() as u64)
    }

    fn word_at(&self, word: u64) -> u64 {
        self.ring
            .get(self.slot_of(word))
            .copied()
            .unwrap_or_default()
    }

    fn word_at_mut(&mut self, word: u64) -> Option<&mut u64> {
        let place = self.slot_of(word);
        self.ring.get_mut(place)
    }

    /// Returns the slot of a word. The length is a power of two of at most [`WORDS`].
    fn slot_of(&self, word: u64) -> usize {
        debug_assert!(
            !self.ring.is_empty(),
            "the ring must have been grown for this word"
        );
        (word & (self.ring.len() as u64).wrapping_sub(1)) as usize
    }

    const fn bit_of(id: u64) -> u64 {
        1 << (id % 64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn ends_of_the_number_range() {
        let mut w = SlidingWindow::default();
        assert!(w.accept(u64::MAX - 1) && w.accept(u64::MAX));
        assert!(!w.accept(u64::MAX) && !w.accept(u64::MAX - 1) && !w.accept(0));
        assert!(w.accept(u64::MAX - 2));
        let mut w = SlidingWindow::default();
        assert!(w.accept(0) && !w.accept(0) && w.accept(1));
    }

    #[test]
    fn keeps_what_peers_keep() {
        let mut w = SlidingWindow::default();
        assert!(w.accept(8128));
        assert!(w.accept(1) && !w.accept(1), "8127 behind is inside");
        assert!(!w.accept(0), "8128 behind the highest is outside");
    }

    /// Checks all numbers in the window after a jump: a word that is cleared without need accepts numbers
    /// again, a word that is not cleared refuses new ones.
    #[test]
    fn after_a_jump_each_number_is_judged_as_a_set_would() {
        for words in 1..=WORDS as u64 + 2 {
            for beside in [0, 1, 63] {
                // Every slot of the ring is in use before the jump.
                let base = 3 * BITS + 17;
                let mut w = SlidingWindow::default();
                (0..=base).for_each(|id| assert!(w.accept(id)));
                let jump = base + 64 * words + beside;
                assert!(w.accept(jump));
                for id in jump - BITS - 64..jump + 70 {
                    let fresh =
                        id > jump || (id > base && id != jump && jump - id < SlidingWindow::WIDTH);
                    assert_eq!(w.would_accept(id), fresh, "{id}, {base} and then {jump}");
                }
                // Each number is accepted once.
                for id in base + 1..jump {
                    let fresh = jump - id < SlidingWindow::WIDTH;
                    assert_eq!((w.accept(id), w.accept(id)), (fresh, false), "{id}");
                }
            }
        }
    }

    #[test]
    fn one_that_begins_behind_a_number() {
        for highest in [0, 1, 63, 64, 8191, 8192, 123_456, u64::MAX - 70] {
            let mut w = SlidingWindow::starting_after(highest);
            assert_eq!(w.highest(), highest);
            assert!((highest.saturating_sub(9000)..=highest).all(|id| !w.would_accept(id)));
            assert!(
                (highest + 1..highest + 70)
                    .rev()
                    .all(|id| w.accept(id) && !w.accept(id))
            );
            assert!(!w.would_accept(highest) && w.highest() == highest + 69);
        }
        assert!(!SlidingWindow::starting_after(u64::MAX).would_accept(u64::MAX));
    }

    #[test]
    fn a_window_of_few_numbers_is_short() {
        let mut w = SlidingWindow::default();
        assert!((1_000_000..1_000_100).all(|id| w.accept(id)));
        assert!(w.ring.len() <= 4, "{}", w.ring.len());
        assert!(
            w.accept(999_000) && !w.accept(999_000) && !w.accept(1_000_050) && w.accept(998_000)
        );
        assert!(w.ring.len() < WORDS);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn equals_a_set(start in any::<u64>(), moves in proptest::collection::vec((0u64..20_000, any::<bool>()), 1..400)) {
            let mut w = SlidingWindow::default();
            let mut seen = BTreeSet::new();
            let mut high: Option<u64> = None;
            let mut at = start;
            for (step, up) in moves {
                at = if up { at.saturating_add(step / 4) } else { at.saturating_sub(step) };
                let fresh = high.is_none_or(|h| at > h || h - at < SlidingWindow::WIDTH) && !seen.contains(&at);
                prop_assert_eq!(w.would_accept(at), fresh);
                prop_assert_eq!(w.accept(at), fresh);
                if fresh { seen.insert(at); high = Some(high.map_or(at, |h| h.max(at))); }
            }
        }
    }
}
