//! The connection as passed to a server's handler.

use std::sync::Arc;

use adit_ssh::messages::OutgoingMessage;
use adit_ssh_proto::connection::{DataKind, SshChannelRequest};
use bytes::Bytes;

use super::{Config, Handle};
use crate::session_core::{CHANNEL_STDERR, SessionCore};
use crate::{ChannelId, Disconnect, Error, Sig};

/// A connection as passed to a [`Handler`](super::Handler). Its methods do not wait. Messages in a
/// channel keep their order: bytes, exit status, EOF and close.
#[derive(Debug)]
pub struct Session {
    core: Arc<SessionCore>,
    config: Arc<Config>,
}

type SendResult = Result<(), Error>;

/// Creates the message about a signal that terminated a program.
pub(super) fn exit_signal_message(
    signal: &Sig,
    core_dumped: bool,
    message: &str,
) -> OutgoingMessage<'static> {
    OutgoingMessage::QueuedRequest(SshChannelRequest::ExitSignal {
        name: signal.name().to_owned(),
        core_dumped,
        message: message.to_owned(),
    })
}

impl Session {
    pub(super) const fn new(core: Arc<SessionCore>, config: Arc<Config>) -> Self {
        Self { core, config }
    }

    /// Returns a handle for other tasks.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle::new(Arc::clone(&self.core))
    }

    /// Returns the server's configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Sends bytes in a channel, as its window allows.
    ///
    /// # Errors
    /// The connection is over; [`Error::Pending`] if too much waits to be sent. The same applies to the
    /// following methods. In a closed channel, messages are dropped.
    pub fn data(&mut self, channel: ChannelId, data: impl Into<Bytes>) -> SendResult {
        self.core.send_message(
            channel.0,
            OutgoingMessage::Data(DataKind::Stdout, &data.into()),
        )
    }

    /// Sends bytes in another stream: 1 is standard error, the only one.
    ///
    /// # Errors
    /// The errors of [`Session::data`]; [`Error::Inconsistent`] for another number.
    pub fn extended_data(
        &mut self,
        channel: ChannelId,
        extended: u32,
        data: impl Into<Bytes>,
    ) -> SendResult {
        if extended != CHANNEL_STDERR {
            return Err(Error::Inconsistent);
        }
        self.core.send_message(
            channel.0,
            OutgoingMessage::Data(DataKind::Stderr, &data.into()),
        )
    }

    /// Sends EOF in a channel.
    ///
    /// # Errors
    /// The errors of [`Session::data`].
    pub fn eof(&mut self, channel: ChannelId) -> SendResult {
        self.core.send_message(channel.0, OutgoingMessage::Eof)
    }

    /// Closes a channel.
    ///
    /// # Errors
    /// The errors of [`Session::data`].
    pub fn close(&mut self, channel: ChannelId) -> SendResult {
        self.core.send_message(channel.0, OutgoingMessage::Close)
    }

    /// Sends the program's exit status.
    ///
    /// # Errors
    /// The errors of [`Session::data`].
    pub fn exit_status_request(&mut self, channel: ChannelId, exit_status: u32) -> SendResult {
        let told = OutgoingMessage::QueuedRequest(SshChannelRequest::ExitStatus(exit_status));
        self.core.send_message(channel.0, told)
    }

    /// Reports that a signal terminated the program. The language tag is not sent: it has no use.
    ///
    /// # Errors
    /// The errors of [`Session::data`].
    pub fn exit_signal_request(
        &mut self,
        channel: ChannelId,
        signal: Sig,
        core_dumped: bool,
        error_message: &str,
        _language: &str,
    ) -> SendResult {
        let told = exit_signal_message(&signal, core_dumped, error_message);
        self.core.send_message(channel.0, told)
    }

    /// Sends whether the client may handle flow control by ^S and ^Q itself.
    ///
    /// # Errors
    /// The errors of [`Session::data`].
    pub fn xon_xoff_request(&mut self, channel: ChannelId, client_can_do: bool) -> SendResult {
        let told = OutgoingMessage::QueuedRequest(SshChannelRequest::FlowControl(client_can_do));
        self.core.send_message(channel.0, told)
    }

    /// Grants the oldest unanswered request of a channel.
    ///
    /// # Errors
    /// The connection is over.
    pub fn channel_success(&mut self, channel: ChannelId) -> SendResult {
        self.core.reply_to_oldest(channel.0, true)
    }

    /// Refuses the oldest unanswered request of a channel.
    ///
    /// # Errors
    /// The connection is over.
    pub fn channel_failure(&mut self, channel: ChannelId) -> SendResult {
        self.core.reply_to_oldest(channel.0, false)
    }

    /// Ends the connection once the queued data was sent. The language tag is not sent: it has no use.
    ///
    /// # Errors
    /// Fails if the connection is over.
    pub fn disconnect(&mut self, reason: Disconnect, words: &str, _language: &str) -> SendResult {
        self.core.disconnect(reason, words)
    }
}
