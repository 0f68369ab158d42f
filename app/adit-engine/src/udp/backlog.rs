//! Datagrams that wait for a path to open or a name to be resolved.
//!
//! The first batch of QUIC or of a call arrives completely before a hop has answered. It waits, within
//! a bound of its own and one for the whole process. The last part of the latter is reserved for small
//! queues, so that large ones cannot crowd them out.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum number of datagrams in one backlog.
const MAX_DATAGRAMS: usize = 256;
/// Maximum size of one backlog in bytes, including the overhead per datagram.
const MAX_BYTES: usize = 64 << 10;
/// Maximum size of all backlogs of the process, in bytes.
const MAX_TOTAL_BYTES: usize = 16 << 20;
/// The part of it that is reserved for small backlogs, in bytes.
const RESERVE: usize = 4 << 20;
/// Maximum size of a backlog that may use the reserve, in bytes.
const SMALL_BACKLOG_BYTES: usize = 4 << 10;
/// Overhead of a datagram beside its payload, in bytes.
const DATAGRAM_OVERHEAD: usize = 64;

static WAITING_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Datagrams that wait for one path or name, each with its destination.
#[derive(Debug)]
pub(super) struct Backlog<T> {
    waiting: Vec<(T, Box<[u8]>)>,
    bytes: usize,
}

impl<T> Default for Backlog<T> {
    fn default() -> Self {
        let waiting = Vec::new();
        Self { waiting, bytes: 0 }
    }
}

impl<T> Backlog<T> {
    /// Adds a datagram; returns false if there is no capacity.
    pub(super) fn push(&mut self, to: T, payload: &[u8]) -> bool {
        let bytes = self.bytes + payload.len() + DATAGRAM_OVERHEAD;
        // A single datagram always fits, whatever its size.
        let fits = self.waiting.is_empty() || bytes <= MAX_BYTES;
        if !fits || self.waiting.len() >= MAX_DATAGRAMS {
            return false;
        }
        let added = bytes - self.bytes;
        let limit = if bytes <= SMALL_BACKLOG_BYTES {
            MAX_TOTAL_BYTES
        } else {
            MAX_TOTAL_BYTES - RESERVE
        };
        if WAITING_BYTES.fetch_add(added, Ordering::Relaxed) + added > limit {
            WAITING_BYTES.fetch_sub(added, Ordering::Relaxed);
            return false;
        }
        self.bytes = bytes;
        self.waiting.push((to, payload.into()));
        true
    }

    /// Returns all datagrams that waited, in order.
    pub(super) fn take_all(&mut self) -> Vec<(T, Box<[u8]>)> {
        WAITING_BYTES.fetch_sub(std::mem::take(&mut self.bytes), Ordering::Relaxed);
        std::mem::take(&mut self.waiting)
    }
}

impl<T> Drop for Backlog<T> {
    fn drop(&mut self) {
        WAITING_BYTES.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A single test, because the total counts for the whole process.
    #[test]
    fn bounds_alone_and_together() {
        let mut small = Backlog::default();
        let taken = (0..300).filter(|n| small.push(*n, b"x")).count();
        assert_eq!(taken, MAX_DATAGRAMS);
        let order: Vec<i32> = small.take_all().iter().map(|(n, _)| *n).collect();
        assert_eq!(order, (0..256).collect::<Vec<_>>());
        let mut large = Backlog::default();
        assert!(large.push((), &[0; 65_507]), "one alone");
        assert!(!large.push((), b"x"));
        drop(large);

        let datagram = [0; 1200];
        let mut all: Vec<Backlog<()>> = Vec::new();
        loop {
            let mut one = Backlog::default();
            let taken = (0..60).filter(|_| one.push((), &datagram)).count();
            all.push(one);
            if taken < 50 {
                break;
            }
            assert!(all.len() < 1000);
        }
        let waiting = || WAITING_BYTES.load(Ordering::Relaxed);
        assert!(waiting() <= MAX_TOTAL_BYTES && waiting() > MAX_TOTAL_BYTES - RESERVE - MAX_BYTES);
        let mut modest = Backlog::default();
        assert!((0..3).all(|_| modest.push((), &datagram)), "who has little");
        drop((all, modest));
        assert_eq!(waiting(), 0);
    }
}
