//! Saying that nothing more comes, which KCP has no word for.
//!
//! A farewell is a segment that tells the window (`cmd` 84), which all implementations take and
//! nobody answers; its `frg`, which they send as 0 and never read there, says what it means, its
//! `sn` the number behind the last data, and its `ts` the clock. KCP in C and kcp-go take it for
//! what it looks like. It is not sent again by the ARQ but a few times by itself, until the peer
//! has answered by another such segment.
//!
//! | `frg` | means |
//! |---|---|
//! | 0xe1 | no data come at `sn` or behind it |
//! | 0xe2 | the same, and nothing that is sent will be read |
//! | 0xe3 | the session is over, data may be missing |
//! | 0xe4 | a farewell with this `sn` has come |

use adit_wire::Time;

use crate::Kcp;
use crate::segment::{Cmd, Header};
use crate::seq::Sn;

/// How often a farewell is said to a peer that does not answer it.
const TIMES: u32 = 4;
/// Milliseconds to the second of them; twice as long each time.
const PAUSE: u64 = 200;

/// What an end has to say, the weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Word {
    /// No more data
    End = 0xe1,
    /// Nor will any be read
    Leave = 0xe2,
    /// All is over
    Abort = 0xe3,
}

const HEARD: u8 = 0xe4;

/// What was said by both ends.
#[derive(Debug, Default)]
pub(crate) struct Farewell {
    said: Option<Said>,
    /// The number behind the peer's last data.
    end: Option<Sn>,
    left: bool,
    aborted: bool,
    /// An answer is owed, with this number.
    answer: Option<Sn>,
}

#[derive(Debug)]
struct Said {
    word: Word,
    times: u32,
    /// Milliseconds: when it is said next.
    at: u64,
    heard: bool,
}

impl Kcp {
    /// No more is sent: [`send`](Self::send) fails from now on. A peer that is adit learns it
    /// behind all the data, any other never does.
    pub fn finish(&mut self, now: Time) {
        self.say(Word::End, now);
    }

    /// The application is gone: what was sent arrives, what comes is not read.
    pub fn leave(&mut self, now: Time) {
        self.say(Word::Leave, now);
    }

    /// The session ends without what was not acknowledged yet. It stays for the farewell alone.
    pub fn abort(&mut self, now: Time) {
        self.send.abandon();
        self.say(Word::Abort, now);
    }

    /// Whether the peer has finished, and all its data were read.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.farewell.end == Some(self.recv.next()) && self.recv.readable() == 0
    }

    /// Whether the peer reads no more.
    #[must_use]
    pub const fn peer_left(&self) -> bool {
        self.farewell.left
    }

    /// Whether the peer has ended the session without all its data: the state is
    /// [`State::Dead`](crate::State::Dead).
    #[must_use]
    pub const fn is_aborted(&self) -> bool {
        self.farewell.aborted
    }

    /// Whether nothing of this session is left to do once its application is gone: everything was
    /// acknowledged, and the farewell heard or said often enough.
    #[must_use]
    pub fn has_parted(&self) -> bool {
        let answered = self.acks.len() == 0 && !self.flush.acks && self.farewell.answer.is_none();
        let told = self.farewell.left || self.says().is_none();
        self.send.is_empty() && answered && told
    }

    fn say(&mut self, word: Word, now: Time) {
        self.see(now);
        if self.dead || self.farewell.said.as_ref().is_some_and(|s| s.word >= word) {
            return;
        }
        // A peer to which nothing was ever said knows of no session.
        let unknown = self.stats.datagrams_in == 0 && self.stats.bytes_sent == 0;
        self.farewell.said = Some(Said {
            word,
            times: 0,
            at: self.ms(),
            heard: unknown,
        });
        self.schedule();
    }

    /// Whether the application has said that it sends no more.
    pub(crate) const fn is_ending(&self) -> bool {
        self.farewell.said.is_some()
    }

    /// What is still to be said, unless everything is.
    fn says(&self) -> Option<&Said> {
        let said = self.farewell.said.as_ref()?;
        (!said.heard && said.times < TIMES).then_some(said)
    }

    /// In which millisecond the farewell is due: not before the last data have gone out once.
    pub(crate) fn farewell_at(&self) -> Option<u64> {
        let said = self.says()?;
        let out = self.send.queued() == 0 && self.send.unsent() == 0;
        out.then_some(said.at)
    }

    pub(crate) const fn owes_answer(&self) -> bool {
        self.farewell.answer.is_some()
    }

    /// The segment of an answer that is owed.
    pub(crate) fn answer(&self) -> Option<Header> {
        let sn = self.farewell.answer?;
        let frg = HEARD;
        let header = self.header(Cmd::Wins, self.wire_clock(), sn);
        Some(Header { frg, ..header })
    }

    pub(crate) const fn answered(&mut self) {
        self.farewell.answer = None;
    }

    /// The segment of the farewell, if it is due.
    pub(crate) fn farewell(&self) -> Option<Header> {
        self.farewell_at().filter(|at| *at <= self.ms())?;
        let frg = self.says()?.word as u8;
        let header = self.header(Cmd::Wins, self.wire_clock(), self.send.end());
        Some(Header { frg, ..header })
    }

    /// It has been written.
    pub(crate) fn farewell_said(&mut self) {
        let (now, drained) = (self.ms(), self.send.is_empty());
        if let Some(said) = &mut self.farewell.said {
            said.at = now + (PAUSE << said.times.min(4));
            // While data are on their way the peer is there, or found to be gone by these.
            said.times += u32::from(drained);
        }
    }

    /// Takes a segment that tells a window: most are no more than that.
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
        // No window is wide enough for an end further away, and none lies behind.
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
