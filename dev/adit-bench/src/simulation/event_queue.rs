//! Events in virtual time: those of the same instant in the order in which they were added.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Microseconds since the start of a simulation.
pub(crate) type Micros = u64;

/// Events that are due later.
#[derive(Debug)]
pub(super) struct EventQueue<E> {
    waiting: BinaryHeap<Reverse<Due<E>>>,
    count: u64,
    now: Micros,
}

#[derive(Debug)]
struct Due<E> {
    at: Micros,
    number: u64,
    event: E,
}

impl<E> PartialEq for Due<E> {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl<E> Eq for Due<E> {}

impl<E> PartialOrd for Due<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Due<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl<E> EventQueue<E> {
    pub(super) const fn new() -> Self {
        Self {
            waiting: BinaryHeap::new(),
            count: 0,
            now: 0,
        }
    }

    /// Returns the time of the last event that was taken.
    pub(super) const fn now(&self) -> Micros {
        self.now
    }

    /// Adds an event that is due after `delay`.
    pub(super) fn add(&mut self, delay: Micros, event: E) {
        self.count += 1;
        self.waiting.push(Reverse(Due {
            at: self.now + delay,
            number: self.count,
            event,
        }));
    }

    /// Takes the next event up to `end`, and moves the time to it.
    pub(super) fn next_until(&mut self, end: Micros) -> Option<E> {
        let Reverse(first) = self.waiting.peek()?;
        if first.at > end {
            return None;
        }
        let Reverse(due) = self.waiting.pop()?;
        self.now = due.at;
        Some(due.event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_the_order_of_their_time() {
        let mut queue = EventQueue::new();
        for (delay, event) in [(20, 'c'), (10, 'a'), (20, 'd'), (10, 'b'), (30, 'e')] {
            queue.add(delay, event);
        }
        let mut seen = String::new();
        while let Some(event) = queue.next_until(20) {
            seen.push(event);
        }
        assert_eq!((seen.as_str(), queue.now()), ("abcd", 20));
        queue.add(5, 'f');
        assert_eq!(queue.next_until(40), Some('f'));
        assert_eq!((queue.next_until(40), queue.now()), (Some('e'), 30));
        assert_eq!(queue.next_until(40), None);
    }
}
