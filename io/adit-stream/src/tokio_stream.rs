//! A [`Stream`] as tokio's `AsyncRead` and `AsyncWrite`, and sockets of tokio as streams.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use adit_wire::{subslice, subslice_mut};
use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::{BoxStream, Stream, Tcp};

/// A [`Stream`] that implements tokio's `AsyncRead`, `AsyncBufRead` and `AsyncWrite`;
/// [`Stream::into_tokio`] makes one.
///
/// A write seals its bytes into the buffer of the stream and sends the buffer, as far as the socket
/// accepts it. Bytes that the socket does not accept immediately are sent by a later write, flush or
/// shutdown: flush before you wait for an answer, as with every buffered writer. Each write makes at
/// least one record of an encrypted stream; put a `tokio::io::BufWriter` over it for many small
/// writes.
///
/// `shutdown` closes the write direction, and the stream remains readable.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use adit_stream::{BoxStream, Stream, Tcp};
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
/// use tokio::net::{TcpListener, TcpStream};
///
/// let listener = TcpListener::bind("127.0.0.1:0").await?;
/// let near: BoxStream = Box::new(Tcp::new(TcpStream::connect(listener.local_addr()?).await?));
/// let (far, _) = listener.accept().await?;
///
/// let (mut near, mut far) = (near.into_tokio(), Tcp::new(far).into_tokio());
/// near.write_all(b"hello").await?;
/// near.shutdown().await?;
/// let mut text = String::new();
/// far.read_to_string(&mut text).await?;
/// assert_eq!(text, "hello");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TokioStream<S>(S);

impl<S: Stream> TokioStream<S> {
    /// Wraps a stream.
    #[must_use]
    pub const fn new(stream: S) -> Self {
        Self(stream)
    }

    /// Returns the stream. Nothing is lost: received bytes stay readable in it, and unsent bytes
    /// are sent by its next flush.
    #[must_use]
    pub fn into_inner(self) -> S {
        self.0
    }

    /// Returns the stream.
    #[must_use]
    pub const fn get_ref(&self) -> &S {
        &self.0
    }

    /// Returns the stream.
    #[must_use]
    pub const fn get_mut(&mut self) -> &mut S {
        &mut self.0
    }

    /// Sends what the socket accepts now. Its task is woken when it accepts more.
    fn start_sending(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        match self.0.poll_flush(cx) {
            Poll::Ready(sent) => sent,
            Poll::Pending => Ok(()),
        }
    }

    /// Waits for space to write, which is never empty.
    fn poll_space(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(match ready!(self.0.poll_slot(cx, 1))? {
            0 => Err(io::ErrorKind::BrokenPipe.into()),
            _ => Ok(()),
        })
    }
}

/// No field is ever pinned.
impl<S> Unpin for TokioStream<S> {}

impl<S: Stream> AsyncRead for TokioStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if out.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let bytes = ready!(self.as_mut().poll_fill_buf(cx))?;
        let n = bytes.len().min(out.remaining());
        out.put_slice(subslice(bytes, ..n));
        self.consume(n);
        Poll::Ready(Ok(()))
    }
}

impl<S: Stream> AsyncBufRead for TokioStream<S> {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let stream = &mut self.get_mut().0;
        ready!(stream.poll_fill(cx, 1))?;
        Poll::Ready(Ok(stream.filled()))
    }

    fn consume(self: Pin<&mut Self>, n: usize) {
        self.get_mut().0.consume(n);
    }
}

impl<S: Stream> AsyncWrite for TokioStream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let me = self.get_mut();
        if bufs.iter().all(|buf| buf.is_empty()) {
            return Poll::Ready(Ok(0));
        }
        ready!(me.poll_space(cx))?;
        let slot = me.0.slot();
        let mut written = 0;
        for buf in bufs {
            let space = subslice_mut(slot, written..);
            let n = space.len().min(buf.len());
            subslice_mut(space, ..n).copy_from_slice(subslice(buf, ..n));
            written += n;
        }
        me.0.commit(written)?;
        me.start_sending(cx)?;
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().0.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().0.poll_finish(cx)
    }
}

impl<S: Stream> From<S> for TokioStream<S> {
    fn from(stream: S) -> Self {
        Self::new(stream)
    }
}

impl From<TcpStream> for Tcp {
    fn from(socket: TcpStream) -> Self {
        Self::new(socket)
    }
}

impl From<Tcp> for BoxStream {
    fn from(stream: Tcp) -> Self {
        Box::new(stream)
    }
}

impl From<TcpStream> for BoxStream {
    fn from(socket: TcpStream) -> Self {
        Box::new(Tcp::new(socket))
    }
}
