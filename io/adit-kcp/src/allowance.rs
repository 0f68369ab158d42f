//! The limit of data sent to an address that has not yet shown that it receives.
//!
//! The source of a datagram can be forged, and a recording can be sent again from anywhere. An
//! address that has acknowledged nothing yet is sent at most three times the bytes that were
//! received from it, in at most two datagrams more than were received, retransmissions included.
//! This makes a listener useless for flooding a third party. RFC 9000, section 8, has the same
//! factor.
//!
//! When more data waits, the peer is sent a probe of 24 bytes ([`adit_kcp_proto::Kcp::question`]),
//! for which the limit always leaves space.

use std::time::Duration;

use adit_wire::Time;

/// Bytes that may be sent for each byte received.
const FACTOR: usize = 3;
/// Datagrams that may be sent beyond the number received.
const EXTRA: usize = 2;
/// Time to wait for an answer to the first probe; doubled each time.
const PATIENCE: Duration = Duration::from_millis(200);

/// Data received from an address and sent to it.
#[derive(Debug, Default)]
pub(super) struct Allowance {
    bytes_in: usize,
    bytes_out: usize,
    packets_in: usize,
    packets_out: usize,
    /// Time since which data waits for a higher limit.
    pub(super) blocked: Option<Time>,
    /// Number of probes sent.
    asked: u32,
    /// Earliest time of the next probe.
    ask_at: Time,
}

impl Allowance {
    /// Adds received datagrams and their bytes.
    pub(super) const fn came(&mut self, packets: usize, bytes: usize) {
        self.packets_in = self.packets_in.saturating_add(packets);
        self.bytes_in = self.bytes_in.saturating_add(bytes);
    }

    /// Adds a sent datagram.
    pub(super) const fn goes(&mut self, bytes: usize) {
        self.packets_out += 1;
        self.bytes_out += bytes;
    }

    /// Returns the maximum size of a datagram that leaves space for a probe of `question` bytes.
    pub(super) const fn room(&self, question: usize) -> usize {
        if self.packets_out + 1 >= self.packets_in + EXTRA {
            return 0;
        }
        self.left().saturating_sub(question)
    }

    /// True if a probe may be sent now.
    pub(super) fn may_ask(&self, question: usize, now: Time) -> bool {
        self.can_ask(question) && self.ask_at <= now
    }

    /// Adds a sent probe.
    pub(super) fn asks(&mut self, bytes: usize, now: Time) {
        self.goes(bytes);
        self.ask_at = now + PATIENCE * (1 << self.asked.min(8));
        self.asked += 1;
    }

    /// Returns the time of the next probe, unless more data has to be received first.
    pub(super) fn ask_at(&self, question: usize) -> Option<Time> {
        self.can_ask(question).then_some(self.ask_at)
    }

    const fn can_ask(&self, question: usize) -> bool {
        self.packets_out < self.packets_in + EXTRA && self.left() >= question
    }

    /// Returns the number of bytes that may still be sent.
    const fn left(&self) -> usize {
        let most = self.bytes_in.saturating_mul(FACTOR);
        most.saturating_sub(self.bytes_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_exceeds_three_times_what_came() {
        let mut allowance = Allowance::default();
        assert_eq!((allowance.room(24), allowance.ask_at(24)), (0, None));
        allowance.came(1, 41);
        assert_eq!(allowance.room(24), 99);
        allowance.goes(99);
        assert_eq!(allowance.room(24), 0);
        assert!(allowance.may_ask(24, Time(0)), "its space was reserved");
        allowance.asks(24, Time(0));
        assert_eq!(allowance.ask_at(24), None);
        allowance.came(2, 20);
        assert!(!allowance.may_ask(24, Time(0)) && allowance.may_ask(24, Time(0) + PATIENCE));
        assert_eq!(allowance.room(24), 36);
    }

    #[test]
    fn nor_two_datagrams_more_than_came() {
        let mut allowance = Allowance::default();
        allowance.came(1, 100_000);
        let mut sent = 0;
        while allowance.room(24) > 0 {
            allowance.goes(10);
            sent += 1;
        }
        while let Some(at) = allowance.ask_at(24) {
            allowance.asks(24, at);
            sent += 1;
        }
        assert_eq!(sent, 3);
    }
}
