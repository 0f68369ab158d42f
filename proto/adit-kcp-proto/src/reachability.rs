//! Proof that the peer receives what is sent to it, rather than an address that never asked for it.
//!
//! An acknowledgement echoes the time stamp of the data. Where the clock of the wire starts at a
//! random number, only an end that has received the data knows it: neither a forger nor a replayed
//! recording of an earlier session does.

use adit_wire::Time;

use crate::KcpSession;
use crate::segment::{Command, HEADER_LEN, SegmentHeader};
use crate::seq::{SeqNum, elapsed_ms};

impl KcpSession {
    /// Starts the milliseconds of the wire at `origin`, which should be random where
    /// unauthenticated peers can send; see [`demand_proof`](Self::demand_proof). Call this before
    /// anything is sent.
    pub fn set_clock_origin(&mut self, origin: u32) {
        self.send.set_clock_origin(origin);
    }

    /// Makes the peer [unproven](Self::is_proven) until it acknowledges data that is sent after
    /// this call, as after a change of its address.
    pub fn demand_proof(&mut self, now: Time) {
        self.advance_clock(now);
        // Data sent in this millisecond must not count.
        self.send
            .set_clock_origin(self.send.clock_origin().wrapping_add(1));
        self.unproven_since = Some(self.wire_clock());
    }

    /// Takes the peer as proven, because it was proven by other means.
    pub const fn assume_proven(&mut self) {
        self.unproven_since = None;
    }

    /// True if the peer has acknowledged data since proof was last demanded, or if none was
    /// demanded.
    #[must_use]
    pub const fn is_proven(&self) -> bool {
        self.unproven_since.is_none()
    }

    /// Writes a segment to the front of `out` that every implementation acknowledges, and returns
    /// its length: an empty data segment with the number before the first unacknowledged one, which
    /// the peer takes for a repetition. Returns `None` if `out` is too short or the session is
    /// dead.
    pub fn write_probe(&mut self, now: Time, out: &mut [u8]) -> Option<usize> {
        self.advance_clock(now);
        if self.is_dead {
            return None;
        }
        let before = self.send.first_unacked().wrapping_add(u32::MAX);
        let header = self.new_header(Command::Push, self.wire_clock(), before);
        out.get_mut(..HEADER_LEN)?.copy_from_slice(&header.encode());
        self.last_active = self.clock;
        self.stats.datagrams_out += 1;
        self.stats.segments_out += 1;
        Some(HEADER_LEN)
    }

    /// Gives up the session: its state becomes [`SessionState::Dead`](crate::SessionState::Dead).
    pub const fn give_up(&mut self) {
        self.is_dead = true;
    }

    /// Checks an acknowledgement for the proof.
    pub(crate) fn check_proof(&mut self, ack: &SegmentHeader, now: u32) {
        let Some(since) = self.unproven_since else {
            return;
        };
        let echoed = elapsed_ms(ack.ts, since) >= 0 && elapsed_ms(now, ack.ts) >= 0;
        if echoed && self.send.was_sent(SeqNum(ack.sn)) {
            self.unproven_since = None;
        }
    }
}
