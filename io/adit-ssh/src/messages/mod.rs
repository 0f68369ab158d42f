//! Sessions message by message: for programs that want all that happens in one order.
//!
//! [`Entrance::enter_by_messages`](super::client::Entrance::enter_by_messages) and
//! [`Server::accept_by_messages`](super::server::Server::accept_by_messages) give a [`Feed`] instead
//! of streams and wishes. It tells everything of the session, its channels' bytes too, one thing
//! after the other. The same messages are in each [`MessageChannel`], for those who look at one
//! channel alone; there bytes that are not taken out hold back the channel's window. What is sent in
//! a channel leaves in its order: bytes of both streams, words, ends.
//!
//! # Bounds
//!
//! While 32 things wait in the feed nothing more is read from the peer. Bytes in a channel are
//! bounded by its window, other messages by [`Bounds::messages`]: further ones are in the feed alone.
//! Of what is to be sent 16 MiB may wait in a channel, and 2048 pieces and words.

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

/// Things that wait to be heard before the task reads no more.
const MAX_TOLD: usize = 32;
/// And what there is room for: one message may lead to several.
const ROOM: usize = 2 * MAX_TOLD;

/// Something that has happened in a session.
#[derive(Debug)]
pub enum Told {
    /// The peer wants a channel. Its messages may be taken, and words for it be said, before it is
    /// accepted by [`Opening::accept_messages`].
    Wanted(Opening, MessageChannel),
    /// The peer has refused a channel of this end; so is told who wanted it.
    Refused {
        /// The channel.
        channel: ChannelId,
        /// Why.
        reason: OpenFailure,
        /// The peer's words, printable characters only.
        text: String,
    },
    /// Something came in a channel.
    Came(ChannelId, Message),
    /// A request outside of channels.
    Global(GlobalRequest, GlobalReply),
}

/// What happens in a session, in its order. When it is dropped the session ends.
#[derive(Debug)]
pub struct Feed {
    mail: Arc<Mail>,
    told: mpsc::Receiver<Heard>,
    stalls: Arc<AtomicBool>,
}

/// What is told, with the reply that is owed once it is heard.
type Heard = (Told, Option<ReplyTo>);

/// The end of a feed that tells.
pub(super) struct Teller {
    pub(super) bounds: Bounds,
    to: mpsc::Sender<Heard>,
    /// The task waits until all is heard.
    stalls: Arc<AtomicBool>,
}

impl Teller {
    /// Both ends of a feed.
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

    /// Whether so much waits to be heard that nothing is to be read.
    pub(super) fn stalls(&self) -> bool {
        let full = self.to.capacity() <= ROOM - MAX_TOLD;
        self.stalls.store(full, Ordering::SeqCst);
        full
    }

    /// Whether the task has waited, and all is heard.
    pub(super) fn goes_on(&self) -> bool {
        self.stalls.load(Ordering::SeqCst) && self.to.capacity() == ROOM
    }
}

/// Speaks in a session that goes message by message. It does not keep it alive.
#[derive(Debug, Clone)]
pub struct Speaker(Arc<Mail>);

impl Feed {
    /// What has happened next. Cancel-safe.
    ///
    /// # Errors
    /// The session's end, once its last words have left.
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

    /// What speaks in the session, for other tasks too.
    #[must_use]
    pub fn speaker(&self) -> Speaker {
        Speaker(Arc::clone(&self.mail))
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        // Over is as good.
        let _ = self.speaker().leave(Disconnect::ByApplication, "");
    }
}

impl Speaker {
    /// A channel that has not closed.
    #[must_use]
    pub fn channel(&self, id: ChannelId) -> Option<MessageChannel> {
        self.0.channel(id).map(MessageChannel::new)
    }

    /// Opens a channel.
    ///
    /// # Errors
    /// The peer refused it, there are too many, or the session is over.
    pub async fn open(&self, kind: ChannelKind) -> Result<MessageChannel, OpenError> {
        let opened = self.0.open(kind).await?;
        let pipe = Arc::clone(opened.pipe());
        pipe.lock().keep();
        Ok(MessageChannel::new(pipe))
    }

    /// Asks for something outside of channels, or tells it.
    ///
    /// # Errors
    /// The peer refused it, there are too many without an answer, or the session is over.
    pub async fn global(&self, request: GlobalRequest) -> Result<GlobalAnswer, RequestError> {
        self.0.global(request, None).await
    }

    /// Makes new keys now.
    ///
    /// # Errors
    /// The session is over.
    pub fn rekey(&self) -> Result<(), End> {
        self.0.send(Command::Rekey)
    }

    /// Ends the session once what the peer takes now was sent, within five seconds.
    ///
    /// # Errors
    /// It is over.
    pub fn leave(&self, reason: Disconnect, text: impl Into<String>) -> Result<(), End> {
        let text = text.into();
        self.0.send(Command::Leave { reason, text })
    }

    /// Why the session is over, if it is.
    #[must_use]
    pub fn end(&self) -> Option<End> {
        self.0.end()
    }
}
