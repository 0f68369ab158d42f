//! One channel.

use core::fmt;
use std::collections::VecDeque;

use super::{Limits, intake::Intake, replies::InOrder};

/// Names a channel of one [`Connection`](super::Connection), and never another one: the number on
/// the wire is used again, the generation is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChannelId {
    pub(super) number: u32,
    pub(super) generation: u32,
}

impl ChannelId {
    /// The number that we gave it on the wire.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.number
    }
}

impl fmt::Display for ChannelId {
    /// The number that we gave it on the wire.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number.fmt(f)
    }
}

/// How far the opening has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The peer wants it; the application has not answered.
    Asked,
    /// We want it; the peer has not answered.
    Wanted,
    /// It is open, or was.
    Open,
}

/// Whether it is its turn to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// It has nothing to write.
    Idle,
    /// It stands among those that can.
    Queued,
    /// It waits for the peer's window.
    Parked,
}

/// A request of ours that has no answer yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    /// The server may open `x11` channels then.
    X11,
    /// The server may open agent channels then.
    Agent,
    /// Nothing follows here.
    Plain,
}

/// What the peer may send, what we may, and how far both sides have come.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) stage: Stage,
    /// The peer's number for it; 0 while it is wanted.
    pub(super) remote: u32,
    pub(super) intake: Intake,
    /// What we may still send, octets.
    pub(super) window: u32,
    /// The most data in one message to the peer, octets.
    pub(super) max_send: u32,

    pub(super) sent_eof: bool,
    pub(super) sent_close: bool,
    pub(super) got_eof: bool,
    pub(super) got_close: bool,
    /// The application has closed it: nobody reads any more.
    pub(super) dropped: bool,

    pub(super) owed: InOrder<bool>,
    pub(super) expected: VecDeque<Expected>,
    pub(super) x11: bool,
    pub(super) agent: bool,

    /// Of a type of the program's own: octets of its name and data, which count while it waits.
    pub(super) own: Option<usize>,

    pub(super) turn: Turn,
    /// Stands among those whose window is to be widened.
    pub(super) in_adjusts: bool,
}

impl Channel {
    pub(super) fn new(stage: Stage, remote: u32, window: u32) -> Self {
        Self {
            stage,
            remote,
            intake: Intake::new(window),
            window: 0,
            max_send: 0,
            sent_eof: false,
            sent_close: false,
            got_eof: false,
            got_close: false,
            dropped: false,
            owed: InOrder::default(),
            expected: VecDeque::new(),
            x11: false,
            agent: false,
            own: None,
            turn: Turn::Idle,
            in_adjusts: false,
        }
    }

    /// The peer has told what it takes.
    pub(super) fn peer_takes(&mut self, window: u32, max_packet: u32, limits: &Limits) {
        self.window = window;
        self.max_send = max_packet.min(limits.max_send);
    }

    /// Whether data and the end of data may be sent.
    pub(super) fn can_write(&self) -> bool {
        self.stage == Stage::Open && !self.sent_eof && !self.sent_close
    }

    /// Whether requests and answers may be sent.
    pub(super) fn can_talk(&self) -> bool {
        self.stage == Stage::Open && !self.sent_close
    }

    /// Whether widening the window is of any use.
    pub(super) const fn still_receives(&self) -> bool {
        !self.got_eof && !self.got_close && !self.sent_close
    }

    /// Whether nothing will happen any more.
    pub(super) const fn is_over(&self) -> bool {
        self.sent_close && self.got_close && (self.dropped || self.intake.unread() == 0)
    }
}
