//! Detection of a peer that has lost the session, or has another in its place.
//!
//! The protocol has no reset. But a peer never takes back a confirmation, so an acknowledgement of
//! data that was sent *after* a confirmation arrived cannot confirm less: such a peer has started
//! anew in between. Reordering and duplication do not matter, since the echoed time stamp is our
//! own.

use crate::segment::{Cmd, Header};
use crate::seq::{Sn, elapsed};

/// The most that the peer has confirmed.
#[derive(Debug)]
pub(crate) struct Confirmed {
    una: Sn,
    /// The wire's clock when that arrived, in milliseconds.
    at: u32,
    /// The peer has lost the session.
    pub(crate) lost: bool,
}

impl Confirmed {
    pub(crate) const fn new(first: Sn) -> Self {
        Self {
            una: first,
            at: 0,
            lost: false,
        }
    }

    /// Handles a segment with a valid `una`. Returns true if it shows that the peer started anew.
    pub(crate) fn take(&mut self, header: &Header, now: u32) -> bool {
        let una = Sn(header.una);
        if self.una.before(una) {
            (self.una, self.at) = (una, now);
        } else if header.cmd == Cmd::Ack && una.before(self.una) {
            let later = elapsed(header.ts, self.at) > 0 && elapsed(now, header.ts) >= 0;
            self.lost |= later;
        }
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(una: u32, ts: u32) -> Header {
        Header {
            conv: 1,
            cmd: Cmd::Ack,
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
        let mut confirmed = Confirmed::new(Sn(0));
        assert!(!confirmed.take(&ack(3, 10), 50));
        // Reordered, or an acknowledgement of data sent in the same millisecond.
        assert!(!confirmed.take(&ack(2, 40), 60));
        assert!(!confirmed.take(&ack(0, 50), 60));
        // From the future: invalid.
        assert!(!confirmed.take(&ack(0, 61), 60));
        assert!(!confirmed.take(&ack(3, 55), 70));
        assert!(confirmed.take(&ack(0, 51), 70));
    }

    #[test]
    fn numbers_and_clocks_wrap() {
        let mut confirmed = Confirmed::new(Sn(u32::MAX));
        assert!(!confirmed.take(&ack(1, 0), u32::MAX));
        assert!(!confirmed.take(&ack(u32::MAX, u32::MAX), 2));
        assert!(confirmed.take(&ack(u32::MAX, 1), 2));
    }
}
