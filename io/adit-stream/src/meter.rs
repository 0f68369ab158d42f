//! Counters that cost a relaxed addition per chunk.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};

/// Number of cache lines over which the threads are spread.
const SHARDS: usize = 16;

/// Byte and session counters of a listener or a user.
///
/// Each thread adds to its own cache line; a reader sums them up. There is no lock and no channel.
///
/// # Examples
///
/// ```
/// use adit_stream::{CountBytes, TrafficMeter};
///
/// let meter = TrafficMeter::default();
/// meter.count_opened();
/// meter.add_up(5);
/// meter.add_up(2);
/// assert_eq!(meter.stats().up, 7);
/// ```
#[derive(Debug, Default)]
pub struct TrafficMeter {
    shards: [Shard; SHARDS],
}

/// Counters of some threads, in their own cache line.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Shard {
    up: AtomicU64,
    down: AtomicU64,
    opened: AtomicU64,
    closed: AtomicU64,
    lost: AtomicU64,
}

/// A counter for the payload bytes of a session.
pub trait CountBytes: Sync {
    /// Adds payload bytes from the client.
    fn add_up(&self, n: usize);
    /// Adds payload bytes to the client.
    fn add_down(&self, n: usize);

    /// Returns the number of bytes from the client that may be moved next, at least 1; otherwise wakes the task of `cx`
    /// when there are some. By default there is no limit.
    fn poll_allowance_up(&self, cx: &Context<'_>) -> Poll<usize> {
        let _ = cx;
        Poll::Ready(usize::MAX)
    }

    /// Does the same as [`Self::poll_allowance_up`] for bytes to the client.
    fn poll_allowance_down(&self, cx: &Context<'_>) -> Poll<usize> {
        let _ = cx;
        Poll::Ready(usize::MAX)
    }
}

impl CountBytes for TrafficMeter {
    fn add_up(&self, n: usize) {
        self.current_shard()
            .up
            .fetch_add(n as u64, Ordering::Relaxed);
    }

    fn add_down(&self, n: usize) {
        self.current_shard()
            .down
            .fetch_add(n as u64, Ordering::Relaxed);
    }
}

/// A snapshot of a [`TrafficMeter`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MeterStats {
    /// Payload bytes from the client.
    pub up: u64,
    /// Payload bytes to the client.
    pub down: u64,
    /// Sessions opened.
    pub opened: u64,
    /// Sessions closed.
    pub closed: u64,
    /// Datagrams from clients that could not be forwarded.
    pub lost: u64,
}

impl TrafficMeter {
    /// Counts a session that starts.
    pub fn count_opened(&self) {
        self.current_shard().opened.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a session that ends.
    pub fn count_closed(&self) {
        self.current_shard().closed.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a datagram that could not be forwarded.
    pub fn count_lost(&self) {
        self.current_shard().lost.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds the counts of another meter, such as that of a process which this one succeeds.
    pub fn add_stats(&self, stats: MeterStats) {
        let shard = self.current_shard();
        let add = |counter: &AtomicU64, n| counter.fetch_add(n, Ordering::Relaxed);
        add(&shard.up, stats.up);
        add(&shard.down, stats.down);
        add(&shard.opened, stats.opened);
        add(&shard.closed, stats.closed);
        add(&shard.lost, stats.lost);
    }

    /// Returns the current sums.
    #[must_use]
    pub fn stats(&self) -> MeterStats {
        self.shards
            .iter()
            .fold(MeterStats::default(), |sum, shard| MeterStats {
                up: sum.up.wrapping_add(shard.up.load(Ordering::Relaxed)),
                down: sum.down.wrapping_add(shard.down.load(Ordering::Relaxed)),
                opened: sum
                    .opened
                    .wrapping_add(shard.opened.load(Ordering::Relaxed)),
                closed: sum
                    .closed
                    .wrapping_add(shard.closed.load(Ordering::Relaxed)),
                lost: sum.lost.wrapping_add(shard.lost.load(Ordering::Relaxed)),
            })
    }

    /// Returns the shard of the current thread.
    fn current_shard(&self) -> &Shard {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static MINE: Cell<usize> = Cell::new(NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS);
        }
        let mine = MINE.try_with(Cell::get).unwrap_or(0);
        // `mine` is less than SHARDS.
        &self.shards[mine % SHARDS]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_add_up() {
        let meter = TrafficMeter::default();
        std::thread::scope(|s| {
            for _ in 0..20 {
                s.spawn(|| (0..1000).for_each(|_| meter.add_up(3)));
            }
        });
        meter.add_down(7);
        meter.count_opened();
        assert_eq!(
            meter.stats(),
            MeterStats {
                up: 60_000,
                down: 7,
                opened: 1,
                closed: 0,
                lost: 0
            }
        );
    }
}
