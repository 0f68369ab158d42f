//! How long a task may work before others have their turn.
//!
//! A task that always finds more to do would keep its thread to itself: the small requests of
//! others, and the events that announce them, wait behind it. A [`TimeSlice`] bounds that by time
//! rather than by bytes, since a megabyte costs 50 µs where it is spliced and 2 ms where it is
//! sealed on a slow processor.

use std::future::Future;
use std::pin::pin;
use std::task::Context;
use std::time::{Duration, Instant};

/// The longest a task works on one direction while others wait, to the nearest step.
///
/// With four bulk flows beside it, an echo then waits 1 to 2 ms at most. Each end of a slice is
/// one `epoll_wait`; at 300 µs these cost 0.2 % of a relay's time, at 100 µs already 1 %.
const LONGEST: Duration = Duration::from_micros(300);
/// Bytes that are moved before the clock is read: small messages never read it.
const UNTIMED: usize = 128 << 10;

/// The time that a task has been working since it was polled.
#[derive(Debug, Default)]
pub struct TimeSlice {
    moved: usize,
    began: Option<Instant>,
}

impl TimeSlice {
    /// Counts `n` bytes that were moved; returns whether the slice is used up.
    pub fn is_over(&mut self, n: usize) -> bool {
        self.moved = self.moved.saturating_add(n);
        if self.moved < UNTIMED {
            return false;
        }
        match self.began {
            Some(began) => began.elapsed() >= LONGEST,
            None => {
                self.began = Some(Instant::now());
                false
            }
        }
    }
}

/// Lets everyone else go first: the task is polled again once its thread has run out of other
/// tasks and has looked for events.
///
/// Waking the task at once would not do that: it would go to the end of its thread's queue, but
/// the thread looks for events only once in 61 tasks.
pub fn give_way(cx: &mut Context<'_>) {
    // The first poll hands the waker to the runtime; what is left of the future does nothing.
    let _ = pin!(tokio::task::yield_now()).poll(cx);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_messages_do_not_read_the_clock() {
        let mut slice = TimeSlice::default();
        assert!(!slice.is_over(UNTIMED - 1) && slice.began.is_none());
        assert!(!slice.is_over(1), "the clock starts");
        let began = slice.began.as_mut().unwrap();
        *began -= LONGEST;
        assert!(slice.is_over(1));
    }
}
