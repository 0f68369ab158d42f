//! Datagrams that wait until a way is open or a name is known.
//!
//! The first burst of QUIC or a call comes whole before a hop has answered: it waits, up to a bound
//! of its own and one of all that wait in the process. The last part of that is for those who have
//! little, so that nobody's burst is lost to somebody else's.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Datagrams that wait for one way or name.
const DATAGRAMS: usize = 256;
/// Bytes of them, with what each takes beside its payload.
const BYTES: usize = 64 << 10;
/// Bytes of all that wait in the process.
const ALL: usize = 16 << 20;
/// Of these, what is kept for queues of few bytes.
const RESERVE: usize = 4 << 20;
/// Bytes of a queue that may use the reserve.
const FEW: usize = 4 << 10;
/// What a datagram takes beside its payload.
const EACH: usize = 64;

static WAITING: AtomicUsize = AtomicUsize::new(0);

/// Datagrams that wait for one way or name, each with where it goes.
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
    /// Takes a datagram; says whether there was room.
    pub(super) fn push(&mut self, to: T, payload: &[u8]) -> bool {
        let bytes = self.bytes + payload.len() + EACH;
        // One alone always fits, however long.
        let fits = self.waiting.is_empty() || bytes <= BYTES;
        if !fits || self.waiting.len() >= DATAGRAMS {
            return false;
        }
        let added = bytes - self.bytes;
        let limit = if bytes <= FEW { ALL } else { ALL - RESERVE };
        if WAITING.fetch_add(added, Ordering::Relaxed) + added > limit {
            WAITING.fetch_sub(added, Ordering::Relaxed);
            return false;
        }
        self.bytes = bytes;
        self.waiting.push((to, payload.into()));
        true
    }

    /// All that waited, in order.
    pub(super) fn take(&mut self) -> Vec<(T, Box<[u8]>)> {
        WAITING.fetch_sub(std::mem::take(&mut self.bytes), Ordering::Relaxed);
        std::mem::take(&mut self.waiting)
    }
}

impl<T> Drop for Backlog<T> {
    fn drop(&mut self) {
        WAITING.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One test: the total is the process's.
    #[test]
    fn bounds_alone_and_together() {
        let mut small = Backlog::default();
        let taken = (0..300).filter(|n| small.push(*n, b"x")).count();
        assert_eq!(taken, DATAGRAMS);
        let order: Vec<i32> = small.take().iter().map(|(n, _)| *n).collect();
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
        let waiting = || WAITING.load(Ordering::Relaxed);
        assert!(waiting() <= ALL && waiting() > ALL - RESERVE - BYTES);
        let mut modest = Backlog::default();
        assert!((0..3).all(|_| modest.push((), &datagram)), "who has little");
        drop((all, modest));
        assert_eq!(waiting(), 0);
    }
}
