//! Sessions message by message, for programs that need all events in one order.
//!
//! [`PendingLogin::into_message_session`](super::client::PendingLogin::into_message_session) and
//! [`Server::accept_in_message_mode`](super::server::Server::accept_in_message_mode) return a [`EventFeed`] instead
//! of streams and requests. It yields every event of the session in order, including the bytes of
//! channels. The same messages are in each [`MessageChannel`], for tasks that read one channel alone;
//! there, unread bytes hold back the channel's window. Messages that are sent in a channel keep their
//! order: bytes of both streams, requests, EOF and close.
//!
//! # Bounds
//!
//! While 32 events wait in the feed, nothing more is read from the peer. Bytes in a channel are bounded
//! by its window, other messages by [`QueueLimits::messages`]: further ones are in the feed alone. At most
//! 16 MiB and 2048 chunks and messages may wait to be sent in a channel.

mod channel;
mod message;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use adit_ssh_proto::Disconnect;
use adit_ssh_proto::connection::{
    ChannelId, ChannelKind, GlobalAnswer, GlobalRequest, OpenFailureReason, PendingReply,
};
use tokio::sync::mpsc;

use super::error::{OpenError, RequestError, SessionEnd};
use super::incoming_channel::IncomingChannel;
pub use super::routes::GlobalReply;
use super::shared_session::{Command, SharedSession};
pub use channel::MessageChannel;
pub use message::{Message, OutgoingMessage, QueueLimits};

/// Number of waiting events at which the task stops reading.
const MAX_WAITING_EVENTS: usize = 32;
/// Capacity of the queue of events: one message of the peer may cause several.
const QUEUE_CAPACITY: usize = 2 * MAX_WAITING_EVENTS;

/// An event of a session.
#[derive(Debug)]
#[non_exhaustive]
pub enum SessionEvent {
    /// The peer asks to open a channel. You may read its messages and queue messages for it before you
    /// accept it by [`IncomingChannel::accept_in_message_mode`].
    OpenRequested(IncomingChannel, MessageChannel),
    /// The peer refused a channel of this end; the caller of [`MessageSession::open_channel`] receives the error as
    /// well.
    OpenRefused {
        /// The channel.
        channel: ChannelId,
        /// The reason code.
        reason: OpenFailureReason,
        /// The peer's explanation, printable characters only.
        text: String,
    },
    /// A message was received in a channel.
    Received(ChannelId, Message),
    /// The peer sent a global request.
    GlobalRequest(GlobalRequest, GlobalReply),
}

/// The events of a session, in order. Dropping it ends the session.
#[derive(Debug)]
pub struct EventFeed {
    mail: Arc<SharedSession>,
    events: mpsc::Receiver<QueuedEvent>,
    stalls: Arc<AtomicBool>,
}

/// An event, with the reply that becomes due once the event is read.
type QueuedEvent = (SessionEvent, Option<PendingReply>);

/// The sending half of a feed.
pub(super) struct EventSender {
    pub(super) bounds: QueueLimits,
    to: mpsc::Sender<QueuedEvent>,
    /// True if the task waits until all events are read.
    stalls: Arc<AtomicBool>,
}

impl EventSender {
    /// Creates both halves of a feed.
    pub(super) fn new(mail: &Arc<SharedSession>, bounds: QueueLimits) -> (Self, EventFeed) {
        let (to, told) = mpsc::channel(QUEUE_CAPACITY);
        let stalls = Arc::new(AtomicBool::new(false));
        let feed = EventFeed {
            mail: Arc::clone(mail),
            events: told,
            stalls: Arc::clone(&stalls),
        };
        (Self { bounds, to, stalls }, feed)
    }

    pub(super) fn send_event(&self, told: SessionEvent, owed: Option<PendingReply>) {
        // Without a feed the session ends.
        let _ = self.to.try_send((told, owed));
    }

    /// Returns true if enough events wait that the task must not read.
    pub(super) fn check_stalled(&self) -> bool {
        let full = self.to.capacity() <= QUEUE_CAPACITY - MAX_WAITING_EVENTS;
        self.stalls.store(full, Ordering::SeqCst);
        full
    }

    /// Returns true if the task has stopped reading and all events are read.
    pub(super) fn can_resume(&self) -> bool {
        self.stalls.load(Ordering::SeqCst) && self.to.capacity() == QUEUE_CAPACITY
    }
}

/// A handle that acts in a session in message mode. It does not keep the session alive.
#[derive(Debug, Clone)]
pub struct MessageSession(Arc<SharedSession>);

impl EventFeed {
    /// Returns the next event.
    ///
    /// # Errors
    /// Returns the reason why the session ended, after its last events were read.
    ///
    /// # Cancel safety
    /// This method is cancel-safe.
    pub async fn next_event(&mut self) -> Result<SessionEvent, SessionEnd> {
        let Some((told, owed)) = self.events.recv().await else {
            return Err(self.mail.end_reason().unwrap_or(SessionEnd::Closed));
        };
        if self.events.is_empty() && self.stalls.load(Ordering::SeqCst) {
            self.mail.wake_driver();
        }
        if let (SessionEvent::Received(id, _), Some(owed)) = (&told, owed)
            && let Some(channel) = self.mail.message_channel(*id)
        {
            channel.lock().owed_replies.push_back(owed);
        }
        Ok(told)
    }

    /// Returns a handle that acts in the session, for other tasks.
    #[must_use]
    pub fn session(&self) -> MessageSession {
        MessageSession(Arc::clone(&self.mail))
    }
}

impl Drop for EventFeed {
    fn drop(&mut self) {
        // Nothing to do if the session is over already.
        let _ = self
            .session()
            .disconnect_after_flush(Disconnect::ByApplication, "");
    }
}

impl MessageSession {
    /// Returns a channel that has not closed.
    #[must_use]
    pub fn find_channel(&self, id: ChannelId) -> Option<MessageChannel> {
        self.0.message_channel(id).map(MessageChannel::new)
    }

    /// Opens a channel.
    ///
    /// # Errors
    /// The peer refused it, too many channels are open, or the session is over.
    ///
    /// # Cancel safety
    /// If the call is cancelled, a channel that opens nevertheless is closed.
    pub async fn open_channel(&self, kind: ChannelKind) -> Result<MessageChannel, OpenError> {
        let opened = self.0.open_channel(kind).await?;
        let pipe = Arc::clone(opened.pipe());
        pipe.lock().hold_open();
        Ok(MessageChannel::new(pipe))
    }

    /// Sends a global request, and waits for the answer if it wants one.
    ///
    /// # Errors
    /// The peer refused it, too many requests wait for an answer, or the session is over.
    ///
    /// # Cancel safety
    /// If the call is cancelled, the request may have been sent. Its answer is discarded.
    pub async fn send_global_request(
        &self,
        request: GlobalRequest,
    ) -> Result<GlobalAnswer, RequestError> {
        self.0.send_global_request(request, None).await
    }

    /// Starts a key re-exchange.
    ///
    /// # Errors
    /// Returns the reason if the session is over.
    pub fn rekey(&self) -> Result<(), SessionEnd> {
        self.0.send_command(Command::Rekey)
    }

    /// Ends the session once the data that the peer accepts now was sent, within five seconds.
    ///
    /// # Errors
    /// Returns the reason if the session is over.
    pub fn disconnect_after_flush(
        &self,
        reason: Disconnect,
        text: impl Into<String>,
    ) -> Result<(), SessionEnd> {
        let text = text.into();
        self.0.send_command(Command::Leave { reason, text })
    }

    /// Returns the reason why the session is over, or `None` if it is not.
    #[must_use]
    pub fn end_reason(&self) -> Option<SessionEnd> {
        self.0.end_reason()
    }
}
