//! Results of handling a payload, and events.

use core::ops::Range;

use super::{
    ChannelId, ChannelKind, GlobalAnswer, GlobalRequest, GlobalRequestId, OpenFailureReason,
    PendingGlobalReply, PendingReply, SshChannelRequest,
};

/// One of a channel's two streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DataKind {
    /// Channel data (message CHANNEL_DATA).
    Stdout,
    /// Standard error: extended data of type 1.
    Stderr,
}

/// Result of handling a payload.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum HandledInput {
    /// Bytes of a channel, at least one. Call [`Connection::consume_data`](super::Connection::consume_data)
    /// when they were passed on.
    Data {
        /// The channel.
        channel: ChannelId,
        /// Stream of the channel.
        kind: DataKind,
        /// Position of the bytes in the payload.
        range: Range<usize>,
    },
    /// Another message was handled; there may be events and output.
    Done,
    /// The message number does not belong to this protocol: the transport answers UNIMPLEMENTED.
    Unknown,
}

/// An event of a connection. Answers may be passed in any order; they are sent in the order of the
/// requests.
///
/// The enum is exhaustive: an owner that ignored an event would leave a channel or a request of the peer waiting.
#[derive(Debug, PartialEq, Eq)]
pub enum ConnectionEvent {
    /// The peer requests a channel that this end may accept. Answer with
    /// [`confirm_open`](super::Connection::confirm_open) or [`refuse_open`](super::Connection::refuse_open).
    Open {
        /// Its identifier from now on.
        channel: ChannelId,
        /// Type of the channel.
        kind: ChannelKind,
    },
    /// The peer has confirmed a local channel.
    Opened(ChannelId),
    /// The peer has refused a local channel, which is gone.
    OpenFailed {
        /// The channel.
        channel: ChannelId,
        /// Reason code.
        reason: OpenFailureReason,
        /// The peer's text: printable characters, 256 at most.
        text: String,
    },
    /// A request in a channel.
    Request {
        /// The channel.
        channel: ChannelId,
        /// The request.
        request: SshChannelRequest,
        /// Token to pass to [`answer`](super::Connection::answer_request), if an answer is wanted.
        reply: Option<PendingReply>,
    },
    /// The answer to the oldest local request in this channel that wants one.
    RequestDone {
        /// The channel.
        channel: ChannelId,
        /// True if the request was granted.
        ok: bool,
    },
    /// The peer will send no more bytes.
    Eof(ChannelId),
    /// The channel has ended; this is the last event with its identifier. It cannot be written to;
    /// bytes received before can still be consumed. Unanswered requests stay unanswered.
    Closed(ChannelId),
    /// A channel whose window was used up can be written again.
    Writable(ChannelId),
    /// A request outside of channels.
    GlobalRequest {
        /// The request.
        request: GlobalRequest,
        /// Token to pass to [`answer_global`](super::Connection::answer_global), if an answer is
        /// wanted.
        reply: Option<PendingGlobalReply>,
    },
    /// The answer to a local request outside of channels.
    GlobalReply {
        /// The request.
        id: GlobalRequestId,
        /// The peer's answer.
        answer: GlobalAnswer,
    },
}
