//! State of a channel.

use core::fmt;
use std::collections::VecDeque;

use super::{ConnectionLimits, ordered_replies::OrderedReplies, receive_window::ReceiveWindow};

/// Identifies a channel of one [`Connection`](super::Connection). It is never reused: the number on
/// the wire is, but the generation is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChannelId {
    pub(super) number: u32,
    pub(super) generation: u32,
}

impl ChannelId {
    /// Returns the local number on the wire.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.number
    }
}

impl fmt::Display for ChannelId {
    /// Formats the local number on the wire.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number.fmt(f)
    }
}

/// State of the opening of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChannelStage {
    /// The peer requested the channel; the application has not answered.
    RequestedByPeer,
    /// The application requested the channel; the peer has not answered.
    RequestedLocally,
    /// The channel is open, or was.
    Open,
}

/// State of a channel in the queue of writers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriterState {
    /// The channel has nothing to write.
    Idle,
    /// The channel is in the queue.
    Queued,
    /// The channel waits for the peer's window.
    Parked,
}

/// A local request that was not answered yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExpectedChannelReply {
    /// If granted, the server may open `x11` channels.
    X11,
    /// If granted, the server may open agent channels.
    Agent,
    /// The answer has no effect here.
    Plain,
}

/// Send and receive windows of a channel, and the state of both sides.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) stage: ChannelStage,
    /// The peer's number; 0 while the channel is requested locally.
    pub(super) remote: u32,
    pub(super) intake: ReceiveWindow,
    /// Number of bytes that may still be sent.
    pub(super) window: u32,
    /// Maximum number of data bytes in one message to the peer.
    pub(super) max_send: u32,

    pub(super) sent_eof: bool,
    pub(super) sent_close: bool,
    pub(super) got_eof: bool,
    pub(super) got_close: bool,
    /// The application has closed the channel: data is no longer read.
    pub(super) closed_locally: bool,

    pub(super) owed: OrderedReplies<bool>,
    pub(super) expected: VecDeque<ExpectedChannelReply>,
    pub(super) x11: bool,
    pub(super) agent: bool,

    /// For an application-defined type: size of its name and data in bytes, which count while it is
    /// pending.
    pub(super) own: Option<usize>,

    pub(super) turn: WriterState,
    /// The channel is in the queue of those whose window has to be widened.
    pub(super) in_adjusts: bool,
}

impl Channel {
    pub(super) fn new(stage: ChannelStage, remote: u32, window: u32) -> Self {
        Self {
            stage,
            remote,
            intake: ReceiveWindow::new(window),
            window: 0,
            max_send: 0,
            sent_eof: false,
            sent_close: false,
            got_eof: false,
            got_close: false,
            closed_locally: false,
            owed: OrderedReplies::default(),
            expected: VecDeque::new(),
            x11: false,
            agent: false,
            own: None,
            turn: WriterState::Idle,
            in_adjusts: false,
        }
    }

    /// Sets the window and the message size that the peer accepts.
    pub(super) fn set_peer_limits(
        &mut self,
        window: u32,
        max_packet: u32,
        limits: &ConnectionLimits,
    ) {
        self.window = window;
        self.max_send = max_packet.min(limits.max_send);
    }

    /// True if data and EOF may be sent.
    pub(super) fn can_write(&self) -> bool {
        self.stage == ChannelStage::Open && !self.sent_eof && !self.sent_close
    }

    /// True if requests and answers may be sent.
    pub(super) fn can_send_requests(&self) -> bool {
        self.stage == ChannelStage::Open && !self.sent_close
    }

    /// True if the peer may still send data, so that widening the window is useful.
    pub(super) const fn is_receiving(&self) -> bool {
        !self.got_eof && !self.got_close && !self.sent_close
    }

    /// True if the channel has ended on both sides, and its data was consumed.
    pub(super) const fn is_over(&self) -> bool {
        self.sent_close && self.got_close && (self.closed_locally || self.intake.unread() == 0)
    }
}
