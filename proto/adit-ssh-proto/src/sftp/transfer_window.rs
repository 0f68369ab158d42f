//! Number of requests that a transfer keeps in flight.
//!
//! Too few leave the link idle for a part of each round trip; too many only cost memory. The number
//! is doubled as long as that makes the transfer faster.

use adit_wire::{Time, usize_from};

/// Initial number of requests in flight, which is 2 MiB for READs of the usual size.
const FIRST: usize = 64;
/// Maximum number of requests in flight.
const MOST: usize = 1024;
/// Maximum number of bytes in flight.
const MOST_OCTETS: usize = 64 * 1024 * 1024;

#[derive(Debug)]
pub(super) struct TransferWindow {
    size: usize,
    most: usize,
    /// Number of requests sent and answered so far.
    sent: u64,
    answered: u64,
    /// A round ends with the answer to the first request sent in it, so it takes at least a round
    /// trip, even if answers arrive in batches.
    round_end: u64,
    round_start: Time,
    round_octets: u64,
    /// Throughput of the fastest round, in bytes per second.
    best: u64,
}

impl TransferWindow {
    /// Creates a window for requests of `chunk` bytes.
    pub(super) fn new(chunk: u32) -> Self {
        let chunk = usize_from(chunk.max(1));
        Self {
            size: FIRST,
            most: (MOST_OCTETS / chunk).clamp(FIRST, MOST),
            sent: 0,
            answered: 0,
            round_end: 0,
            round_start: Time(0),
            round_octets: 0,
            best: 0,
        }
    }

    /// Returns the number of requests that may be in flight.
    pub(super) const fn size(&self) -> usize {
        self.size
    }

    /// Records a sent request.
    pub(super) const fn on_sent(&mut self, now: Time) {
        if self.sent == self.answered {
            // Nothing was in flight, so the time until now is not part of a measurement.
            self.round_start = now;
            self.round_octets = 0;
            self.round_end = self.sent + 1;
        }
        self.sent += 1;
    }

    /// Records an answer with `octets` bytes.
    pub(super) fn on_answered(&mut self, now: Time, octets: u32) {
        self.answered += 1;
        self.round_octets += u64::from(octets);
        if self.answered < self.round_end {
            return;
        }
        let span = u64::try_from(now.duration_since(self.round_start).as_micros())
            .unwrap_or(u64::MAX)
            .max(1);
        let rate = self.round_octets.saturating_mul(1_000_000) / span;
        if rate > self.best + self.best / 4 {
            // The first round is a single request, and only serves as the reference for the second.
            if self.best > 0 {
                self.size = (self.size * 2).min(self.most);
            }
            self.best = rate;
        }
        self.round_start = now;
        self.round_octets = 0;
        self.round_end = self.sent + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;
    use std::collections::VecDeque;

    /// Returns the size after `rounds` requests over a link with at most this number in flight.
    fn grown(rtt_ms: u64, octets_per_ms: u64, requests: usize) -> usize {
        let mut window = TransferWindow::new(32_768);
        let (mut now, mut line_free) = (Time(0), Time(0));
        let mut flight = VecDeque::new();
        for _ in 0..requests {
            while flight.len() < window.size() {
                window.on_sent(now);
                let start = line_free.max(now);
                line_free = start + Duration::from_micros(32_768 * 1000 / octets_per_ms);
                flight.push_back(line_free + Duration::from_millis(rtt_ms));
            }
            now = flight.pop_front().unwrap();
            window.on_answered(now, 32_768);
        }
        window.size()
    }

    #[test]
    fn it_grows_until_the_line_is_full() {
        // 100 MB/s over 100 ms hold 10 MB, which is 305 requests.
        let size = grown(100, 100_000, 8000);
        assert!((305..=1024).contains(&size), "{size}");
        assert!(grown(1, 10_000, 4000) <= 2 * FIRST, "10 kB would be enough");
        assert_eq!(grown(1000, 1_000_000, 60_000), MOST, "bounded");
        assert_eq!(TransferWindow::new(261_120).most, 257);
    }
}
