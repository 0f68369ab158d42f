//! The sending half of a channel.

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use adit_crypto::Secret;
use adit_ssh::messages::{MessageChannel, OutgoingMessage};
use adit_ssh_proto::connection::{DataKind, SshChannelRequest};
use adit_wire::subslice;
use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::session_core::{CHANNEL_STDERR, reply_wanted, send_bytes, send_or_drop};
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

type SendResult = Result<(), Error>;

#[allow(clippy::unused_async, reason = "same signature as in russh")]
impl<S> ChannelWriteHalf<S> {
    /// Returns the channel's identifier.
    #[must_use]
    pub fn id(&self) -> ChannelId {
        ChannelId(self.channel.id())
    }

    async fn send_request(&self, request: SshChannelRequest, want_reply: bool) -> SendResult {
        send_or_drop(
            &self.channel,
            OutgoingMessage::UrgentRequest(request, reply_wanted(want_reply)),
        )
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
    ) -> SendResult {
        let size = [col_width, row_height, pix_width, pix_height];
        let pty = pty::terminal_request(term, size, terminal_modes);
        self.send_request(SshChannelRequest::Pty(pty), want_reply)
            .await
    }

    /// Requests the user's shell.
    ///
    /// # Errors
    /// See [`ChannelWriteHalf`].
    pub async fn request_shell(&self, want_reply: bool) -> SendResult {
        self.send_request(SshChannelRequest::Shell, want_reply)
            .await
    }

    /// Requests to run a command.
    ///
    /// # Errors
    /// See [`ChannelWriteHalf`].
    pub async fn exec<A: Into<Vec<u8>>>(&self, want_reply: bool, command: A) -> SendResult {
        self.send_request(SshChannelRequest::Exec(command.into()), want_reply)
            .await
    }

    /// Requests a subsystem.
    ///
    /// # Errors
    /// See [`ChannelWriteHalf`].
    pub async fn request_subsystem<A: Into<String>>(
        &self,
        want_reply: bool,
        name: A,
    ) -> SendResult {
        self.send_request(SshChannelRequest::Subsystem(name.into()), want_reply)
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
    ) -> SendResult {
        let request = SshChannelRequest::X11 {
            single: single_connection,
            protocol: x11_authentication_protocol.into(),
            cookie: Secret::new(x11_authentication_cookie.into()),
            screen: x11_screen_number,
        };
        self.send_request(request, want_reply).await
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
    ) -> SendResult {
        let request = SshChannelRequest::Env {
            name: variable_name.into().into_bytes(),
            value: variable_value.into().into_bytes(),
        };
        self.send_request(request, want_reply).await
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
    ) -> SendResult {
        let size = pty::to_size([col_width, row_height, pix_width, pix_height]);
        self.send_request(SshChannelRequest::WindowChange(size), false)
            .await
    }

    /// Lets the program use this side's agent.
    ///
    /// # Errors
    /// See [`ChannelWriteHalf`].
    pub async fn agent_forward(&self, want_reply: bool) -> SendResult {
        self.send_request(SshChannelRequest::Agent, want_reply)
            .await
    }

    /// Sends a signal to the program.
    ///
    /// # Errors
    /// See [`ChannelWriteHalf`].
    pub async fn signal(&self, signal: Sig) -> SendResult {
        self.send_request(SshChannelRequest::Signal(signal.name().to_owned()), false)
            .await
    }

    /// Sends everything from `data`, as the peer's window allows.
    ///
    /// # Errors
    /// See [`ChannelWriteHalf`]; or reading from `data` failed.
    pub async fn data<R: AsyncRead + Unpin>(&self, data: R) -> SendResult {
        self.send_from(DataKind::Stdout, data).await
    }

    /// Sends bytes, as the peer's window allows.
    ///
    /// # Errors
    /// See [`ChannelWriteHalf`].
    pub async fn data_bytes(&self, data: impl Into<Bytes>) -> SendResult {
        self.send_bytes(DataKind::Stdout, data.into()).await
    }

    /// Sends everything from `data` in another stream: 1 is standard error, the only one.
    ///
    /// # Errors
    /// See [`ChannelWriteHalf`]; or reading from `data` failed; [`Error::Inconsistent`] for another
    /// number.
    pub async fn extended_data<R: AsyncRead + Unpin>(&self, ext: u32, data: R) -> SendResult {
        self.send_from(stream_kind(ext)?, data).await
    }

    /// Sends bytes in another stream.
    ///
    /// # Errors
    /// The errors of [`ChannelWriteHalf::extended_data`].
    pub async fn extended_data_bytes(&self, ext: u32, data: impl Into<Bytes>) -> SendResult {
        self.send_bytes(stream_kind(ext)?, data.into()).await
    }

    async fn send_from<R: AsyncRead + Unpin>(&self, kind: DataKind, mut data: R) -> SendResult {
        let mut writer = self.stream_writer(kind);
        match tokio::io::copy(&mut data, &mut writer).await {
            Err(why) if !is_channel_closed(&why) => Err(why.into()),
            _ => Ok(()),
        }
    }

    async fn send_bytes(&self, kind: DataKind, mut data: Bytes) -> SendResult {
        match send_bytes(&self.channel, kind, &mut data).await {
            Err(Error::WrongChannel) => Ok(()),
            done => done,
        }
    }

    /// Sends EOF, after the bytes that were sent.
    ///
    /// # Errors
    /// See [`ChannelWriteHalf`].
    pub async fn eof(&self) -> SendResult {
        send_or_drop(&self.channel, OutgoingMessage::Eof)
    }

    /// Sends the program's exit status, after the bytes that were sent.
    ///
    /// # Errors
    /// See [`ChannelWriteHalf`].
    pub async fn exit_status(&self, exit_status: u32) -> SendResult {
        let told = SshChannelRequest::ExitStatus(exit_status);
        send_or_drop(&self.channel, OutgoingMessage::QueuedRequest(told))
    }

    /// Closes the channel, after the bytes that were sent.
    ///
    /// # Errors
    /// See [`ChannelWriteHalf`].
    pub async fn close(&self) -> SendResult {
        send_or_drop(&self.channel, OutgoingMessage::Close)
    }

    /// Returns a writer of the channel's bytes. Shutting it down sends EOF.
    pub fn make_writer(&self) -> impl AsyncWrite + Unpin + 'static + use<S> {
        self.stream_writer(DataKind::Stdout)
    }

    /// Returns a writer of standard error (`ext` 1); of the channel's bytes for `None` and for unknown
    /// numbers.
    pub fn make_writer_ext(&self, ext: Option<u32>) -> impl AsyncWrite + Unpin + 'static + use<S> {
        self.stream_writer(match ext {
            Some(CHANNEL_STDERR) => DataKind::Stderr,
            _ => DataKind::Stdout,
        })
    }

    pub(super) fn stream_writer(&self, kind: DataKind) -> StreamWriter {
        StreamWriter {
            channel: self.channel.clone(),
            kind,
        }
    }
}

const fn stream_kind(ext: u32) -> Result<DataKind, Error> {
    match ext {
        CHANNEL_STDERR => Ok(DataKind::Stderr),
        _ => Err(Error::Inconsistent),
    }
}

/// Returns true if only the channel is closed, not the session.
fn is_channel_closed(why: &io::Error) -> bool {
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
pub(super) struct StreamWriter {
    channel: MessageChannel,
    kind: DataKind,
}

impl StreamWriter {
    /// Closes the channel, after the bytes that were sent.
    pub(super) fn close_channel(&self) {
        // A channel that does not accept this is closed already.
        let _ = send_or_drop(&self.channel, OutgoingMessage::Close);
    }
}

fn broken_pipe(why: impl Into<Error>) -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, why.into())
}

impl AsyncWrite for StreamWriter {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let room = ready!(self.channel.poll_capacity(cx)).map_err(broken_pipe)?;
        let n = bytes.len().min(room);
        let part = subslice(bytes, ..n);
        let said = self
            .channel
            .send_message(OutgoingMessage::Data(self.kind, part));
        Poll::Ready(said.map(|()| n).map_err(broken_pipe))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The session's task sends queued data without a flush.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(send_or_drop(&self.channel, OutgoingMessage::Eof).map_err(broken_pipe))
    }
}
