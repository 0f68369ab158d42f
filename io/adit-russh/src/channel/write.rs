//! The sending half of a channel.

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use adit_crypto::Secret;
use adit_ssh::messages::{MessageChannel, Say};
use adit_ssh_proto::connection::{Kind, Request};
use adit_wire::subslice;
use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::core::{CHANNEL_STDERR, pour, say, want};
use crate::{ChannelId, Error, Pty, Sig, pty};

/// The sending half of a channel: requests, notifications and bytes.
///
/// With `want_reply` the reply arrives as [`ChannelMsg::Success`](crate::ChannelMsg::Success) or
/// [`ChannelMsg::Failure`](crate::ChannelMsg::Failure), in the order of the requests. All methods fail
/// once the session is over. In a closed channel, requests and bytes are dropped, as in russh; writers
/// and streams fail.
pub struct ChannelWriteHalf<S> {
    pub(super) channel: MessageChannel,
    pub(super) side: PhantomData<fn() -> S>,
}

type Done = Result<(), Error>;

#[allow(clippy::unused_async, reason = "same signature as in russh")]
impl<S> ChannelWriteHalf<S> {
    /// Returns the channel's identifier.
    #[must_use]
    pub fn id(&self) -> ChannelId {
        ChannelId(self.channel.id())
    }

    async fn request(&self, request: Request, want_reply: bool) -> Done {
        say(&self.channel, Say::Ahead(request, want(want_reply)))
    }

    /// Requests a terminal: width in columns, height in rows, width and height in pixels, modes.
    ///
    /// # Errors
    /// See [`ChannelWriteHalf`].
    #[allow(clippy::too_many_arguments, reason = "same signature as in russh")]
    pub async fn request_pty(
        &self,
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
        self.request(Request::Pty(pty), want_reply).await
    }

    /// Requests the user's shell.
    ///
    /// # Errors
    /// See [`ChannelWriteHalf`].
    pub async fn request_shell(&self, want_reply: bool) -> Done {
        self.request(Request::Shell, want_reply).await
    }

    /// Requests to run a command.
    ///
    /// # Errors
    /// See [`ChannelWriteHalf`].
    pub async fn exec<A: Into<Vec<u8>>>(&self, want_reply: bool, command: A) -> Done {
        self.request(Request::Exec(command.into()), want_reply)
            .await
    }

    /// Requests a subsystem.
    ///
    /// # Errors
    /// See [`ChannelWriteHalf`].
    pub async fn request_subsystem<A: Into<String>>(&self, want_reply: bool, name: A) -> Done {
        self.request(Request::Subsystem(name.into()), want_reply)
            .await
    }

    /// Requests forwarding of X11 connections to this side's display.
    ///
    /// # Errors
    /// See [`ChannelWriteHalf`].
    pub async fn request_x11<A: Into<String>, B: Into<String>>(
        &self,
        want_reply: bool,
        single_connection: bool,
        x11_authentication_protocol: A,
        x11_authentication_cookie: B,
        x11_screen_number: u32,
    ) -> Done {
        let request = Request::X11 {
            single: single_connection,
            protocol: x11_authentication_protocol.into(),
            cookie: Secret::new(x11_authentication_cookie.into()),
            screen: x11_screen_number,
        };
        self.request(request, want_reply).await
    }

    /// Sets an environment variable for the program to be started.
    ///
    /// # Errors
    /// See [`ChannelWriteHalf`].
    pub async fn set_env<A: Into<String>, B: Into<String>>(
        &self,
        want_reply: bool,
        variable_name: A,
        variable_value: B,
    ) -> Done {
        let request = Request::Env {
            name: variable_name.into().into_bytes(),
            value: variable_value.into().into_bytes(),
        };
        self.request(request, want_reply).await
    }

    /// Sends the terminal's new size.
    ///
    /// # Errors
    /// See [`ChannelWriteHalf`].
    pub async fn window_change(
        &self,
        col_width: u32,
        row_height: u32,
        pix_width: u32,
        pix_height: u32,
    ) -> Done {
        let size = pty::size([col_width, row_height, pix_width, pix_height]);
        self.request(Request::WindowChange(size), false).await
    }

    /// Lets the program use this side's agent.
    ///
    /// # Errors
    /// See [`ChannelWriteHalf`].
    pub async fn agent_forward(&self, want_reply: bool) -> Done {
        self.request(Request::Agent, want_reply).await
    }

    /// Sends a signal to the program.
    ///
    /// # Errors
    /// See [`ChannelWriteHalf`].
    pub async fn signal(&self, signal: Sig) -> Done {
        self.request(Request::Signal(signal.name().to_owned()), false)
            .await
    }

    /// Sends everything from `data`, as the peer's window allows.
    ///
    /// # Errors
    /// See [`ChannelWriteHalf`]; or reading from `data` failed.
    pub async fn data<R: AsyncRead + Unpin>(&self, data: R) -> Done {
        self.copy(Kind::Stdout, data).await
    }

    /// Sends bytes, as the peer's window allows.
    ///
    /// # Errors
    /// See [`ChannelWriteHalf`].
    pub async fn data_bytes(&self, data: impl Into<Bytes>) -> Done {
        self.send(Kind::Stdout, data.into()).await
    }

    /// Sends everything from `data` in another stream: 1 is standard error, the only one.
    ///
    /// # Errors
    /// See [`ChannelWriteHalf`]; or reading from `data` failed; [`Error::Inconsistent`] for another
    /// number.
    pub async fn extended_data<R: AsyncRead + Unpin>(&self, ext: u32, data: R) -> Done {
        self.copy(kind(ext)?, data).await
    }

    /// Sends bytes in another stream.
    ///
    /// # Errors
    /// The errors of [`ChannelWriteHalf::extended_data`].
    pub async fn extended_data_bytes(&self, ext: u32, data: impl Into<Bytes>) -> Done {
        self.send(kind(ext)?, data.into()).await
    }

    async fn copy<R: AsyncRead + Unpin>(&self, kind: Kind, mut data: R) -> Done {
        let mut writer = self.writer(kind);
        match tokio::io::copy(&mut data, &mut writer).await {
            Err(why) if !is_gone(&why) => Err(why.into()),
            _ => Ok(()),
        }
    }

    async fn send(&self, kind: Kind, mut data: Bytes) -> Done {
        match pour(&self.channel, kind, &mut data).await {
            Err(Error::WrongChannel) => Ok(()),
            done => done,
        }
    }

    /// Sends EOF, after the bytes that were sent.
    ///
    /// # Errors
    /// See [`ChannelWriteHalf`].
    pub async fn eof(&self) -> Done {
        say(&self.channel, Say::Eof)
    }

    /// Sends the program's exit status, after the bytes that were sent.
    ///
    /// # Errors
    /// See [`ChannelWriteHalf`].
    pub async fn exit_status(&self, exit_status: u32) -> Done {
        let told = Request::ExitStatus(exit_status);
        say(&self.channel, Say::Behind(told))
    }

    /// Closes the channel, after the bytes that were sent.
    ///
    /// # Errors
    /// See [`ChannelWriteHalf`].
    pub async fn close(&self) -> Done {
        say(&self.channel, Say::Close)
    }

    /// Returns a writer of the channel's bytes. Shutting it down sends EOF.
    pub fn make_writer(&self) -> impl AsyncWrite + Unpin + 'static + use<S> {
        self.writer(Kind::Stdout)
    }

    /// Returns a writer of standard error (`ext` 1); of the channel's bytes for `None` and for unknown
    /// numbers.
    pub fn make_writer_ext(&self, ext: Option<u32>) -> impl AsyncWrite + Unpin + 'static + use<S> {
        self.writer(match ext {
            Some(CHANNEL_STDERR) => Kind::Stderr,
            _ => Kind::Stdout,
        })
    }

    pub(super) fn writer(&self, kind: Kind) -> Writer {
        Writer {
            channel: self.channel.clone(),
            kind,
        }
    }
}

const fn kind(ext: u32) -> Result<Kind, Error> {
    match ext {
        CHANNEL_STDERR => Ok(Kind::Stderr),
        _ => Err(Error::Inconsistent),
    }
}

/// Returns true if only the channel is closed, not the session.
fn is_gone(why: &io::Error) -> bool {
    let inner = why.get_ref().and_then(|inner| inner.downcast_ref());
    matches!(inner, Some(Error::WrongChannel))
}

impl<S> fmt::Debug for ChannelWriteHalf<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ChannelWriteHalf").field(&self.id()).finish()
    }
}

/// A writer of one stream of a channel.
#[derive(Debug)]
pub(super) struct Writer {
    channel: MessageChannel,
    kind: Kind,
}

impl Writer {
    /// Closes the channel, after the bytes that were sent.
    pub(super) fn close(&self) {
        // A channel that does not accept this is closed already.
        let _ = say(&self.channel, Say::Close);
    }
}

fn broken(why: impl Into<Error>) -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, why.into())
}

impl AsyncWrite for Writer {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let room = ready!(self.channel.poll_room(cx)).map_err(broken)?;
        let n = bytes.len().min(room);
        let part = subslice(bytes, ..n);
        let said = self.channel.say(Say::Data(self.kind, part));
        Poll::Ready(said.map(|()| n).map_err(broken))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The session's task sends queued data without a flush.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(say(&self.channel, Say::Eof).map_err(broken))
    }
}
