//! Sessions message by message, for programs that need all events in one order.
//!
//! [`Entrance::enter_by_messages`](super::client::Entrance::enter_by_messages) and
//! [`Server::accept_by_messages`](super::server::Server::accept_by_messages) return a [`Feed`] instead
//! of streams and requests. It yields every event of the session in order, including the bytes of
//! channels. The same messages are in each [`MessageChannel`], for tasks that read one channel alone;
//! there, unread bytes hold back the channel's window. Messages that are sent in a channel keep their
//! order: bytes of both streams, requests, EOF and close.
//!
//! # Bounds
//!
//! While 32 events wait in the feed, nothing more is read from the peer. Bytes in a channel are bounded
//! by its window, other messages by [`Bounds::messages`]: further ones are in the feed alone. At most
//! 16 MiB and 2048 chunks and messages may wait to be sent in a channel.

mod channel;
mod message;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use adit_ssh_proto::Disconnect;
use adit_ssh_proto::connection::{
    ChannelId, ChannelKind, GlobalAnswer, GlobalRequest, OpenFailure, ReplyTo,
};
use tokio::sync::mpsc;

use super::error::{End, OpenError, RequestError};
pub use super::forwards::GlobalReply;
use super::mail::{Command, Mail};
use super::opening::Opening;
pub use channel::MessageChannel;
pub use message::{Bounds, Message, Say};

/// Number of waiting events at which the task stops reading.
const MAX_TOLD: usize = 32;
/// Capacity of the queue of events: one message of the peer may cause several.
const ROOM: usize = 2 * MAX_TOLD;

/// An event of a session.
#[derive(Debug)]
pub enum Told {
    /// The peer asks to open a channel. You may read its messages and queue messages for it before you
    /// accept it by [`Opening::accept_messages`].
    Wanted(Opening, MessageChannel),
    /// The peer refused a channel of this end; the caller of [`Speaker::open`] receives the error as
    /// well.
    Refused {
        /// The channel.
        channel: ChannelId,
        /// The reason code.
        reason: OpenFailure,
        /// The peer's explanation, printable characters only.
        text: String,
    },
    /// A message was received in a channel.
    Came(ChannelId, Message),
    /// The peer sent a global request.
    Global(GlobalRequest, GlobalReply),
}

/// The events of a session, in order. Dropping it ends the session.
#[derive(Debug)]
pub struct Feed {
    mail: Arc<Mail>,
    told: mpsc::Receiver<Heard>,
    stalls: Arc<AtomicBool>,
}

/// An event, with the reply that becomes due once the event is read.
type Heard = (Told, Option<ReplyTo>);

/// The sending half of a feed.
pub(super) struct Teller {
    pub(super) bounds: Bounds,
    to: mpsc::Sender<Heard>,
    /// True if the task waits until all events are read.
    stalls: Arc<AtomicBool>,
}

impl Teller {
    /// Creates both halves of a feed.
    pub(super) fn new(mail: &Arc<Mail>, bounds: Bounds) -> (Self, Feed) {
        let (to, told) = mpsc::channel(ROOM);
        let stalls = Arc::new(AtomicBool::new(false));
        let feed = Feed {
            mail: Arc::clone(mail),
            told,
            stalls: Arc::clone(&stalls),
        };
        (Self { bounds, to, stalls }, feed)
    }

    pub(super) fn tell(&self, told: Told, owed: Option<ReplyTo>) {
        // Without a feed the session ends.
        let _ = self.to.try_send((told, owed));
    }

    /// Returns true if so many events wait that the task must not read.
    pub(super) fn stalls(&self) -> bool {
        let full = self.to.capacity() <= ROOM - MAX_TOLD;
        self.stalls.store(full, Ordering::SeqCst);
        full
    }

    /// Returns true if the task has stopped reading and all events are read.
    pub(super) fn goes_on(&self) -> bool {
        self.stalls.load(Ordering::SeqCst) && self.to.capacity() == ROOM
    }
}

/// A handle that acts in a session in message mode. It does not keep the session alive.
#[derive(Debug, Clone)]
pub struct Speaker(Arc<Mail>);

impl Feed {
    /// Returns the next event.
    ///
    /// # Errors
    /// Returns the reason why the session ended, after its last events were read.
    ///
    /// # Cancel safety
    /// This method is cancel-safe.
    pub async fn next(&mut self) -> Result<Told, End> {
        let Some((told, owed)) = self.told.recv().await else {
            return Err(self.mail.end().unwrap_or(End::Closed));
        };
        if self.told.is_empty() && self.stalls.load(Ordering::SeqCst) {
            self.mail.nudge();
        }
        if let (Told::Came(id, _), Some(owed)) = (&told, owed)
            && let Some(channel) = self.mail.channel(*id)
        {
            channel.lock().owed.push_back(owed);
        }
        Ok(told)
    }

    /// Returns a handle that acts in the session, for other tasks.
    #[must_use]
    pub fn speaker(&self) -> Speaker {
        Speaker(Arc::clone(&self.mail))
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        // Nothing to do if the session is over already.
        let _ = self.speaker().leave(Disconnect::ByApplication, "");
    }
}

impl Speaker {
    /// Returns a channel that has not closed.
    #[must_use]
    pub fn channel(&self, id: ChannelId) -> Option<MessageChannel> {
        self.0.channel(id).map(MessageChannel::new)
    }

    /// Opens a channel.
    ///
    /// # Errors
    /// The peer refused it, too many channels are open, or the session is over.
    pub async fn open(&self, kind: ChannelKind) -> Result<MessageChannel, OpenError> {
        let opened = self.0.open(kind).await?;
        let pipe = Arc::clone(opened.pipe());
        pipe.lock().keep();
        Ok(MessageChannel::new(pipe))
    }

    /// Sends a global request, and waits for the answer if it wants one.
    ///
    /// # Errors
    /// The peer refused it, too many requests wait for an answer, or the session is over.
    pub async fn global(&self, request: GlobalRequest) -> Result<GlobalAnswer, RequestError> {
        self.0.global(request, None).await
    }

    /// Starts a key re-exchange.
    ///
    /// # Errors
    /// Returns the reason if the session is over.
    pub fn rekey(&self) -> Result<(), End> {
        self.0.send(Command::Rekey)
    }

    /// Ends the session once the data that the peer accepts now was sent, within five seconds.
    ///
    /// # Errors
    /// Returns the reason if the session is over.
    pub fn leave(&self, reason: Disconnect, text: impl Into<String>) -> Result<(), End> {
        let text = text.into();
        self.0.send(Command::Leave { reason, text })
    }

    /// Returns the reason why the session is over, or `None` if it is not.
    #[must_use]
    pub fn end(&self) -> Option<End> {
        self.0.end()
    }
}
