//! Channels, message by message.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use adit_ssh_proto::connection::ChannelId;

use super::{Message, Say};
use crate::error::RequestError;
use crate::mail::Command;
use crate::pipe::Pipe;

/// A channel, message by message. It keeps the session alive. Dropping it does not close the channel:
/// use [`Say::Close`]. Clones refer to the same channel.
pub struct MessageChannel(Arc<Pipe>);

impl MessageChannel {
    pub(crate) fn new(pipe: Arc<Pipe>) -> Self {
        pipe.mail.hold();
        Self(pipe)
    }

    /// Returns the channel number at this end.
    #[must_use]
    pub fn id(&self) -> ChannelId {
        self.0.id
    }

    /// Returns the next message, or `None` once the channel has closed. Only one task may poll at a
    /// time.
    pub fn poll_next(&self, cx: &Context<'_>) -> Poll<Option<Message>> {
        let message = ready!(self.0.lock().poll_message(cx));
        match &message {
            Some(Message::Data(_, bytes)) => self.0.consumed(bytes.len()),
            // A closed channel lasts until the driver knows that all of its messages were read.
            Some(Message::Closed) => self.0.mail.poke(&self.0),
            _ => {}
        }
        Poll::Ready(message)
    }

    /// Stops reading messages: from now on they arrive in the feed alone.
    pub fn deafen(&self) {
        let left = self.0.lock().deafen_messages();
        self.0.consumed(left);
        self.0.mail.poke(&self.0);
    }

    /// Waits until the channel can accept more data and returns the maximum size of the next write, in
    /// bytes.
    ///
    /// # Errors
    /// The channel has closed, or the session is over.
    pub fn poll_room(&self, cx: &Context<'_>) -> Poll<Result<usize, RequestError>> {
        self.0.lock().poll_room(cx)
    }

    /// Queues a message to be sent, without waiting.
    ///
    /// # Errors
    /// This end has sent EOF, the channel has closed, the session is over, or too much is queued
    /// ([`CallError::Full`](adit_ssh_proto::connection::CallError::Full)).
    pub fn say(&self, say: Say<'_>) -> Result<(), RequestError> {
        self.0.lock().say(say, &self.0.mail.spares)?;
        self.0.mail.poke(&self.0);
        Ok(())
    }

    /// Replies to the oldest request of the peer that was read from the feed and waits for a reply.
    /// Does nothing if there is none.
    pub fn answer(&self, ok: bool) {
        let to = self.0.lock().owed.pop_front();
        self.give(to, ok);
    }

    /// Replies to the most recent such request.
    pub fn answer_last(&self, ok: bool) {
        let to = self.0.lock().owed.pop_back();
        self.give(to, ok);
    }

    fn give(&self, to: Option<adit_ssh_proto::connection::ReplyTo>, ok: bool) {
        if let Some(to) = to {
            // Nobody waits for the reply once the session is over.
            let _ = self.0.mail.send(Command::Answer { to, ok });
        }
    }
}

impl Clone for MessageChannel {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.0))
    }
}

impl Drop for MessageChannel {
    fn drop(&mut self) {
        self.0.mail.release();
    }
}

impl fmt::Debug for MessageChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MessageChannel").field(&self.0.id).finish()
    }
}
