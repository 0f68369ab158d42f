//! Channels that the peer asks to open.

use std::fmt;
use std::sync::Arc;

use adit_ssh_proto::connection::{ChannelKind, OpenFailureReason};

use super::channel::{Channel, ChannelHandle};
use super::error::SessionEnd;
use super::shared_channel::SharedChannel;
use super::shared_session::Command;

/// A request of the peer to open a channel. Dropping it without an answer refuses the channel: as an
/// unknown type if it is of an [application-defined type](super::custom), as prohibited otherwise.
pub struct IncomingChannel {
    kind: ChannelKind,
    pipe: Option<Arc<SharedChannel>>,
}

impl IncomingChannel {
    pub(super) fn new(kind: ChannelKind, pipe: Arc<SharedChannel>) -> Self {
        pipe.mail.add_handle();
        Self {
            kind,
            pipe: Some(pipe),
        }
    }

    /// Returns the type of the channel and its parameters.
    #[must_use]
    pub const fn kind(&self) -> &ChannelKind {
        &self.kind
    }

    /// Opens the channel.
    ///
    /// # Errors
    /// Returns the reason if the session is over.
    pub fn accept(self) -> Result<Channel, SessionEnd> {
        Ok(Channel::new(self.open_channel()?))
    }

    /// Opens the channel for a program that reads its [messages](super::messages).
    ///
    /// # Errors
    /// Returns the reason if the session is over.
    pub fn accept_in_message_mode(self) -> Result<(), SessionEnd> {
        self.open_channel().map(drop)
    }

    /// Opens the channel; this end answers requests and may write to standard error.
    pub(super) fn open_channel_for_requests(self) -> Result<ChannelHandle, SessionEnd> {
        if let Some(pipe) = &self.pipe {
            pipe.lock().accept_requests();
        }
        self.open_channel()
    }

    pub(super) fn open_channel(mut self) -> Result<ChannelHandle, SessionEnd> {
        let Some(pipe) = self.pipe.take() else {
            return Err(SessionEnd::Closed);
        };
        let handle = ChannelHandle::new(Arc::clone(&pipe));
        pipe.mail.remove_handle();
        pipe.mail
            .send_command(Command::Confirm(Arc::clone(&pipe)))?;
        Ok(handle)
    }

    /// Refuses the channel, with an explanation for the peer.
    pub fn refuse(mut self, why: OpenFailureReason, text: impl Into<String>) {
        self.send_refusal(why, text.into());
    }

    fn send_refusal(&mut self, why: OpenFailureReason, text: String) {
        if let Some(pipe) = self.pipe.take() {
            let mail = Arc::clone(&pipe.mail);
            // No one waits for the answer once the session is over.
            let _ = mail.send_command(Command::Refuse { pipe, why, text });
            mail.remove_handle();
        }
    }
}

impl Drop for IncomingChannel {
    fn drop(&mut self) {
        let why = match self.kind {
            ChannelKind::Custom(_) => OpenFailureReason::UnknownType,
            _ => OpenFailureReason::Prohibited,
        };
        self.send_refusal(why, String::new());
    }
}

impl fmt::Debug for IncomingChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Opening").field(&self.kind).finish()
    }
}
