//! How many datagrams are under way, and when the next may leave.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Those that have not arrived after so long a standstill are given up.
pub(super) const LOST_AFTER: Duration = Duration::from_millis(50);

/// When the next datagram may leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SendPace {
    /// When fewer than so many are under way: nothing is lost for want of room.
    Window(u64),
    /// So many bits of payload a second, evenly.
    Bits(u64),
    /// At once: more than the tunnel can carry.
    Flood,
}

impl SendPace {
    /// Waits until payload byte number `sent` may leave, in a run that began at `start`.
    ///
    /// It sleeps rather than spins, so as to leave the processors to the relays: a few datagrams
    /// may leave together when the kernel wakes us late.
    pub(super) fn wait_for_time(self, start: Instant, sent: u64) {
        let Self::Bits(rate) = self else {
            return;
        };
        let due = Duration::from_secs_f64(sent as f64 * 8.0 / rate.max(1) as f64);
        let early = due.saturating_sub(start.elapsed());
        if !early.is_zero() {
            thread::sleep(early);
        }
    }
}

/// What sender and receiver know of each other.
#[derive(Debug, Default)]
pub(super) struct DatagramsInFlight {
    sent: AtomicU64,
    delivered: AtomicU64,
    /// Taken for lost.
    given_up: AtomicU64,
    sent_all: AtomicBool,
}

impl DatagramsInFlight {
    /// So many have left.
    pub(super) fn record_sent(&self, count: u64) {
        self.sent.store(count, Ordering::Release);
    }

    /// No more will leave.
    pub(super) fn mark_all_sent(&self) {
        self.sent_all.store(true, Ordering::Release);
    }

    /// Whether no more will leave.
    pub(super) fn is_all_sent(&self) -> bool {
        self.sent_all.load(Ordering::Acquire)
    }

    /// So many have arrived; wakes the sender if that makes room enough.
    pub(super) fn record_delivered(&self, count: u64, pace: SendPace, sender: &Thread) {
        self.delivered.store(count, Ordering::Release);
        if matches!(pace, SendPace::Window(window) if self.in_flight() <= window / 2) {
            sender.unpark();
        }
    }

    /// Returns when the next may leave: with fewer than a window under way at once, else when
    /// half of it has arrived. After a standstill those on the way count as lost.
    pub(super) fn wait_for_room(&self, pace: SendPace) {
        let SendPace::Window(window) = pace else {
            return;
        };
        if self.in_flight() < window {
            return;
        }
        let (mut least, mut since) = (window, Instant::now());
        loop {
            let under_way = self.in_flight();
            if under_way <= window / 2 {
                return;
            }
            if under_way < least {
                (least, since) = (under_way, Instant::now());
            } else if since.elapsed() >= LOST_AFTER {
                self.given_up.fetch_add(under_way, Ordering::AcqRel);
                return;
            }
            thread::park_timeout(LOST_AFTER);
        }
    }

    fn in_flight(&self) -> u64 {
        let gone = self.delivered.load(Ordering::Acquire) + self.given_up.load(Ordering::Acquire);
        self.sent.load(Ordering::Acquire).saturating_sub(gone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_window_waits_and_gives_up() {
        let flight = DatagramsInFlight::default();
        let start = Instant::now();
        flight.record_sent(9);
        flight.wait_for_room(SendPace::Window(10));
        flight.record_sent(10);
        flight.wait_for_room(SendPace::Flood);
        assert!(start.elapsed() < LOST_AFTER);
        flight.wait_for_room(SendPace::Window(10));
        assert!(start.elapsed() >= LOST_AFTER);
        assert_eq!(flight.in_flight(), 0);
    }

    #[test]
    fn a_steady_pace_takes_its_time_and_no_other_does() {
        let start = Instant::now();
        SendPace::Flood.wait_for_time(start, 1 << 40);
        SendPace::Window(1).wait_for_time(start, 1 << 40);
        SendPace::Bits(8_000_000).wait_for_time(start, 0);
        assert!(start.elapsed() < Duration::from_millis(20));
        SendPace::Bits(8_000_000).wait_for_time(start, 30_000);
        assert!(start.elapsed() >= Duration::from_millis(30));
    }

    #[test]
    fn an_arrival_makes_room() {
        let flight = DatagramsInFlight::default();
        flight.record_sent(10);
        thread::scope(|scope| {
            let sender = thread::current();
            let flight = &flight;
            scope.spawn(move || flight.record_delivered(5, SendPace::Window(10), &sender));
            flight.wait_for_room(SendPace::Window(10));
        });
        // Nothing was given up.
        assert_eq!(flight.in_flight(), 5);
    }
}
