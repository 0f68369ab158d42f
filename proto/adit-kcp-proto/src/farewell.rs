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

use crate::Kcp;
use crate::segment::{Cmd, Header};
use crate::seq::Sn;

/// Maximum number of transmissions to a peer that does not answer.
const TIMES: u32 = 4;
/// Milliseconds until the second transmission; doubled each time.
const PAUSE: u64 = 200;

/// Kind of a closing message, the weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Word {
    /// No more data.
    End = 0xe1,
    /// No more data, and none will be read.
    Leave = 0xe2,
    /// The session is over.
    Abort = 0xe3,
}

/// `frg` of an answer.
const HEARD: u8 = 0xe4;

/// The closing messages of both ends.
#[derive(Debug, Default)]
pub(crate) struct Farewell {
    said: Option<Said>,
    /// The number after the peer's last data.
    end: Option<Sn>,
    left: bool,
    aborted: bool,
    /// The number of an answer that is owed.
    answer: Option<Sn>,
}

/// The closing message of this end.
#[derive(Debug)]
struct Said {
    word: Word,
    times: u32,
    /// Time of the next transmission, in milliseconds.
    at: u64,
    heard: bool,
}

impl Kcp {
    /// Ends this direction: [`send`](Self::send) fails from now on. A peer that is adit is informed
    /// after all the data; other implementations are not.
    pub fn finish(&mut self, now: Time) {
        self.say(Word::End, now);
    }

    /// Closes the session after the application has gone: queued data is still delivered, received
    /// data is not read.
    pub fn leave(&mut self, now: Time) {
        self.say(Word::Leave, now);
    }

    /// Ends the session without the data that is not acknowledged yet. The session only remains for
    /// the closing message.
    pub fn abort(&mut self, now: Time) {
        self.send.abandon();
        self.say(Word::Abort, now);
    }

    /// True if the peer has finished its direction and all its data was read.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.farewell.end == Some(self.recv.next()) && self.recv.readable() == 0
    }

    /// True if the peer reads no more.
    #[must_use]
    pub const fn peer_left(&self) -> bool {
        self.farewell.left
    }

    /// True if the peer has ended the session without all its data. The state is
    /// [`State::Dead`](crate::State::Dead).
    #[must_use]
    pub const fn is_aborted(&self) -> bool {
        self.farewell.aborted
    }

    /// True if a session without an application has no more to do: all data was acknowledged, and
    /// the closing message was answered or sent often enough.
    #[must_use]
    pub fn has_parted(&self) -> bool {
        let answered = self.acks.len() == 0 && !self.flush.acks && self.farewell.answer.is_none();
        let told = self.farewell.left || self.says().is_none();
        self.send.is_empty() && answered && told
    }

    /// Queues a closing message, unless an equal or stronger one was queued.
    fn say(&mut self, word: Word, now: Time) {
        self.see(now);
        if self.dead || self.farewell.said.as_ref().is_some_and(|s| s.word >= word) {
            return;
        }
        // A peer that was never sent anything does not know the session.
        let unknown = self.stats.datagrams_in == 0 && self.stats.bytes_sent == 0;
        self.farewell.said = Some(Said {
            word,
            times: 0,
            at: self.ms(),
            heard: unknown,
        });
        self.schedule();
    }

    /// True if the application has ended this direction.
    pub(crate) const fn is_ending(&self) -> bool {
        self.farewell.said.is_some()
    }

    /// Returns the closing message that has to be sent, if any.
    fn says(&self) -> Option<&Said> {
        let said = self.farewell.said.as_ref()?;
        (!said.heard && said.times < TIMES).then_some(said)
    }

    /// Returns the millisecond in which the closing message is due: not before the last data was
    /// sent once.
    pub(crate) fn farewell_at(&self) -> Option<u64> {
        let said = self.says()?;
        let out = self.send.queued() == 0 && self.send.unsent() == 0;
        out.then_some(said.at)
    }

    pub(crate) const fn owes_answer(&self) -> bool {
        self.farewell.answer.is_some()
    }

    /// Returns the segment of an owed answer.
    pub(crate) fn answer(&self) -> Option<Header> {
        let sn = self.farewell.answer?;
        let frg = HEARD;
        let header = self.header(Cmd::Wins, self.wire_clock(), sn);
        Some(Header { frg, ..header })
    }

    pub(crate) const fn answered(&mut self) {
        self.farewell.answer = None;
    }

    /// Returns the segment of the closing message, if it is due.
    pub(crate) fn farewell(&self) -> Option<Header> {
        self.farewell_at().filter(|at| *at <= self.ms())?;
        let frg = self.says()?.word as u8;
        let header = self.header(Cmd::Wins, self.wire_clock(), self.send.end());
        Some(Header { frg, ..header })
    }

    /// Records that the closing message was written.
    pub(crate) fn farewell_said(&mut self) {
        let (now, drained) = (self.ms(), self.send.is_empty());
        if let Some(said) = &mut self.farewell.said {
            said.at = now + (PAUSE << said.times.min(4));
            // While data is in flight, the peer either answers it or is found to be gone.
            said.times += u32::from(drained);
        }
    }

    /// Handles a segment that reports a window. Most are only that.
    pub(crate) fn take_farewell(&mut self, header: &Header) {
        let sn = Sn(header.sn);
        let word = match header.frg {
            HEARD => {
                let end = self.send.end();
                if let Some(said) = self.farewell.said.as_mut().filter(|_| sn == end) {
                    said.heard = true;
                }
                return;
            }
            frg => [Word::End, Word::Leave, Word::Abort]
                .into_iter()
                .find(|word| *word as u8 == frg),
        };
        let Some(word) = word else { return };
        // An end beyond any window or before the data that was received is invalid.
        let ahead = sn.distance(self.recv.next());
        if ahead > u32::from(u16::MAX) || self.farewell.end.is_some_and(|end| end != sn) {
            return;
        }
        if word == Word::Abort {
            self.farewell.aborted = true;
            self.dead = true;
            return;
        }
        self.farewell.end = Some(sn);
        self.farewell.answer = Some(sn);
        if word == Word::Leave {
            self.farewell.left = true;
            self.send.abandon();
        }
    }
}
