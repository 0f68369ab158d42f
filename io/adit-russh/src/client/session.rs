//! The session as passed to a client's handler.

use std::sync::Arc;

use adit_ssh::messages::Say;
use adit_ssh_proto::connection::{Kind, Request};
use bytes::Bytes;

use crate::core::{Core, want};
use crate::{ChannelId, Disconnect, Error, Pty, Sig, pty};

/// A session as passed to a [`Handler`](super::Handler). Its methods do not wait.
#[derive(Debug)]
pub struct Session {
    core: Arc<Core>,
}

type Done = Result<(), Error>;

impl Session {
    pub(super) const fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// Sends bytes in a channel, as its window allows.
    ///
    /// # Errors
    /// The session is over; [`Error::Pending`] if too much waits to be sent. The same applies to the
    /// following methods. In a closed channel, messages are dropped.
    pub fn data(&mut self, channel: ChannelId, data: impl Into<Bytes>) -> Done {
        self.core
            .say(channel.0, Say::Data(Kind::Stdout, &data.into()))
    }

    /// Sends EOF in a channel, after the bytes that were sent.
    ///
    /// # Errors
    /// The errors of [`Session::data`].
    pub fn eof(&mut self, channel: ChannelId) -> Done {
        self.core.say(channel.0, Say::Eof)
    }

    /// Closes a channel, after the bytes that were sent.
    ///
    /// # Errors
    /// The errors of [`Session::data`].
    pub fn close(&mut self, channel: ChannelId) -> Done {
        self.core.say(channel.0, Say::Close)
    }

    fn ask(&self, channel: ChannelId, request: Request, want_reply: bool) -> Done {
        let request = Say::Ahead(request, want(want_reply));
        self.core.say(channel.0, request)
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
    ) -> Done {
        let size = [col_width, row_height, pix_width, pix_height];
        let pty = pty::wanted(term, size, terminal_modes);
        self.ask(channel, Request::Pty(pty), want_reply)
    }

    /// Requests the user's shell.
    ///
    /// # Errors
    /// The errors of [`Session::data`].
    pub fn request_shell(&mut self, want_reply: bool, channel: ChannelId) -> Done {
        self.ask(channel, Request::Shell, want_reply)
    }

    /// Requests to run a command.
    ///
    /// # Errors
    /// The errors of [`Session::data`].
    pub fn exec(&mut self, channel: ChannelId, want_reply: bool, command: &[u8]) -> Done {
        let request = Request::Exec(command.to_vec());
        self.ask(channel, request, want_reply)
    }

    /// Requests a subsystem.
    ///
    /// # Errors
    /// The errors of [`Session::data`].
    pub fn request_subsystem(&mut self, want_reply: bool, channel: ChannelId, name: &str) -> Done {
        let request = Request::Subsystem(name.to_owned());
        self.ask(channel, request, want_reply)
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
    ) -> Done {
        let size = pty::size([col_width, row_height, pix_width, pix_height]);
        let request = Request::WindowChange(size);
        self.ask(channel, request, false)
    }

    /// Sends a signal to the program.
    ///
    /// # Errors
    /// The errors of [`Session::data`].
    pub fn signal(&mut self, channel: ChannelId, signal: Sig) -> Done {
        let request = Request::Signal(signal.name().to_owned());
        self.ask(channel, request, false)
    }

    /// Ends the session once the queued data was sent. The language tag is not sent: it has no use.
    ///
    /// # Errors
    /// Fails if the session is over.
    pub fn disconnect(&mut self, reason: Disconnect, words: &str, _language: &str) -> Done {
        self.core.disconnect(reason, words)
    }

    /// Starts a key re-exchange.
    ///
    /// # Errors
    /// Fails if the session is over.
    pub fn initiate_rekey(&mut self) -> Done {
        self.core.rekey()
    }
}
