//! Channels, message by message.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use adit_ssh_proto::connection::ChannelId;

use super::{Message, OutgoingMessage};
use crate::error::RequestError;
use crate::shared_channel::SharedChannel;
use crate::shared_session::Command;

/// A channel, message by message. It keeps the session alive. Dropping it does not close the channel:
/// use [`OutgoingMessage::Close`]. Clones refer to the same channel.
pub struct MessageChannel(Arc<SharedChannel>);

impl MessageChannel {
    pub(crate) fn new(pipe: Arc<SharedChannel>) -> Self {
        pipe.mail.add_handle();
        Self(pipe)
    }

    /// Returns the channel number at this end.
    #[must_use]
    pub fn id(&self) -> ChannelId {
        self.0.id
    }

    /// Returns the next message, or `None` once the channel has closed. Only one task may poll at a
    /// time.
    pub fn poll_message(&self, cx: &Context<'_>) -> Poll<Option<Message>> {
        let message = ready!(self.0.lock().poll_message(cx));
        match &message {
            Some(Message::Data(_, bytes)) => self.0.report_consumed(bytes.len()),
            // A closed channel lasts until the driver knows that all of its messages were read.
            Some(Message::Closed) => self.0.mail.mark_dirty(&self.0),
            _ => {}
        }
        Poll::Ready(message)
    }

    /// Stops reading messages: from now on they arrive in the feed alone.
    pub fn stop_reading(&self) {
        let left = self.0.lock().stop_reading_messages();
        self.0.report_consumed(left);
        self.0.mail.mark_dirty(&self.0);
    }

    /// Waits until the channel can accept more data and returns the maximum size of the next write, in
    /// bytes.
    ///
    /// # Errors
    /// The channel has closed, or the session is over.
    pub fn poll_capacity(&self, cx: &Context<'_>) -> Poll<Result<usize, RequestError>> {
        self.0.lock().poll_capacity(cx)
    }

    /// Queues a message to be sent, without waiting.
    ///
    /// # Errors
    /// This end has sent EOF, the channel has closed, the session is over, or too much is queued
    /// ([`ChannelCallError::Full`](adit_ssh_proto::connection::ChannelCallError::Full)).
    pub fn send_message(&self, say: OutgoingMessage<'_>) -> Result<(), RequestError> {
        self.0.lock().queue_message(say, &self.0.mail.spares)?;
        self.0.mail.mark_dirty(&self.0);
        Ok(())
    }

    /// Replies to the oldest request of the peer that was read from the feed and waits for a reply.
    /// Does nothing if there is none.
    pub fn reply_to_oldest(&self, ok: bool) {
        let to = self.0.lock().owed_replies.pop_front();
        self.send_reply(to, ok);
    }

    /// Replies to the most recent such request.
    pub fn reply_to_latest(&self, ok: bool) {
        let to = self.0.lock().owed_replies.pop_back();
        self.send_reply(to, ok);
    }

    fn send_reply(&self, to: Option<adit_ssh_proto::connection::PendingReply>, ok: bool) {
        if let Some(to) = to {
            // No one waits for the reply once the session is over.
            let _ = self.0.mail.send_command(Command::Answer { to, ok });
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
        self.0.mail.remove_handle();
    }
}

impl fmt::Debug for MessageChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MessageChannel").field(&self.0.id).finish()
    }
}
