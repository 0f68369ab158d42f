//! The limit of data sent to an address that has not yet shown that it receives.
//!
//! The source of a datagram can be forged, and a recording can be sent again from anywhere. An
//! address that has acknowledged nothing yet is sent at most three times the bytes that were
//! received from it, in at most two datagrams more than were received, retransmissions included.
//! This makes a listener useless for flooding a third party. RFC 9000, section 8, has the same
//! factor.
//!
//! When more data waits, the peer is sent a probe of 24 bytes ([`adit_kcp_proto::Command::WindowProbe`]),
//! for which the limit always leaves space.

use std::time::Duration;

use adit_wire::Time;

/// Bytes that may be sent for each byte received.
const MAX_FACTOR: usize = 3;
/// Datagrams that may be sent beyond the number received.
const EXTRA_DATAGRAMS: usize = 2;
/// Time to wait for an answer to the first probe; doubled each time.
const FIRST_PROBE_WAIT: Duration = Duration::from_millis(200);

/// Data received from an address and sent to it.
#[derive(Debug, Default)]
pub(super) struct AmplificationLimit {
    bytes_in: usize,
    bytes_out: usize,
    packets_in: usize,
    packets_out: usize,
    /// Time since which data waits for a higher limit.
    pub(super) blocked_since: Option<Time>,
    /// Number of probes sent.
    probes: u32,
    /// Earliest time of the next probe.
    next_probe_at: Time,
}

impl AmplificationLimit {
    /// Adds received datagrams and their bytes.
    pub(super) const fn record_received(&mut self, packets: usize, bytes: usize) {
        self.packets_in = self.packets_in.saturating_add(packets);
        self.bytes_in = self.bytes_in.saturating_add(bytes);
    }

    /// Adds a sent datagram.
    pub(super) const fn record_sent(&mut self, bytes: usize) {
        self.packets_out += 1;
        self.bytes_out += bytes;
    }

    /// Returns the maximum size of a datagram that leaves space for a probe of `question` bytes.
    pub(super) const fn capacity(&self, question: usize) -> usize {
        if self.packets_out + 1 >= self.packets_in + EXTRA_DATAGRAMS {
            return 0;
        }
        self.remaining_bytes().saturating_sub(question)
    }

    /// True if a probe may be sent now.
    pub(super) fn may_probe(&self, question: usize, now: Time) -> bool {
        self.allows_probe(question) && self.next_probe_at <= now
    }

    /// Adds a sent probe.
    pub(super) fn record_probe(&mut self, bytes: usize, now: Time) {
        self.record_sent(bytes);
        self.next_probe_at = now + FIRST_PROBE_WAIT * (1 << self.probes.min(8));
        self.probes += 1;
    }

    /// Returns the time of the next probe, unless more data has to be received first.
    pub(super) fn next_probe(&self, question: usize) -> Option<Time> {
        self.allows_probe(question).then_some(self.next_probe_at)
    }

    const fn allows_probe(&self, question: usize) -> bool {
        self.packets_out < self.packets_in + EXTRA_DATAGRAMS && self.remaining_bytes() >= question
    }

    /// Returns the number of bytes that may still be sent.
    const fn remaining_bytes(&self) -> usize {
        let most = self.bytes_in.saturating_mul(MAX_FACTOR);
        most.saturating_sub(self.bytes_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_exceeds_three_times_what_came() {
        let mut allowance = AmplificationLimit::default();
        assert_eq!(
            (allowance.capacity(24), allowance.next_probe(24)),
            (0, None)
        );
        allowance.record_received(1, 41);
        assert_eq!(allowance.capacity(24), 99);
        allowance.record_sent(99);
        assert_eq!(allowance.capacity(24), 0);
        assert!(allowance.may_probe(24, Time(0)), "its space was reserved");
        allowance.record_probe(24, Time(0));
        assert_eq!(allowance.next_probe(24), None);
        allowance.record_received(2, 20);
        assert!(
            !allowance.may_probe(24, Time(0))
                && allowance.may_probe(24, Time(0) + FIRST_PROBE_WAIT)
        );
        assert_eq!(allowance.capacity(24), 36);
    }

    #[test]
    fn nor_two_datagrams_more_than_came() {
        let mut allowance = AmplificationLimit::default();
        allowance.record_received(1, 100_000);
        let mut sent = 0;
        while allowance.capacity(24) > 0 {
            allowance.record_sent(10);
            sent += 1;
        }
        while let Some(at) = allowance.next_probe(24) {
            allowance.record_probe(24, at);
            sent += 1;
        }
        assert_eq!(sent, 3);
    }
}
