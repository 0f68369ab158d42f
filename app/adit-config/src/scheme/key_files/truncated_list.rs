//! A list that keeps its first items: a long file can have a million errors.

/// Maximum number of items that are kept.
const KEPT: usize = 16;

/// The first items of a list, and the number of the others.
#[derive(Debug)]
pub(crate) struct TruncatedList<T> {
    kept: Vec<T>,
    more: usize,
}

impl<T> TruncatedList<T> {
    /// Creates an empty list.
    pub(crate) const fn new() -> Self {
        Self {
            kept: Vec::new(),
            more: 0,
        }
    }

    /// Adds an item, or counts it if the list is full.
    pub(crate) fn push(&mut self, item: T) {
        if self.kept.len() < KEPT {
            self.kept.push(item);
        } else {
            self.more += 1;
        }
    }

    /// True if there are no items.
    pub(crate) const fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Returns the first items and the number of the others.
    pub(crate) fn into_parts(self) -> (Vec<T>, usize) {
        (self.kept, self.more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_are_kept_and_the_others_counted() {
        let mut list = TruncatedList::new();
        assert!(list.is_empty());
        for i in 0..KEPT + 3 {
            list.push(i);
        }
        let (kept, more) = list.into_parts();
        assert_eq!(
            (kept.len(), kept.last(), more),
            (KEPT, Some(&(KEPT - 1)), 3)
        );
    }
}
