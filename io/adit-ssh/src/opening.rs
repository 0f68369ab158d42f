//! Channels that the peer asks to open.

use std::fmt;
use std::sync::Arc;

use adit_ssh_proto::connection::{ChannelKind, OpenFailure};

use super::channel::{Channel, Handle};
use super::error::End;
use super::mail::Command;
use super::pipe::Pipe;

/// A request of the peer to open a channel. Dropping it without an answer refuses the channel: as an
/// unknown type if it is of an [application-defined type](super::own), as prohibited otherwise.
pub struct Opening {
    kind: ChannelKind,
    pipe: Option<Arc<Pipe>>,
}

impl Opening {
    pub(super) fn new(kind: ChannelKind, pipe: Arc<Pipe>) -> Self {
        pipe.mail.hold();
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
    pub fn accept(self) -> Result<Channel, End> {
        Ok(Channel::new(self.confirm()?))
    }

    /// Opens the channel for a program that reads its [messages](super::messages).
    ///
    /// # Errors
    /// Returns the reason if the session is over.
    pub fn accept_messages(self) -> Result<(), End> {
        self.confirm().map(drop)
    }

    /// Opens the channel; this end answers requests and may write to standard error.
    pub(super) fn confirm_serving(self) -> Result<Handle, End> {
        if let Some(pipe) = &self.pipe {
            pipe.lock().serve();
        }
        self.confirm()
    }

    pub(super) fn confirm(mut self) -> Result<Handle, End> {
        let Some(pipe) = self.pipe.take() else {
            return Err(End::Closed);
        };
        let handle = Handle::new(Arc::clone(&pipe));
        pipe.mail.release();
        pipe.mail.send(Command::Confirm(Arc::clone(&pipe)))?;
        Ok(handle)
    }

    /// Refuses the channel, with an explanation for the peer.
    pub fn refuse(mut self, why: OpenFailure, text: impl Into<String>) {
        self.put_refusal(why, text.into());
    }

    fn put_refusal(&mut self, why: OpenFailure, text: String) {
        if let Some(pipe) = self.pipe.take() {
            let mail = Arc::clone(&pipe.mail);
            // Nobody waits for the answer once the session is over.
            let _ = mail.send(Command::Refuse { pipe, why, text });
            mail.release();
        }
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        let why = match self.kind {
            ChannelKind::Own(_) => OpenFailure::UnknownType,
            _ => OpenFailure::Prohibited,
        };
        self.put_refusal(why, String::new());
    }
}

impl fmt::Debug for Opening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Opening").field(&self.kind).finish()
    }
}
