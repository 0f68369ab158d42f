//! Messages of a channel, in both directions.

use std::sync::Arc;

use adit_ssh_proto::connection::{DataKind, SshChannelRequest, WantReply};

/// Limits on what may be queued in a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueLimits {
    /// Maximum number of messages other than data that wait to be read.
    pub messages: usize,
    /// Number of data chunks that wait to be sent at which
    /// [`MessageChannel::poll_capacity`](super::MessageChannel::poll_capacity) waits.
    pub chunks: usize,
}

impl QueueLimits {
    /// Creates limits of 100 messages and 8 chunks.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            messages: 100,
            chunks: 8,
        }
    }
}

impl Default for QueueLimits {
    /// Returns the same as [`new`](Self::new).
    fn default() -> Self {
        Self::new()
    }
}

/// A message that was received in a channel.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Message {
    /// Bytes of one of the channel's streams.
    Data(DataKind, Arc<[u8]>),
    /// A request or a notification of the peer.
    Request {
        /// The request.
        request: Arc<SshChannelRequest>,
        /// True if the peer waits for [`MessageChannel::reply_to_oldest`](super::MessageChannel::reply_to_oldest).
        wants_reply: bool,
    },
    /// The reply to the oldest request of this end that wants one.
    Answer(bool),
    /// An exhausted window was extended; the maximum size of the next data message, in bytes.
    Capacity(usize),
    /// The peer sends no more bytes.
    Eof,
    /// The channel has closed. This is the last message.
    Closed,
}

/// A message to be sent in a channel.
#[derive(Debug)]
#[non_exhaustive]
pub enum OutgoingMessage<'a> {
    /// Bytes of one of the channel's streams.
    Data(DataKind, &'a [u8]),
    /// A request, after everything queued before.
    QueuedRequest(SshChannelRequest),
    /// A request, ahead of queued bytes. The reply arrives as [`Message::Answer`].
    UrgentRequest(SshChannelRequest, WantReply),
    /// The end of this end's bytes.
    Eof,
    /// The close of the channel.
    Close,
}
