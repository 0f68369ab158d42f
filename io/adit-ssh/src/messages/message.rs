//! What comes and goes in a channel, message by message.

use std::sync::Arc;

use adit_ssh_proto::connection::{Kind, Request, WantReply};

/// What may wait in a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Messages without bytes that wait to be taken out.
    pub messages: usize,
    /// Pieces of data that wait to be sent before [`MessageChannel::poll_room`](super::MessageChannel::poll_room) waits too.
    pub pieces: usize,
}

/// Something that came in a channel.
#[derive(Debug, Clone)]
pub enum Message {
    /// Bytes of one of its streams.
    Data(Kind, Arc<[u8]>),
    /// The peer asks for something, or tells it.
    Request {
        /// What.
        request: Arc<Request>,
        /// Whether it waits for [`MessageChannel::answer`](super::MessageChannel::answer).
        wants_reply: bool,
    },
    /// The answer to the oldest request of this end that wants one.
    Answer(bool),
    /// A window that was used up has room again: octets that the next message may have.
    Room(usize),
    /// The peer sends no more bytes.
    Eof,
    /// The channel has closed. Nothing follows.
    Closed,
}

/// Something to be sent in a channel.
#[derive(Debug)]
pub enum Say<'a> {
    /// Bytes of one of its streams.
    Data(Kind, &'a [u8]),
    /// A request, behind what was said before.
    Behind(Request),
    /// A request, ahead of the bytes that wait. The answer comes as [`Message::Answer`].
    Ahead(Request, WantReply),
    /// The end of the own side.
    Eof,
    /// The end of the channel.
    Close,
}
