//! The number of datagrams in flight, and the time at which the next one may leave.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Time without arrivals after which the datagrams in flight count as lost.
pub(super) const LOST_AFTER: Duration = Duration::from_millis(50);

/// The rule for when the next datagram may leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SendPace {
    /// When fewer than this number are in flight: no datagram is lost for lack of buffer space.
    Window(u64),
    /// At this rate of payload bits per second, evenly spaced.
    Bits(u64),
    /// Immediately: more than the tunnel can carry.
    Flood,
}

impl SendPace {
    /// Waits until payload byte number `sent` may leave, in a run that began at `start`.
    ///
    /// It sleeps instead of spinning, which leaves the processors to the relays: several datagrams
    /// may leave together if the kernel wakes the thread late.
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

/// The state that sender and receiver share.
#[derive(Debug, Default)]
pub(super) struct DatagramsInFlight {
    sent: AtomicU64,
    delivered: AtomicU64,
    /// Datagrams that count as lost.
    given_up: AtomicU64,
    sent_all: AtomicBool,
}

impl DatagramsInFlight {
    /// Records that this number has left.
    pub(super) fn record_sent(&self, count: u64) {
        self.sent.store(count, Ordering::Release);
    }

    /// Records that no more will leave.
    pub(super) fn mark_all_sent(&self) {
        self.sent_all.store(true, Ordering::Release);
    }

    /// Returns true if no more will leave.
    pub(super) fn is_all_sent(&self) -> bool {
        self.sent_all.load(Ordering::Acquire)
    }

    /// Records that this number has arrived, and wakes the sender if enough capacity is free.
    pub(super) fn record_delivered(&self, count: u64, pace: SendPace, sender: &Thread) {
        self.delivered.store(count, Ordering::Release);
        if matches!(pace, SendPace::Window(window) if self.in_flight() <= window / 2) {
            sender.unpark();
        }
    }

    /// Waits until the next one may leave: with fewer than a window in flight immediately,
    /// otherwise when half of it has arrived. After a standstill, datagrams in flight count as
    /// lost.
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
        // No datagram was given up.
        assert_eq!(flight.in_flight(), 5);
    }
}
