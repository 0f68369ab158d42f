//! A path with a rate, a queue, a delay, loss, duplication and reordering, in virtual time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{KcpSession, Time};

/// Seeded, so that every run is the same.
#[derive(Debug, Clone)]
pub(crate) struct TestRng(pub(crate) u64);

impl TestRng {
    pub(crate) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub(crate) fn rng(&mut self, percent: u64) -> bool {
        self.roll() % 10_000 < percent * 100
    }
}

/// A path, the same in both directions.
#[derive(Debug, Clone)]
pub(crate) struct Path {
    /// One-way delay, microseconds.
    pub(crate) delay: u64,
    /// Maximum random delay on top, microseconds: reorders.
    pub(crate) jitter: u64,
    /// Lost datagrams of 100.
    pub(crate) loss: u64,
    pub(crate) doubled: u64,
    /// Bytes per second; 0 is unlimited.
    pub(crate) rate: u64,
    /// Bytes that wait for the rate before more are dropped.
    pub(crate) queue: u64,
}

type Arrival = (u64, u64, usize, Vec<u8>);

/// Two ends and the datagrams in transit between them.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) ends: [KcpSession; 2],
    pub(crate) now: Time,
    /// Both ends run only at multiples of this many microseconds, as on a busy machine; 0:
    /// immediately.
    pub(crate) stall: u64,
    path: Path,
    rng: TestRng,
    /// Time at which the queue of each direction is empty, microseconds.
    busy: [u64; 2],
    under_way: BinaryHeap<Reverse<Arrival>>,
    count: u64,
}

impl World {
    pub(crate) fn new(ends: [KcpSession; 2], path: Path, now: Time, seed: u64) -> Self {
        Self {
            ends,
            now,
            stall: 0,
            path,
            rng: TestRng(seed),
            busy: [0; 2],
            under_way: BinaryHeap::new(),
            count: 0,
        }
    }

    /// Puts all due datagrams on the path.
    pub(crate) fn transmit(&mut self) {
        let mut out = [0; 1500];
        for end in 0..2 {
            while let Some(len) = self.ends[end].poll_output(self.now, &mut out) {
                self.carry(1 - end, &out[..len]);
            }
        }
    }

    /// Advances to the next event; false if there will be none.
    pub(crate) fn step(&mut self, limit: Time) -> bool {
        self.transmit();
        let arrival = self.under_way.peek().map(|Reverse((at, ..))| Time(*at));
        let timers = self.ends.iter().filter_map(KcpSession::poll_timeout);
        let Some(next) = timers.chain(arrival).min() else {
            return false;
        };
        if next > limit {
            self.now = limit;
            return false;
        }
        self.now = self.now.max(next);
        if self.stall > 0 {
            self.now = Time(self.now.0.div_ceil(self.stall) * self.stall);
        }
        while let Some(Reverse((at, ..))) = self.under_way.peek() {
            if *at > self.now.0 {
                break;
            }
            if let Some(Reverse((_, _, to, datagram))) = self.under_way.pop() {
                let taken = self.ends[to].handle_input(self.now, &datagram, false);
                assert_eq!(taken, Ok(()));
            }
        }
        true
    }

    fn carry(&mut self, to: usize, datagram: &[u8]) {
        let copies = 1 + u64::from(self.rng.rng(self.path.doubled));
        for _ in 0..copies {
            if let Some(leaves) = self.queued(to, datagram.len()) {
                if self.rng.rng(self.path.loss) {
                    continue;
                }
                let late = self.rng.roll() % (self.path.jitter + 1);
                self.count += 1;
                let at = leaves + self.path.delay + late;
                self.under_way
                    .push(Reverse((at, self.count, to, datagram.to_vec())));
            }
        }
    }

    /// Returns the time at which the datagram has passed the bottleneck; `None` if its queue is
    /// full.
    fn queued(&mut self, to: usize, len: usize) -> Option<u64> {
        let size = len as u64 + 28;
        let Some(time) = (size * 1_000_000).checked_div(self.path.rate) else {
            return Some(self.now.0);
        };
        let start = self.busy[to].max(self.now.0);
        let waiting = (start - self.now.0) * self.path.rate / 1_000_000;
        if waiting + size > self.path.queue {
            return None;
        }
        self.busy[to] = start + time;
        Some(self.busy[to])
    }
}
