//! Time limits for tasks that would otherwise keep a thread busy.
//!
//! The small requests of other tasks, and the events that announce them, wait behind a task that
//! always finds more to do. A [`TimeSlice`] limits it by time rather than by bytes, since a
//! megabyte costs 50 µs where it is spliced and 2 ms where it is sealed on a slow processor.

use std::future::Future;
use std::pin::pin;
use std::task::Context;
use std::time::{Duration, Instant};

use crate::lane;

/// Maximum time that a task works on one direction while others wait, to the nearest step.
///
/// With four bulk flows on the same thread, an echo then waits 1 to 2 ms at most. Each end of a
/// slice costs one `epoll_wait`: 0.2 % of a relay's time at 300 µs, and already 1 % at 100 µs.
const MAX_SLICE: Duration = Duration::from_micros(300);
/// Maximum time in the bulk lane, where only other bulk flows wait. With eight spliced flows,
/// slices of 300 µs, half a megabyte each, cost 10 to 14 % more processor time than none, and those
/// of 2 ms nothing; an echo in the interactive lane waits no longer because of it.
const MAX_SLICE_BULK: Duration = Duration::from_millis(2);
/// Maximum time while another worker of the runtime waits for events. That worker handles new
/// events, and only tasks that this worker woke wait behind the slice. Yielding would wake the
/// other worker, which would look for tasks and find none: some 30 µs on each processor, which at
/// 300 µs was a tenth of the total work of a Shadowsocks server.
const MAX_SLICE_WATCHED: Duration = Duration::from_millis(5);
/// Number of consecutive checks that may find no parked worker. A worker that has just handled an
/// event is about to wait again.
const MAX_UNWATCHED: u8 = 2;
/// Bytes that are moved before the clock is read: small messages never read it.
const UNTIMED_BYTES: usize = 128 << 10;

/// The time that a task has been working since it was polled.
#[derive(Debug, Default)]
pub struct TimeSlice {
    moved: usize,
    began: Option<Instant>,
    unwatched: u8,
}

impl TimeSlice {
    /// Adds `n` moved bytes. Returns true if the slice is used up.
    pub fn is_used_up(&mut self, n: usize) -> bool {
        self.add_moved(n) >= MAX_SLICE
    }

    /// Like [`is_used_up`](Self::is_used_up), for a task that wakes few others: it may continue for
    /// longer while another worker waits for events.
    pub fn is_used_up_if_unwatched(&mut self, n: usize) -> bool {
        let worked = self.add_moved(n);
        if worked.is_zero() {
            return false;
        }
        let longest = if lane::is_bulk() {
            MAX_SLICE_BULK
        } else {
            MAX_SLICE
        };
        if worked < longest {
            return false;
        }
        self.unwatched = if is_other_worker_parked() {
            0
        } else {
            self.unwatched + 1
        };
        self.unwatched >= MAX_UNWATCHED || worked >= MAX_SLICE_WATCHED
    }

    /// Returns the time that the task has worked, or zero if it moved too little to be timed.
    pub(crate) fn time_worked(&self) -> Duration {
        self.began.map_or(Duration::ZERO, |began| began.elapsed())
    }

    /// Adds `n` moved bytes and returns the time since the clock was started.
    fn add_moved(&mut self, n: usize) -> Duration {
        self.moved = self.moved.saturating_add(n);
        if self.moved < UNTIMED_BYTES {
            return Duration::ZERO;
        }
        self.began.get_or_insert_with(Instant::now).elapsed()
    }
}

/// True if another worker of this runtime is parked. The first that parks waits for events.
#[cfg(target_has_atomic = "64")]
fn is_other_worker_parked() -> bool {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else {
        return false;
    };
    let metrics = runtime.metrics();
    // Odd while it is parked. This worker is not parked, since it runs this code.
    (0..metrics.num_workers()).any(|worker| metrics.worker_park_unpark_count(worker) % 2 == 1)
}

/// Always false: tokio counts parks only where 64-bit atomics exist.
#[cfg(not(target_has_atomic = "64"))]
fn is_other_worker_parked() -> bool {
    false
}

/// Yields to all other tasks: the task is polled again once its thread has run out of other tasks
/// and has looked for events.
///
/// Waking the task immediately would not do that: the task would be appended to its thread's queue,
/// but the thread looks for events only once every 61 tasks.
pub fn yield_to_others(cx: &mut Context<'_>) {
    // The first poll passes the waker to the runtime; the rest of the future does nothing.
    let _ = pin!(tokio::task::yield_now()).poll(cx);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_messages_do_not_read_the_clock() {
        let mut slice = TimeSlice::default();
        assert!(!slice.is_used_up(UNTIMED_BYTES - 1) && slice.began.is_none());
        assert!(!slice.is_used_up(1), "the clock starts");
        let began = slice.began.as_mut().unwrap();
        *began -= MAX_SLICE;
        assert!(slice.is_used_up(1));
    }

    /// True if a slice that has lasted for `worked` would end, after as many checks as are needed.
    fn ends_after(worked: Duration) -> bool {
        let mut slice = TimeSlice::default();
        slice.add_moved(UNTIMED_BYTES);
        slice.began = slice.began.map(|began| began - worked);
        (0..MAX_UNWATCHED).any(|_| slice.is_used_up_if_unwatched(1))
    }

    #[test]
    fn a_task_goes_on_while_another_worker_waits_for_events() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .build()
            .unwrap();
        let ends = runtime.block_on(runtime.spawn(async {
            // The other worker has nothing to do.
            while !is_other_worker_parked() {
                std::thread::yield_now();
            }
            [MAX_SLICE, MAX_SLICE_WATCHED].map(ends_after)
        }));
        assert_eq!(ends.unwrap(), [false, true]);
    }

    #[test]
    fn a_task_that_keeps_the_only_worker_gives_way_soon() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .build()
            .unwrap();
        let ends = runtime.block_on(runtime.spawn(async { ends_after(MAX_SLICE) }));
        assert!(ends.unwrap());
        assert!(ends_after(MAX_SLICE), "without a runtime");
        let mut slice = TimeSlice::default();
        slice.add_moved(UNTIMED_BYTES);
        slice.began = slice.began.map(|began| began - MAX_SLICE);
        assert!(
            !slice.is_used_up_if_unwatched(1),
            "a worker may be about to wait"
        );
        assert!(slice.is_used_up_if_unwatched(1) && slice.is_used_up(1));
    }

    #[test]
    fn a_slice_in_the_bulk_lane_is_longer() {
        let runtime = lane::tests::runtime();
        let ends = runtime.block_on(async {
            let bulk = lane::bulk_lane().unwrap();
            let ends = bulk.spawn(async { [MAX_SLICE, MAX_SLICE_BULK].map(ends_after) });
            ends.await.unwrap()
        });
        assert_eq!(ends, [false, true]);
    }
}
