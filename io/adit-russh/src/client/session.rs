//! A session as its handler sees it.

use std::sync::Arc;

use adit_ssh::messages::Say;
use adit_ssh_proto::connection::{Kind, Request};
use bytes::Bytes;

use crate::core::{Core, want};
use crate::{ChannelId, Disconnect, Error, Pty, Sig, pty};

/// A session as its [`Handler`](super::Handler) sees it: nothing here waits.
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
    /// The session is over; [`Error::Pending`] if too much waits. So with what follows. In a channel
    /// that has closed it is dropped.
    pub fn data(&mut self, channel: ChannelId, data: impl Into<Bytes>) -> Done {
        self.core
            .say(channel.0, Say::Data(Kind::Stdout, &data.into()))
    }

    /// Ends the own side of a channel, behind the bytes that were sent.
    ///
    /// # Errors
    /// As [`Session::data`].
    pub fn eof(&mut self, channel: ChannelId) -> Done {
        self.core.say(channel.0, Say::Eof)
    }

    /// Closes a channel, behind the bytes that were sent.
    ///
    /// # Errors
    /// As [`Session::data`].
    pub fn close(&mut self, channel: ChannelId) -> Done {
        self.core.say(channel.0, Say::Close)
    }

    fn ask(&self, channel: ChannelId, request: Request, want_reply: bool) -> Done {
        let request = Say::Ahead(request, want(want_reply));
        self.core.say(channel.0, request)
    }

    /// Wants a terminal.
    ///
    /// # Errors
    /// As [`Session::data`].
    #[allow(clippy::too_many_arguments, reason = "as russh has it")]
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

    /// Wants the user's shell.
    ///
    /// # Errors
    /// As [`Session::data`].
    pub fn request_shell(&mut self, want_reply: bool, channel: ChannelId) -> Done {
        self.ask(channel, Request::Shell, want_reply)
    }

    /// Wants a command.
    ///
    /// # Errors
    /// As [`Session::data`].
    pub fn exec(&mut self, channel: ChannelId, want_reply: bool, command: &[u8]) -> Done {
        let request = Request::Exec(command.to_vec());
        self.ask(channel, request, want_reply)
    }

    /// Wants a subsystem.
    ///
    /// # Errors
    /// As [`Session::data`].
    pub fn request_subsystem(&mut self, want_reply: bool, channel: ChannelId, name: &str) -> Done {
        let request = Request::Subsystem(name.to_owned());
        self.ask(channel, request, want_reply)
    }

    /// Tells the terminal's new size.
    ///
    /// # Errors
    /// As [`Session::data`].
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

    /// Sends the program a signal.
    ///
    /// # Errors
    /// As [`Session::data`].
    pub fn signal(&mut self, channel: ChannelId, signal: Sig) -> Done {
        let request = Request::Signal(signal.name().to_owned());
        self.ask(channel, request, false)
    }

    /// Ends the session, once what waits was sent. The language of the words is not told: nobody
    /// reads it.
    ///
    /// # Errors
    /// It is over.
    pub fn disconnect(&mut self, reason: Disconnect, words: &str, _language: &str) -> Done {
        self.core.disconnect(reason, words)
    }

    /// Makes new keys.
    ///
    /// # Errors
    /// The session is over.
    pub fn initiate_rekey(&mut self) -> Done {
        self.core.rekey()
    }
}
