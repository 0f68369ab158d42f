//! One direction of a link, in virtual time: the fate of each packet and its arrival time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use crate::{LinkPath, SplitMix64};

/// Counters of packets so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PacketCounts {
    /// Delivered, or in flight.
    pub passed: u64,
    /// Lost at random, or while the link was cut.
    pub lost: u64,
    /// Dropped because the queue in front of the rate limit was full.
    pub dropped: u64,
}

/// One direction of a link: packets go in at a given time and come out when they are due. The same
/// seed with the same packets at the same times has the same result.
#[derive(Debug)]
pub struct DelayLine {
    path: LinkPath,
    rng: SplitMix64,
    /// Time at which the rate limit is free again.
    rate_free_at: Duration,
    in_flight: BinaryHeap<Reverse<QueuedPacket>>,
    count: u64,
    counts: PacketCounts,
}

/// Ordered by arrival time, then by the order in which packets were sent.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct QueuedPacket {
    due: Duration,
    number: u64,
    bytes: Vec<u8>,
}

impl DelayLine {
    /// Creates an empty direction with the properties of `path`.
    #[must_use]
    pub const fn new(path: LinkPath, seed: u64) -> Self {
        Self {
            path,
            rng: SplitMix64::new(seed),
            rate_free_at: Duration::ZERO,
            in_flight: BinaryHeap::new(),
            count: 0,
            counts: PacketCounts {
                passed: 0,
                lost: 0,
                dropped: 0,
            },
        }
    }

    /// Accepts a packet, or a group of segments, of `size` bytes on the wire. `now` must not
    /// decrease. A lost packet has used its share of the rate, as on a radio link; while the link
    /// is `cut`, every packet is lost.
    pub fn send(&mut self, now: Duration, bytes: &[u8], size: u64, cut: bool) {
        let copies = 1 + u8::from(self.rng.roll_per_mille(self.path.doubled));
        for _ in 0..copies {
            let start = self.rate_free_at.max(now);
            let mut waits = start - now;
            // A group may be longer than the whole queue.
            if !self.path.offload {
                waits += self.path.transmit_time(size);
            }
            if self.path.rate > 0 && waits > self.path.transmit_time(self.path.queue) {
                self.counts.dropped += 1;
                continue;
            }
            self.rate_free_at = start + self.path.transmit_time(size);
            let (lost, late) = (self.path.lost, self.path.late);
            // Both are drawn for every packet, so that one probability does not affect the other.
            let (lost, late) = (self.rng.roll_per_mille(lost), self.rng.roll_per_mille(late));
            if lost || cut {
                self.counts.lost += 1;
                continue;
            }
            let mut due = self.rate_free_at + self.path.delay;
            if late {
                due += self.path.lateness;
            }
            self.counts.passed += 1;
            self.count += 1;
            self.in_flight.push(Reverse(QueuedPacket {
                due,
                number: self.count,
                bytes: bytes.to_vec(),
            }));
        }
    }

    /// Returns the arrival time of the next packet, if one is in flight.
    #[must_use]
    pub fn next_arrival(&self) -> Option<Duration> {
        self.in_flight.peek().map(|Reverse(packet)| packet.due)
    }

    /// Returns a packet that has arrived by `now`.
    pub fn recv(&mut self, now: Duration) -> Option<Vec<u8>> {
        if self.next_arrival()? > now {
            return None;
        }
        self.in_flight.pop().map(|Reverse(packet)| packet.bytes)
    }

    /// Returns the counters of packets so far.
    #[must_use]
    pub const fn counts(&self) -> PacketCounts {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn still(path: LinkPath, count: u32, every: Duration) -> (DelayLine, Vec<(Duration, Vec<u8>)>) {
        let (mut line, mut got) = (DelayLine::new(path, 7), Vec::new());
        let mut now = Duration::ZERO;
        let mut fetch = |line: &mut DelayLine, until: Option<Duration>| {
            while let Some(due) = line
                .next_arrival()
                .filter(|due| until.is_none_or(|at| *due <= at))
            {
                assert_eq!(line.recv(due - Duration::from_nanos(1)), None);
                got.push((due, line.recv(due).unwrap()));
            }
        };
        for number in 0..count {
            fetch(&mut line, Some(now));
            let mut bytes = vec![0; 1000];
            bytes[..4].copy_from_slice(&number.to_be_bytes());
            line.send(now, &bytes, 1000, false);
            now += every;
        }
        fetch(&mut line, None);
        (line, got)
    }

    #[test]
    fn a_clean_line_only_delays() {
        let (line, got) = still(LinkPath::new(50 * MS, 0), 100, MS);
        assert_eq!((line.counts().passed, got.len()), (100, 100));
        for (number, (due, bytes)) in got.iter().enumerate() {
            let number = u32::try_from(number).unwrap();
            assert_eq!(*due, 25 * MS + number * MS);
            assert_eq!(bytes[..4], number.to_be_bytes());
        }
    }

    #[test]
    fn a_rate_spreads_packets_and_its_queue_fills() {
        // 1,000 bytes per millisecond, and a batch of 50 packets on a queue that holds 20.
        let path = LinkPath::new(50 * MS, 0).with_rate(8_000_000, 20 * MS);
        let (line, got) = still(path, 50, Duration::ZERO);
        assert_eq!((got.len(), line.counts().dropped), (20, 30));
        for (number, (due, _)) in (1..).zip(&got) {
            assert_eq!(*due, 25 * MS + number * MS);
        }
        // At half of the rate, no packet waits.
        let (line, got) = still(path, 500, 2 * MS);
        assert_eq!((line.counts().dropped, got.len()), (0, 500));
        assert_eq!(got[499].0, 998 * MS + MS + 25 * MS);
    }

    #[test]
    fn a_group_takes_the_time_of_its_segments() {
        // 1,000 bytes per millisecond, and groups of 30 segments, longer than the queue.
        let mut path = LinkPath::new(50 * MS, 0).with_rate(8_000_000, 20 * MS);
        path.offload = true;
        let mut line = DelayLine::new(path, 1);
        for now in [Duration::ZERO, 5 * MS, 25 * MS] {
            line.send(now, &[0; 43_492], 45_000, false);
        }
        let tally = line.counts();
        assert_eq!((tally.passed, tally.dropped), (2, 1));
        for due in [45 + 25, 90 + 25] {
            assert_eq!(line.next_arrival(), Some(due * MS));
            assert!(line.recv(due * MS).is_some());
        }
    }

    #[test]
    fn each_fault_happens_in_its_share() {
        let mut path = LinkPath::new(50 * MS, 50);
        path.doubled = 20;
        path.late = 100;
        let (line, got) = still(path, 20_000, MS);
        let tally = line.counts();
        assert!((900..1150).contains(&tally.lost), "{tally:?}");
        let numbers: Vec<&[u8]> = got.iter().map(|(_, bytes)| &bytes[..4]).collect();
        let late = numbers.windows(2).filter(|pair| pair[0] > pair[1]).count();
        assert!((1600..2200).contains(&late), "{late}");
        let sent = tally.passed + tally.lost;
        assert!((20_300..20_500).contains(&sent), "{tally:?}");
    }

    #[test]
    fn nothing_passes_a_cut_line() {
        let mut line = DelayLine::new(LinkPath::new(50 * MS, 0), 1);
        line.send(MS, b"x", 1, true);
        assert_eq!((line.next_arrival(), line.counts().lost), (None, 1));
        line.send(MS, b"x", 1, false);
        assert_eq!(line.next_arrival(), Some(26 * MS));
    }

    proptest! {
        #[test]
        fn every_packet_is_counted_and_comes_in_time(
            seed: u64, lost in 0..1000u16, doubled in 0..1000u16, late in 0..1000u16,
            rate in 0..100_000_000u64, gaps in prop::collection::vec((0..5000u64, 1..1500usize), 1..100),
        ) {
            let mut path = LinkPath::new(30 * MS, lost).with_rate(rate, 10 * MS);
            path.doubled = doubled;
            path.late = late;
            let mut line = DelayLine::new(path, seed);
            let mut now = Duration::ZERO;
            for (gap, len) in &gaps {
                now += Duration::from_micros(*gap);
                line.send(now, &vec![0; *len], u64::try_from(*len).unwrap(), false);
            }
            let tally = line.counts();
            let all = tally.passed + tally.lost + tally.dropped;
            prop_assert!((gaps.len()..=2 * gaps.len()).contains(&usize::try_from(all).unwrap()));
            let (mut count, mut before) = (0, Duration::ZERO);
            while let Some(due) = line.next_arrival() {
                prop_assert!(due >= before && due <= now + (15 + 10 + 5) * MS);
                before = due;
                prop_assert!(line.recv(due).is_some());
                count += 1;
            }
            prop_assert_eq!(count, tally.passed);
        }
    }
}
