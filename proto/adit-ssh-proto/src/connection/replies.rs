//! Answers that must be sent in the order of the requests, but may become known in any order.

use std::collections::VecDeque;

use adit_wire::u64_from;

/// Queue of owed answers.
#[derive(Debug)]
pub(super) struct InOrder<T> {
    /// Sequence number of the oldest owed answer.
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
    /// Adds an owed answer and returns its sequence number.
    pub(super) fn owe(&mut self) -> u64 {
        self.owed.push_back(None);
        self.first.saturating_add(u64_from(self.owed.len() - 1))
    }

    /// Sets an answer. One that is not owed is dropped.
    pub(super) fn answer(&mut self, sequence: u64, answer: T) {
        let place = sequence.checked_sub(self.first);
        let place = place.and_then(|place| usize::try_from(place).ok());
        if let Some(place) = place.and_then(|place| self.owed.get_mut(place)) {
            *place = Some(answer);
        }
    }

    /// Removes and returns the oldest answer, if it is known.
    pub(super) fn pop(&mut self) -> Option<T> {
        let answer = self.owed.front_mut()?.take()?;
        self.owed.pop_front();
        self.first = self.first.saturating_add(1);
        Some(answer)
    }

    /// Returns the number of owed answers.
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
