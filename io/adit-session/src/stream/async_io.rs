//! The same streams for users of tokio's traits, whole and in halves.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use adit_stream::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{Buffered, Raw};

impl<R: Raw + Unpin> AsyncRead for Buffered<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let me = self.get_mut();
        if out.remaining() == 0 || me.ended && me.rx.is_empty() {
            return Poll::Ready(Ok(()));
        }
        if me.rx.is_empty() {
            let n = ready!(me.raw.poll_read(cx, out.initialize_unfilled()))?;
            me.ended = n == 0;
            out.advance(n);
        } else {
            let n = me.rx.len().min(out.remaining());
            out.put_slice(me.rx.bytes().get(..n).unwrap_or_default());
            me.rx.consume(n);
        }
        Poll::Ready(Ok(()))
    }
}

impl<R: Raw + Unpin> AsyncWrite for Buffered<R> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let me = self.get_mut();
        ready!(me.poll_send(cx))?;
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        me.raw.poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let me = self.get_mut();
        ready!(me.poll_send(cx))?;
        if bufs.iter().all(|buf| buf.is_empty()) {
            return Poll::Ready(Ok(0));
        }
        me.raw.poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.raw.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Stream::poll_flush(self.get_mut(), cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Stream::poll_finish(self.get_mut(), cx)
    }
}

/// The reading half of a stream.
#[derive(Debug)]
pub struct ReadHalf<R>(Buffered<R>);

/// The writing half of a stream.
#[derive(Debug)]
pub struct WriteHalf<R>(Buffered<R>);

impl<R: Raw> WriteHalf<R> {
    pub(crate) const fn raw(&self) -> &R {
        self.0.raw()
    }
}

impl<R: Raw + Clone> Buffered<R> {
    /// Two halves for two tasks. The stream is closed when both are dropped.
    #[must_use]
    pub fn into_split(self) -> (ReadHalf<R>, WriteHalf<R>) {
        let mut writer = Self::new(self.raw.clone());
        let mut reader = self;
        core::mem::swap(&mut reader.tx, &mut writer.tx);
        (ReadHalf(reader), WriteHalf(writer))
    }
}

impl<R: Raw + Unpin> AsyncRead for ReadHalf<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_read(cx, out)
    }
}

impl<R: Raw + Unpin> AsyncWrite for WriteHalf<R> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().0).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().0).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        AsyncWrite::poll_flush(Pin::new(&mut self.get_mut().0), cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        AsyncWrite::poll_shutdown(Pin::new(&mut self.get_mut().0), cx)
    }
}
