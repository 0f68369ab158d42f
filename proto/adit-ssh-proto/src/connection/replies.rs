//! Answers that must go out in the order of the requests, but may be known in any.

use std::collections::VecDeque;

use adit_wire::u64_from;

/// What is owed: each a place for its answer.
#[derive(Debug)]
pub(super) struct InOrder<T> {
    /// The sequence number of the oldest.
    first: u64,
    owed: VecDeque<Option<T>>,
}

impl<T> Default for InOrder<T> {
    fn default() -> Self {
        Self {
            first: 0,
            owed: VecDeque::new(),
        }
    }
}

impl<T> InOrder<T> {
    /// One more is owed; gives its sequence number.
    pub(super) fn owe(&mut self) -> u64 {
        self.owed.push_back(None);
        self.first.saturating_add(u64_from(self.owed.len() - 1))
    }

    /// The answer is known. One that is not owed is dropped.
    pub(super) fn answer(&mut self, sequence: u64, answer: T) {
        let place = sequence.checked_sub(self.first);
        let place = place.and_then(|place| usize::try_from(place).ok());
        if let Some(place) = place.and_then(|place| self.owed.get_mut(place)) {
            *place = Some(answer);
        }
    }

    /// The oldest, if its answer is known.
    pub(super) fn pop(&mut self) -> Option<T> {
        let answer = self.owed.front_mut()?.take()?;
        self.owed.pop_front();
        self.first = self.first.saturating_add(1);
        Some(answer)
    }

    /// How many are owed.
    pub(super) fn len(&self) -> usize {
        self.owed.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_in_the_order_of_the_requests() {
        let mut replies = InOrder::default();
        let [a, b, c] = [replies.owe(), replies.owe(), replies.owe()];
        replies.answer(b, 'b');
        assert_eq!(replies.pop(), None);
        replies.answer(a, 'a');
        replies.answer(99, 'z');
        assert_eq!([replies.pop(), replies.pop()], [Some('a'), Some('b')]);
        assert_eq!((replies.pop(), replies.len()), (None, 1));
        replies.answer(a, 'x');
        replies.answer(c, 'c');
        assert_eq!((replies.pop(), replies.len()), (Some('c'), 0));
        assert_eq!(replies.owe(), c + 1);
    }
}
