//! A connection as its handler sees it.

use std::sync::Arc;

use adit_ssh::messages::Say;
use adit_ssh_proto::connection::{Kind, Request};
use bytes::Bytes;

use super::{Config, Handle};
use crate::core::{CHANNEL_STDERR, Core};
use crate::{ChannelId, Disconnect, Error, Sig};

/// A connection as its [`Handler`](super::Handler) sees it: nothing here waits. What is sent in a
/// channel stands in its order, whether it is bytes, how the program ended, or the end.
#[derive(Debug)]
pub struct Session {
    core: Arc<Core>,
    config: Arc<Config>,
}

type Done = Result<(), Error>;

/// How a signal has ended a program.
pub(super) fn by_signal(signal: &Sig, core_dumped: bool, message: &str) -> Say<'static> {
    Say::Behind(Request::ExitSignal {
        name: signal.name().to_owned(),
        core_dumped,
        message: message.to_owned(),
    })
}

impl Session {
    pub(super) const fn new(core: Arc<Core>, config: Arc<Config>) -> Self {
        Self { core, config }
    }

    /// A handle for other tasks.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle::new(Arc::clone(&self.core))
    }

    /// The server's configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Sends bytes in a channel, as its window allows.
    ///
    /// # Errors
    /// The connection is over; [`Error::Pending`] if too much waits. So with what follows. In a
    /// channel that has closed it is dropped.
    pub fn data(&mut self, channel: ChannelId, data: impl Into<Bytes>) -> Done {
        self.core
            .say(channel.0, Say::Data(Kind::Stdout, &data.into()))
    }

    /// Sends bytes of another stream: 1 is standard error, the only one there is.
    ///
    /// # Errors
    /// As [`Session::data`]; [`Error::Inconsistent`] for another number.
    pub fn extended_data(
        &mut self,
        channel: ChannelId,
        extended: u32,
        data: impl Into<Bytes>,
    ) -> Done {
        if extended != CHANNEL_STDERR {
            return Err(Error::Inconsistent);
        }
        self.core
            .say(channel.0, Say::Data(Kind::Stderr, &data.into()))
    }

    /// Ends the own side of a channel.
    ///
    /// # Errors
    /// As [`Session::data`].
    pub fn eof(&mut self, channel: ChannelId) -> Done {
        self.core.say(channel.0, Say::Eof)
    }

    /// Closes a channel.
    ///
    /// # Errors
    /// As [`Session::data`].
    pub fn close(&mut self, channel: ChannelId) -> Done {
        self.core.say(channel.0, Say::Close)
    }

    /// Tells how the program ended.
    ///
    /// # Errors
    /// As [`Session::data`].
    pub fn exit_status_request(&mut self, channel: ChannelId, exit_status: u32) -> Done {
        let told = Say::Behind(Request::ExitStatus(exit_status));
        self.core.say(channel.0, told)
    }

    /// Tells that a signal ended the program. The language of the words is not told: nobody reads
    /// it.
    ///
    /// # Errors
    /// As [`Session::data`].
    pub fn exit_signal_request(
        &mut self,
        channel: ChannelId,
        signal: Sig,
        core_dumped: bool,
        error_message: &str,
        _language: &str,
    ) -> Done {
        let told = by_signal(&signal, core_dumped, error_message);
        self.core.say(channel.0, told)
    }

    /// Tells whether the client may do flow control by ^S and ^Q itself.
    ///
    /// # Errors
    /// As [`Session::data`].
    pub fn xon_xoff_request(&mut self, channel: ChannelId, client_can_do: bool) -> Done {
        let told = Say::Behind(Request::FlowControl(client_can_do));
        self.core.say(channel.0, told)
    }

    /// Grants the oldest request of a channel that was not answered.
    ///
    /// # Errors
    /// The connection is over.
    pub fn channel_success(&mut self, channel: ChannelId) -> Done {
        self.core.answer(channel.0, true)
    }

    /// Refuses the oldest request of a channel that was not answered.
    ///
    /// # Errors
    /// The connection is over.
    pub fn channel_failure(&mut self, channel: ChannelId) -> Done {
        self.core.answer(channel.0, false)
    }

    /// Ends the connection, once what waits was sent. The language of the words is not told: nobody
    /// reads it.
    ///
    /// # Errors
    /// It is over.
    pub fn disconnect(&mut self, reason: Disconnect, words: &str, _language: &str) -> Done {
        self.core.disconnect(reason, words)
    }
}
