//! Detection of a peer that has lost the session, or has another in its place.
//!
//! The protocol has no reset. But a peer never takes back a confirmation, so an acknowledgement of
//! data that was sent *after* a confirmation arrived cannot confirm less: such a peer has started
//! anew in between. Reordering and duplication do not matter, since the echoed time stamp is our
//! own.

use crate::segment::{Command, SegmentHeader};
use crate::seq::{SeqNum, elapsed_ms};

/// The most that the peer has confirmed.
#[derive(Debug)]
pub(crate) struct PeerConfirmation {
    una: SeqNum,
    /// The wire's clock when that arrived, in milliseconds.
    heard_at: u32,
    /// The peer has lost the session.
    pub(crate) is_lost: bool,
}

impl PeerConfirmation {
    pub(crate) const fn new(first: SeqNum) -> Self {
        Self {
            una: first,
            heard_at: 0,
            is_lost: false,
        }
    }

    /// Handles a segment with a valid `una`. Returns true if it shows that the peer started anew.
    pub(crate) fn handle_segment(&mut self, header: &SegmentHeader, now: u32) -> bool {
        let una = SeqNum(header.una);
        if self.una.is_before(una) {
            (self.una, self.heard_at) = (una, now);
        } else if header.cmd == Command::Ack && una.is_before(self.una) {
            let later = elapsed_ms(header.ts, self.heard_at) > 0 && elapsed_ms(now, header.ts) >= 0;
            self.is_lost |= later;
        }
        self.is_lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(una: u32, ts: u32) -> SegmentHeader {
        SegmentHeader {
            conv: 1,
            cmd: Command::Ack,
            frg: 0,
            wnd: 32,
            ts,
            sn: 0,
            una,
            len: 0,
        }
    }

    #[test]
    fn only_what_was_sent_later_tells() {
        let mut confirmed = PeerConfirmation::new(SeqNum(0));
        assert!(!confirmed.handle_segment(&ack(3, 10), 50));
        // Reordered, or an acknowledgement of data sent in the same millisecond.
        assert!(!confirmed.handle_segment(&ack(2, 40), 60));
        assert!(!confirmed.handle_segment(&ack(0, 50), 60));
        // From the future: invalid.
        assert!(!confirmed.handle_segment(&ack(0, 61), 60));
        assert!(!confirmed.handle_segment(&ack(3, 55), 70));
        assert!(confirmed.handle_segment(&ack(0, 51), 70));
    }

    #[test]
    fn numbers_and_clocks_wrap() {
        let mut confirmed = PeerConfirmation::new(SeqNum(u32::MAX));
        assert!(!confirmed.handle_segment(&ack(1, 0), u32::MAX));
        assert!(!confirmed.handle_segment(&ack(u32::MAX, u32::MAX), 2));
        assert!(confirmed.handle_segment(&ack(u32::MAX, 1), 2));
    }
}
