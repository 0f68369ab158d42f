//! A sliding window over packet numbers, against replays.

/// Width of the window in packets. Peers use 8128; batched I/O reorders widely.
const BITS: u64 = 8192;
const WORDS: usize = (BITS / 64) as usize;

/// Accepts each packet number once, and none further than 8,128 behind the highest.
///
/// Arithmetic holds for every 64-bit number. `check` reads, `mark` writes: mark only what has
/// been authenticated.
#[derive(Debug, Clone)]
pub struct SlidingWindow {
    /// The highest number seen plus one; 0 before the first.
    next: u128,
    ring: [u64; WORDS],
}

impl Default for SlidingWindow {
    fn default() -> Self {
        Self {
            next: 0,
            ring: [0; WORDS],
        }
    }
}

impl SlidingWindow {
    /// How far behind the highest number a packet may come: one word less than the ring, since
    /// the word that is being filled is cleared as a whole.
    pub const WIDTH: u64 = BITS - 64;

    /// Whether `id` would be accepted.
    #[must_use]
    pub fn check(&self, id: u64) -> bool {
        let id128 = u128::from(id);
        if id128 >= self.next {
            return true;
        }
        if self.next - id128 > u128::from(Self::WIDTH) {
            return false;
        }
        let (word, bit) = Self::place(id);
        self.ring.get(word).is_some_and(|w| w & bit == 0)
    }

    /// Accepts `id` if it is new; false if it was seen or is too old.
    pub fn mark(&mut self, id: u64) -> bool {
        if !self.check(id) {
            return false;
        }
        let id128 = u128::from(id);
        if id128 >= self.next {
            // Clear every word between the last one in use and the one of `id`.
            let last_word = if self.next == 0 {
                None
            } else {
                Some((self.next - 1) / 64)
            };
            let new_word = id128 / 64;
            let steps =
                last_word.map_or(WORDS as u128, |last| (new_word - last).min(WORDS as u128));
            for back in 0..steps {
                let word = ((new_word - back.min(new_word)) % WORDS as u128) as usize;
                if let Some(w) = self.ring.get_mut(word) {
                    *w = 0;
                }
            }
            self.next = id128 + 1;
        }
        let (word, bit) = Self::place(id);
        if let Some(w) = self.ring.get_mut(word) {
            *w |= bit;
        }
        true
    }

    const fn place(id: u64) -> (usize, u64) {
        (((id / 64) % WORDS as u64) as usize, 1 << (id % 64))
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
        assert!(w.mark(u64::MAX - 1) && w.mark(u64::MAX));
        assert!(!w.mark(u64::MAX) && !w.mark(u64::MAX - 1) && !w.mark(0));
        assert!(w.mark(u64::MAX - 2));
        let mut w = SlidingWindow::default();
        assert!(w.mark(0) && !w.mark(0) && w.mark(1));
    }

    #[test]
    fn keeps_what_peers_keep() {
        let mut w = SlidingWindow::default();
        assert!(w.mark(8128));
        assert!(w.mark(1) && !w.mark(1), "8127 behind is inside");
        assert!(!w.mark(0), "8128 behind the highest is outside");
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
                prop_assert_eq!(w.check(at), fresh);
                prop_assert_eq!(w.mark(at), fresh);
                if fresh { seen.insert(at); high = Some(high.map_or(at, |h| h.max(at))); }
            }
        }
    }
}
