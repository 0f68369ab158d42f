//! [`Buffered`] as tokio's `AsyncRead` and `AsyncWrite`.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use crate::Stream;
use adit_wire::subslice;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{Buffered, RawStream};

impl<R: RawStream + Unpin> AsyncRead for Buffered<R> {
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
            out.put_slice(subslice(me.rx.bytes(), ..n));
            me.rx.consume(n);
        }
        Poll::Ready(Ok(()))
    }
}

impl<R: RawStream + Unpin> AsyncWrite for Buffered<R> {
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

impl<R: RawStream + Clone> Buffered<R> {
    /// Splits the stream into two halves for two tasks, the reader first. The stream is closed when
    /// both are dropped.
    #[must_use]
    pub fn into_split(self) -> (Self, Self) {
        let mut writer = Self::new(self.raw.clone());
        let mut reader = self;
        core::mem::swap(&mut reader.tx, &mut writer.tx);
        (reader, writer)
    }
}
