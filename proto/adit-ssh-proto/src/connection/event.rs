//! What a payload was, and what happened.

use core::ops::Range;

use super::{
    ChannelId, ChannelKind, GlobalAnswer, GlobalId, GlobalReplyTo, GlobalRequest, OpenFailure,
    ReplyTo, Request,
};

/// Which of a channel's two streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The channel's own bytes.
    Stdout,
    /// Standard error: extended data of type 1.
    Stderr,
}

/// What a payload was.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Handled {
    /// Bytes of a channel, at least one. [`Connection::consumed`](super::Connection::consumed) is
    /// to be called once they have gone on.
    Data {
        /// The channel.
        channel: ChannelId,
        /// Which of its streams.
        kind: Kind,
        /// Where the bytes lie in the payload.
        range: Range<usize>,
    },
    /// Something else; there may be events and output.
    Done,
    /// A message number that is not of this protocol: the transport answers UNIMPLEMENTED.
    Unknown,
}

/// What happened. Replies are owed in the order of the requests; they may be given in any.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// The peer wants a channel, which is one that this end may be asked for. Answer it by
    /// [`confirm`](super::Connection::confirm) or [`refuse`](super::Connection::refuse).
    Open {
        /// Its id from now on.
        channel: ChannelId,
        /// What it is for.
        kind: ChannelKind,
    },
    /// The peer has accepted our channel.
    Opened(ChannelId),
    /// The peer has refused our channel, which is gone.
    OpenFailed {
        /// The channel.
        channel: ChannelId,
        /// Why.
        reason: OpenFailure,
        /// The peer's words: printable characters, 256 at most.
        text: String,
    },
    /// A request in a channel.
    Request {
        /// The channel.
        channel: ChannelId,
        /// What is wanted, or told.
        request: Request,
        /// To be given to [`answer`](super::Connection::answer).
        reply: Option<ReplyTo>,
    },
    /// The answer to our oldest request in this channel that wants one.
    RequestDone {
        /// The channel.
        channel: ChannelId,
        /// Whether it was granted.
        ok: bool,
    },
    /// The peer sends no more bytes.
    Eof(ChannelId),
    /// The channel has ended: the last event with its id. It cannot be written to; what came
    /// before can be consumed. Requests without an answer get none any more.
    Closed(ChannelId),
    /// There is room again in a channel whose window was used up.
    Writable(ChannelId),
    /// A request outside of channels.
    GlobalRequest {
        /// What is wanted, or told.
        request: GlobalRequest,
        /// To be given to [`answer_global`](super::Connection::answer_global).
        reply: Option<GlobalReplyTo>,
    },
    /// The answer to a request of ours outside of channels.
    GlobalReply {
        /// Which.
        id: GlobalId,
        /// What the peer says.
        answer: GlobalAnswer,
    },
}
