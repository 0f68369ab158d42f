//! Answers that must be sent in the order of the requests, but may become known in any order.

use std::collections::VecDeque;

use adit_wire::u64_from;

/// Queue of owed answers.
#[derive(Debug)]
pub(super) struct OrderedReplies<T> {
    /// Sequence number of the oldest owed answer.
    first: u64,
    owed: VecDeque<Option<T>>,
}

impl<T> Default for OrderedReplies<T> {
    fn default() -> Self {
        Self {
            first: 0,
            owed: VecDeque::new(),
        }
    }
}

impl<T> OrderedReplies<T> {
    /// Adds an owed answer and returns its sequence number.
    pub(super) fn add_owed(&mut self) -> u64 {
        self.owed.push_back(None);
        self.first.saturating_add(u64_from(self.owed.len() - 1))
    }

    /// Sets an answer. One that is not owed is dropped.
    pub(super) fn set_answer(&mut self, sequence: u64, answer: T) {
        let place = sequence.checked_sub(self.first);
        let place = place.and_then(|place| usize::try_from(place).ok());
        if let Some(place) = place.and_then(|place| self.owed.get_mut(place)) {
            *place = Some(answer);
        }
    }

    /// Removes and returns the oldest answer, if it is known.
    pub(super) fn pop_ready(&mut self) -> Option<T> {
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
        let mut replies = OrderedReplies::default();
        let [a, b, c] = [replies.add_owed(), replies.add_owed(), replies.add_owed()];
        replies.set_answer(b, 'b');
        assert_eq!(replies.pop_ready(), None);
        replies.set_answer(a, 'a');
        replies.set_answer(99, 'z');
        assert_eq!(
            [replies.pop_ready(), replies.pop_ready()],
            [Some('a'), Some('b')]
        );
        assert_eq!((replies.pop_ready(), replies.len()), (None, 1));
        replies.set_answer(a, 'x');
        replies.set_answer(c, 'c');
        assert_eq!((replies.pop_ready(), replies.len()), (Some('c'), 0));
        assert_eq!(replies.add_owed(), c + 1);
    }
}
