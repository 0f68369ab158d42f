//! The connection ids of one client.

use adit_wire::{EndOfInput, Reader, usize_from};

/// Number of ids below a client's first id that may still arrive: connections overtake each other.
const BEHIND: u32 = 64;

/// Maximum distance that a client may jump ahead of the oldest open id.
const AHEAD: u32 = 0x4000;

const BITS: u32 = 0x1000;
const WORDS: usize = (BITS / 64) as usize;

/// Accepts each id once, and none below the front.
///
/// Other implementations restart with any id once a client was idle for some minutes. Here that
/// allows a jump ahead, but never a step back: no client's ids decrease.
pub(super) struct IdWindow {
    front: u32,
    /// The used ids from `front` on, at their index modulo [`BITS`].
    used: Box<[u64; WORDS]>,
}

impl IdWindow {
    /// Size of a window in snapshots.
    pub(super) const BYTES: usize = 4 + WORDS * 8;

    /// Creates the window of a client whose first id is `id`.
    pub(super) fn new(id: u32) -> Self {
        let mut window = Self {
            front: id.saturating_sub(BEHIND),
            used: Box::new([0; WORDS]),
        };
        window.set_used(id, true);
        window
    }

    /// Inserts `id`; returns true if it is new. `idle` is true if the client was idle for long.
    pub(super) fn insert_id(&mut self, id: u32, idle: bool) -> bool {
        let Some(ahead) = id.checked_sub(self.front) else {
            return false;
        };
        if (ahead > AHEAD && !idle) || (ahead < BITS && self.is_used(id)) {
            return false;
        }
        if ahead >= BITS {
            self.slide_to(id - BITS + 1);
        }
        self.set_used(id, true);
        self.advance();
        true
    }

    /// Moves the front behind the used ids that follow it.
    fn advance(&mut self) {
        while self.is_used(self.front) && self.front < u32::MAX {
            self.set_used(self.front, false);
            self.front += 1;
        }
    }

    /// Adds the ids that another window of the same client has accepted. Ids below the higher one of the two fronts
    /// are refused from now on.
    pub(super) fn merge(&mut self, other: &Self) {
        if other.front > self.front {
            self.slide_to(other.front);
        }
        for ahead in self.front - other.front..BITS {
            // Ends at the highest id.
            let Some(id) = other.front.checked_add(ahead) else {
                break;
            };
            if other.is_used(id) {
                self.set_used(id, true);
            }
        }
        self.advance();
    }

    /// Appends the window in [`Self::BYTES`] bytes.
    pub(super) fn write_to(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.front.to_be_bytes());
        for word in &*self.used {
            out.extend_from_slice(&word.to_be_bytes());
        }
    }

    /// Reads a window. All bytes are one.
    pub(super) fn read_from(r: &mut Reader<'_>) -> Result<Self, EndOfInput> {
        let front = u32::from_be_bytes(r.array()?);
        let mut used = Box::new([0; WORDS]);
        for word in used.iter_mut() {
            *word = r.u64()?;
        }
        let mut window = Self { front, used };
        window.advance();
        Ok(window)
    }

    fn slide_to(&mut self, front: u32) {
        if front - self.front >= BITS {
            self.used.fill(0);
        } else {
            for id in self.front..front {
                self.set_used(id, false);
            }
        }
        self.front = front;
    }

    fn is_used(&self, id: u32) -> bool {
        let (word, bit) = bit_position(id);
        self.used.get(word).is_some_and(|w| w & bit != 0)
    }

    fn set_used(&mut self, id: u32, used: bool) {
        let (word, bit) = bit_position(id);
        if let Some(w) = self.used.get_mut(word) {
            *w = if used { *w | bit } else { *w & !bit };
        }
    }
}

fn bit_position(id: u32) -> (usize, u64) {
    let id = id % BITS;
    (usize_from(id / 64), 1 << (id % 64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn ends_of_the_range() {
        let mut w = IdWindow::new(0);
        assert!(!w.insert_id(0, true) && w.insert_id(1, false));
        let mut w = IdWindow::new(u32::MAX);
        assert!(!w.insert_id(u32::MAX, true) && w.insert_id(u32::MAX - 1, false));
        assert!(!w.insert_id(u32::MAX - 1, false));
        let mut w = IdWindow::new(0);
        assert!(!w.insert_id(u32::MAX, false) && w.insert_id(u32::MAX, true));
        assert!(!w.insert_id(u32::MAX, true) && !w.insert_id(5, true));
    }

    #[test]
    fn steps_back_and_jumps() {
        let mut w = IdWindow::new(1000);
        assert!(w.insert_id(936, false) && !w.insert_id(935, true));
        assert!(!w.insert_id(937 + AHEAD + 1, false) && w.insert_id(937 + AHEAD, false));
        assert!(
            !w.insert_id(1001, false),
            "ids below the window are refused"
        );
    }

    proptest! {
        /// A window and its copy that go on apart and are merged refuse all that one of them has accepted.
        #[test]
        fn merged_windows_refuse_what_either_has_seen(
            start in 0u32..10_000,
            moves in proptest::collection::vec((-3000i64..6000, any::<bool>()), 1..200),
        ) {
            let mut one = IdWindow::new(start);
            let mut bytes = Vec::new();
            one.write_to(&mut bytes);
            prop_assert_eq!(bytes.len(), IdWindow::BYTES);
            let mut other = IdWindow::read_from(&mut Reader::new(&bytes)).unwrap();
            let (mut back, mut taken) = (start, BTreeSet::from([start]));
            for (step, which) in moves {
                let id = u32::try_from((i64::from(back) + step).max(0)).unwrap();
                let window = if which { &mut one } else { &mut other };
                if window.insert_id(id, false) {
                    taken.insert(id);
                    back = back.max(id);
                }
            }
            one.merge(&other);
            for id in taken {
                prop_assert!(!one.insert_id(id, true), "{id}");
            }
            prop_assert!(one.insert_id(back + 1, true));
        }

        #[test]
        fn equals_a_set(start in 0u32..100_000, moves in proptest::collection::vec((-5000i64..9000, any::<bool>()), 1..300)) {
            let mut w = IdWindow::new(start);
            let (mut front, mut back) = (start.saturating_sub(64), start + 1);
            let mut set = BTreeSet::from([start]);
            for (step, idle) in moves {
                let id = u32::try_from((i64::from(back) + step).max(0)).unwrap();
                let fresh = id >= front && (idle || id <= front + AHEAD) && !set.contains(&id);
                prop_assert_eq!(w.insert_id(id, idle), fresh);
                if fresh {
                    back = back.max(id + 1);
                    set.insert(id);
                    while set.contains(&front) || front + 0x1000 < back {
                        set.remove(&front);
                        front += 1;
                    }
                }
            }
        }
    }
}
