//! A buffered stream for all sessions.
//!
//! A session's bytes lie behind a lock that its driver also takes, so they are copied out and in.
//! [`RawStream`] is the interface of a session; [`Buffered`] makes of it a [`Stream`] for a relay, and an
//! `AsyncRead` and `AsyncWrite`.

mod async_io;
mod buffer;
mod session_stream;
mod tokio_io;

use std::io::{self, IoSlice};
use std::task::{Context, Poll, ready};

use crate::Stream;
use crate::lane::RelayLane;

pub use buffer::PooledBuffer;
pub use tokio_io::TokioIo;

/// Minimum size of a slot, in bytes. A smaller one is not worth a call into the session; the buffer
/// is flushed first.
const MIN_SLOT: usize = 4096;

/// One stream of a session: copies bytes in and out, and waits for either.
pub trait RawStream: Send {
    /// Reads at least one byte; 0 is the end. `out` is not empty.
    fn poll_read(&mut self, cx: &mut Context<'_>, out: &mut [u8]) -> Poll<io::Result<usize>>;
    /// Passes at least one byte to the session, which will send it. `bytes` is not empty.
    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>>;
    /// Like [`poll_write`](Self::poll_write), for the concatenated bytes of several buffers. At
    /// least one is not empty.
    fn poll_write_vectored(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let first = bufs.iter().find(|buf| !buf.is_empty());
        self.poll_write(cx, first.map_or(&[], |buf| buf))
    }
    /// True if [`poll_write_vectored`](Self::poll_write_vectored) takes more than the first buffer.
    fn is_write_vectored(&self) -> bool {
        false
    }
    /// Sends the bytes that were written, where the session does not do so on its own.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let _ = cx;
        Poll::Ready(Ok(()))
    }
    /// Ends the write direction, as far as the protocol has such an end.
    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
    /// Discards unsent bytes, so that a cut transfer does not look complete where the protocol can
    /// tell the difference.
    fn abort(&mut self);
    /// Returns the lane for a relay that works on this stream.
    fn lane(&self) -> RelayLane {
        RelayLane::ByLoad
    }
}

/// A buffered stream over a [`RawStream`].
#[derive(Debug)]
pub struct Buffered<R> {
    raw: R,
    rx: PooledBuffer,
    tx: PooledBuffer,
    ended: bool,
}

impl<R: RawStream> Buffered<R> {
    /// Creates a stream over `raw`.
    pub fn new(raw: R) -> Self {
        Self {
            raw,
            rx: PooledBuffer::default(),
            tx: PooledBuffer::default(),
            ended: false,
        }
    }

    /// Returns the stream below.
    pub const fn raw(&self) -> &R {
        &self.raw
    }

    /// Sends the bytes of the write buffer.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.tx.is_empty() {
            let n = ready!(self.raw.poll_write(cx, self.tx.bytes()))?;
            self.tx.consume(n);
        }
        Poll::Ready(Ok(()))
    }
}

impl<R: RawStream> Stream for Buffered<R> {
    fn poll_fill(&mut self, cx: &mut Context<'_>, want: usize) -> Poll<io::Result<usize>> {
        while self.rx.len() < want && !self.ended {
            self.rx.reserve((want - self.rx.len()).max(MIN_SLOT));
            let room = self.rx.spare_mut();
            let offered = room.len();
            match self.raw.poll_read(cx, room) {
                Poll::Ready(Ok(n)) => {
                    self.ended = n == 0;
                    self.rx.advance_end(n);
                    self.rx.adapt_class(n, offered);
                }
                Poll::Ready(Err(e)) => return Poll::Ready(Err(e)),
                Poll::Pending => {
                    // No stream keeps a buffer while it waits.
                    self.rx.release_if_empty();
                    return Poll::Pending;
                }
            }
        }
        self.rx.release_if_empty();
        Poll::Ready(Ok(self.rx.len()))
    }

    fn filled(&mut self) -> &mut [u8] {
        self.rx.bytes_mut()
    }

    fn runs<'a>(&'a mut self, out: &mut [IoSlice<'a>]) -> usize {
        match out.first_mut() {
            Some(first) if !self.rx.is_empty() => {
                *first = IoSlice::new(self.rx.bytes());
                1
            }
            _ => 0,
        }
    }

    fn consume(&mut self, n: usize) {
        self.rx.consume(n);
    }

    fn poll_slot(&mut self, cx: &mut Context<'_>, min: usize) -> Poll<io::Result<usize>> {
        let min = min.max(MIN_SLOT);
        if !self.tx.is_empty() && self.tx.spare_mut().len() < min {
            self.tx.adapt_class(1, 1);
            ready!(self.poll_send(cx))?;
        }
        self.tx.reserve(min);
        Poll::Ready(Ok(self.tx.spare_mut().len()))
    }

    fn slot(&mut self) -> &mut [u8] {
        self.tx.spare_mut()
    }

    fn commit(&mut self, n: usize) -> io::Result<()> {
        self.tx.advance_end(n);
        Ok(())
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.tx.is_empty() {
            self.tx.adapt_class(self.tx.len(), usize::MAX);
        }
        ready!(self.poll_send(cx))?;
        self.tx.release_if_empty();
        self.raw.poll_flush(cx)
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_flush(cx))?;
        self.raw.poll_finish(cx)
    }

    fn abort(&mut self) {
        self.raw.abort();
    }

    fn lane(&self) -> RelayLane {
        self.raw.lane()
    }
}
