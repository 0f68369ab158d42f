//! Closing messages, which KCP itself does not have.
//!
//! A closing message is a segment that reports the window (`cmd` 84), which all implementations
//! accept and none answers. Its `frg`, which they send as 0 and never read there, is the kind, its
//! `sn` the number after the last data, and its `ts` the clock. KCP in C and kcp-go treat it as a
//! window report. The ARQ does not repeat it; it is sent up to four times, until the peer has
//! answered with another such segment.
//!
//! | `frg` | meaning |
//! |---|---|
//! | 0xe1 | no data follows at `sn` or after it |
//! | 0xe2 | the same, and no data will be read |
//! | 0xe3 | the session is over, data may be missing |
//! | 0xe4 | a closing message with this `sn` has arrived |

use adit_wire::Time;

use crate::KcpSession;
use crate::segment::{Command, SegmentHeader};
use crate::seq::SeqNum;

/// Maximum number of transmissions to a peer that does not answer.
const MAX_SENDS: u32 = 4;
/// Milliseconds until the second transmission; doubled each time.
const FIRST_RESEND_MS: u64 = 200;

/// Kind of a closing message, the weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum ClosingKind {
    /// No more data.
    End = 0xe1,
    /// No more data, and none will be read.
    Leave = 0xe2,
    /// The session is over.
    Abort = 0xe3,
}

/// `frg` of an answer.
const CLOSING_ANSWER: u8 = 0xe4;

/// The closing messages of both ends.
#[derive(Debug, Default)]
pub(crate) struct ClosingState {
    sent: Option<SentClosing>,
    /// The number after the peer's last data.
    peer_end: Option<SeqNum>,
    peer_left: bool,
    aborted: bool,
    /// The number of an answer that is owed.
    answer: Option<SeqNum>,
}

/// The closing message of this end.
#[derive(Debug)]
struct SentClosing {
    kind: ClosingKind,
    sends: u32,
    /// Time of the next transmission, in milliseconds.
    next_send_ms: u64,
    is_answered: bool,
}

impl KcpSession {
    /// Ends this direction: [`send`](Self::send) fails from now on. A peer that is adit is informed
    /// after all the data; other implementations are not.
    pub fn finish(&mut self, now: Time) {
        self.queue_closing(ClosingKind::End, now);
    }

    /// Closes the session after the application has gone: queued data is still delivered, received
    /// data is not read.
    pub fn close_gracefully(&mut self, now: Time) {
        self.queue_closing(ClosingKind::Leave, now);
    }

    /// Ends the session without the data that is not acknowledged yet. The session only remains for
    /// the closing message.
    pub fn abort(&mut self, now: Time) {
        self.send.discard_all();
        self.queue_closing(ClosingKind::Abort, now);
    }

    /// True if the peer has finished its direction and all its data was read.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.farewell.peer_end == Some(self.recv.next_expected()) && self.recv.readable_len() == 0
    }

    /// True if the peer reads no more.
    #[must_use]
    pub const fn is_unread_by_peer(&self) -> bool {
        self.farewell.peer_left
    }

    /// True if the peer has ended the session without all its data. The state is
    /// [`SessionState::Dead`](crate::SessionState::Dead).
    #[must_use]
    pub const fn is_aborted(&self) -> bool {
        self.farewell.aborted
    }

    /// True if a session without an application has no more to do: all data was acknowledged, and
    /// the closing message was answered or sent often enough.
    #[must_use]
    pub fn is_fully_closed(&self) -> bool {
        let answered = self.acks.len() == 0 && !self.flush.acks && self.farewell.answer.is_none();
        let told = self.farewell.peer_left || self.pending_closing().is_none();
        self.send.is_empty() && answered && told
    }

    /// Queues a closing message, unless an equal or stronger one was queued.
    fn queue_closing(&mut self, word: ClosingKind, now: Time) {
        self.advance_clock(now);
        if self.is_dead || self.farewell.sent.as_ref().is_some_and(|s| s.kind >= word) {
            return;
        }
        // A peer that was never sent anything does not know the session.
        let unknown = self.stats.datagrams_in == 0 && self.stats.bytes_sent == 0;
        self.farewell.sent = Some(SentClosing {
            kind: word,
            sends: 0,
            next_send_ms: self.elapsed_ms(),
            is_answered: unknown,
        });
        self.schedule_flush();
    }

    /// True if the application has ended this direction.
    pub(crate) const fn has_finished_sending(&self) -> bool {
        self.farewell.sent.is_some()
    }

    /// Returns the closing message that has to be sent, if any.
    fn pending_closing(&self) -> Option<&SentClosing> {
        let said = self.farewell.sent.as_ref()?;
        (!said.is_answered && said.sends < MAX_SENDS).then_some(said)
    }

    /// Returns the millisecond in which the closing message is due: not before the last data was
    /// sent once.
    pub(crate) fn closing_due_ms(&self) -> Option<u64> {
        let said = self.pending_closing()?;
        let out = self.send.queued_count() == 0 && self.send.unsent_count() == 0;
        out.then_some(said.next_send_ms)
    }

    pub(crate) const fn owes_closing_answer(&self) -> bool {
        self.farewell.answer.is_some()
    }

    /// Returns the segment of an owed answer.
    pub(crate) fn closing_answer(&self) -> Option<SegmentHeader> {
        let sn = self.farewell.answer?;
        let frg = CLOSING_ANSWER;
        let header = self.new_header(Command::WindowReport, self.wire_clock(), sn);
        Some(SegmentHeader { frg, ..header })
    }

    pub(crate) const fn clear_closing_answer(&mut self) {
        self.farewell.answer = None;
    }

    /// Returns the segment of the closing message, if it is due.
    pub(crate) fn due_closing(&self) -> Option<SegmentHeader> {
        self.closing_due_ms()
            .filter(|at| *at <= self.elapsed_ms())?;
        let frg = self.pending_closing()?.kind as u8;
        let header = self.new_header(
            Command::WindowReport,
            self.wire_clock(),
            self.send.end_number(),
        );
        Some(SegmentHeader { frg, ..header })
    }

    /// Records that the closing message was written.
    pub(crate) fn record_closing_sent(&mut self) {
        let (now, drained) = (self.elapsed_ms(), self.send.is_empty());
        if let Some(said) = &mut self.farewell.sent {
            said.next_send_ms = now + (FIRST_RESEND_MS << said.sends.min(4));
            // While data is in flight, the peer either answers it or is found to be gone.
            said.sends += u32::from(drained);
        }
    }

    /// Handles a segment that reports a window. Most are only that.
    pub(crate) fn handle_closing(&mut self, header: &SegmentHeader) {
        let sn = SeqNum(header.sn);
        let word = match header.frg {
            CLOSING_ANSWER => {
                let end = self.send.end_number();
                if let Some(said) = self.farewell.sent.as_mut().filter(|_| sn == end) {
                    said.is_answered = true;
                }
                return;
            }
            frg => [ClosingKind::End, ClosingKind::Leave, ClosingKind::Abort]
                .into_iter()
                .find(|word| *word as u8 == frg),
        };
        let Some(word) = word else { return };
        // An end beyond any window or before the data that was received is invalid.
        let ahead = sn.distance_from(self.recv.next_expected());
        if ahead > u32::from(u16::MAX) || self.farewell.peer_end.is_some_and(|end| end != sn) {
            return;
        }
        if word == ClosingKind::Abort {
            self.farewell.aborted = true;
            self.is_dead = true;
            return;
        }
        self.farewell.peer_end = Some(sn);
        self.farewell.answer = Some(sn);
        if word == ClosingKind::Leave {
            self.farewell.peer_left = true;
            self.send.discard_all();
        }
    }
}
