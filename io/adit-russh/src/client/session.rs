//! The session as passed to a client's handler.

use std::sync::Arc;

use adit_ssh::messages::OutgoingMessage;
use adit_ssh_proto::connection::{DataKind, SshChannelRequest};
use bytes::Bytes;

use crate::session_core::{SessionCore, reply_wanted};
use crate::{ChannelId, Disconnect, Error, Pty, Sig, pty};

/// A session as passed to a [`Handler`](super::Handler). Its methods do not wait.
#[derive(Debug)]
pub struct Session {
    core: Arc<SessionCore>,
}

type SendResult = Result<(), Error>;

impl Session {
    pub(super) const fn new(core: Arc<SessionCore>) -> Self {
        Self { core }
    }

    /// Sends bytes in a channel, as its window allows.
    ///
    /// # Errors
    /// The session is over; [`Error::Pending`] if too much waits to be sent. The same applies to the
    /// following methods. In a closed channel, messages are dropped.
    pub fn data(&mut self, channel: ChannelId, data: impl Into<Bytes>) -> SendResult {
        self.core.send_message(
            channel.0,
            OutgoingMessage::Data(DataKind::Stdout, &data.into()),
        )
    }

    /// Sends EOF in a channel, after the bytes that were sent.
    ///
    /// # Errors
    /// The errors of [`Session::data`].
    pub fn eof(&mut self, channel: ChannelId) -> SendResult {
        self.core.send_message(channel.0, OutgoingMessage::Eof)
    }

    /// Closes a channel, after the bytes that were sent.
    ///
    /// # Errors
    /// The errors of [`Session::data`].
    pub fn close(&mut self, channel: ChannelId) -> SendResult {
        self.core.send_message(channel.0, OutgoingMessage::Close)
    }

    fn send_request(
        &self,
        channel: ChannelId,
        request: SshChannelRequest,
        want_reply: bool,
    ) -> SendResult {
        let request = OutgoingMessage::UrgentRequest(request, reply_wanted(want_reply));
        self.core.send_message(channel.0, request)
    }

    /// Requests a terminal.
    ///
    /// # Errors
    /// The errors of [`Session::data`].
    #[allow(clippy::too_many_arguments, reason = "same signature as in russh")]
    pub fn request_pty(
        &mut self,
        channel: ChannelId,
        want_reply: bool,
        term: &str,
        col_width: u32,
        row_height: u32,
        pix_width: u32,
        pix_height: u32,
        terminal_modes: &[(Pty, u32)],
    ) -> SendResult {
        let size = [col_width, row_height, pix_width, pix_height];
        let pty = pty::terminal_request(term, size, terminal_modes);
        self.send_request(channel, SshChannelRequest::Pty(pty), want_reply)
    }

    /// Requests the user's shell.
    ///
    /// # Errors
    /// The errors of [`Session::data`].
    pub fn request_shell(&mut self, want_reply: bool, channel: ChannelId) -> SendResult {
        self.send_request(channel, SshChannelRequest::Shell, want_reply)
    }

    /// Requests to run a command.
    ///
    /// # Errors
    /// The errors of [`Session::data`].
    pub fn exec(&mut self, channel: ChannelId, want_reply: bool, command: &[u8]) -> SendResult {
        let request = SshChannelRequest::Exec(command.to_vec());
        self.send_request(channel, request, want_reply)
    }

    /// Requests a subsystem.
    ///
    /// # Errors
    /// The errors of [`Session::data`].
    pub fn request_subsystem(
        &mut self,
        want_reply: bool,
        channel: ChannelId,
        name: &str,
    ) -> SendResult {
        let request = SshChannelRequest::Subsystem(name.to_owned());
        self.send_request(channel, request, want_reply)
    }

    /// Sends the terminal's new size.
    ///
    /// # Errors
    /// The errors of [`Session::data`].
    pub fn window_change(
        &mut self,
        channel: ChannelId,
        col_width: u32,
        row_height: u32,
        pix_width: u32,
        pix_height: u32,
    ) -> SendResult {
        let size = pty::to_size([col_width, row_height, pix_width, pix_height]);
        let request = SshChannelRequest::WindowChange(size);
        self.send_request(channel, request, false)
    }

    /// Sends a signal to the program.
    ///
    /// # Errors
    /// The errors of [`Session::data`].
    pub fn signal(&mut self, channel: ChannelId, signal: Sig) -> SendResult {
        let request = SshChannelRequest::Signal(signal.name().to_owned());
        self.send_request(channel, request, false)
    }

    /// Ends the session once the queued data was sent. The language tag is not sent: it has no use.
    ///
    /// # Errors
    /// Fails if the session is over.
    pub fn disconnect(&mut self, reason: Disconnect, words: &str, _language: &str) -> SendResult {
        self.core.disconnect(reason, words)
    }

    /// Starts a key re-exchange.
    ///
    /// # Errors
    /// Fails if the session is over.
    pub fn initiate_rekey(&mut self) -> SendResult {
        self.core.start_rekey()
    }
}
