//! The order in which the slots of a table were used.

/// A number that is not a slot's.
const NONE: u32 = u32::MAX;

/// A list of slots, the latest used one first; all operations take constant time.
#[derive(Debug, Clone)]
pub(crate) struct LruOrder {
    links: Vec<Links>,
    first: u32,
    last: u32,
}

#[derive(Debug, Clone, Copy)]
struct Links {
    /// The slot that was used after this one.
    newer: u32,
    /// The slot that was used before this one.
    older: u32,
}

impl Default for LruOrder {
    fn default() -> Self {
        Self {
            links: Vec::new(),
            first: NONE,
            last: NONE,
        }
    }
}

impl LruOrder {
    /// Adds a slot that is not in the list, as the latest used one. Slots are numbered from 0 without gaps.
    pub(crate) fn insert(&mut self, slot: u32) {
        let at = adit_wire::usize_from(slot);
        if self.links.len() <= at {
            let empty = Links {
                newer: NONE,
                older: NONE,
            };
            self.links.resize(at + 1, empty);
        }
        self.set(slot, NONE, self.first);
        match self.first {
            NONE => self.last = slot,
            first => self.set_newer(first, slot),
        }
        self.first = slot;
    }

    /// Removes a slot from the list.
    pub(crate) fn remove(&mut self, slot: u32) {
        let Some(&Links { newer, older }) = self.links.get(adit_wire::usize_from(slot)) else {
            return;
        };
        match newer {
            NONE => self.first = older,
            newer => self.set_older(newer, older),
        }
        match older {
            NONE => self.last = newer,
            older => self.set_newer(older, newer),
        }
    }

    /// Makes a slot of the list the latest used one.
    pub(crate) fn touch(&mut self, slot: u32) {
        if self.first != slot {
            self.remove(slot);
            self.insert(slot);
        }
    }

    /// Returns the slot that has not been used for the longest time.
    pub(crate) fn oldest(&self) -> Option<u32> {
        (self.last != NONE).then_some(self.last)
    }

    /// Returns all slots, the least recently used one first.
    #[cfg(test)]
    fn oldest_first(&self) -> impl Iterator<Item = u32> {
        std::iter::successors(self.oldest(), |slot| {
            let links = self.links.get(adit_wire::usize_from(*slot))?;
            (links.newer != NONE).then_some(links.newer)
        })
    }

    fn set(&mut self, slot: u32, newer: u32, older: u32) {
        if let Some(links) = self.links.get_mut(adit_wire::usize_from(slot)) {
            *links = Links { newer, older };
        }
    }

    fn set_newer(&mut self, slot: u32, newer: u32) {
        if let Some(links) = self.links.get_mut(adit_wire::usize_from(slot)) {
            links.newer = newer;
        }
    }

    fn set_older(&mut self, slot: u32, older: u32) {
        if let Some(links) = self.links.get_mut(adit_wire::usize_from(slot)) {
            links.older = older;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_use() {
        let mut order = LruOrder::default();
        let list = |order: &LruOrder| order.oldest_first().collect::<Vec<_>>();
        assert_eq!(order.oldest(), None);
        for slot in 0..4 {
            order.insert(slot);
        }
        assert_eq!(list(&order), [0, 1, 2, 3]);
        order.touch(0);
        order.touch(2);
        order.touch(2);
        assert_eq!(list(&order), [1, 3, 0, 2]);
        order.remove(3);
        order.remove(1);
        order.remove(2);
        assert_eq!(list(&order), [0]);
        order.remove(0);
        assert_eq!(list(&order), [0; 0]);
        order.insert(3);
        assert_eq!(list(&order), [3]);
    }
}
