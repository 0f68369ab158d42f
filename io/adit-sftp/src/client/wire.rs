//! The stream below a client.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use adit_ssh::Channel;
use adit_stream::{BoxStream, Stream};
use tokio::io::AsyncWrite;

/// A channel, which takes bytes without a buffer of its own, or any other stream.
pub(super) enum Wire {
    Channel(Channel),
    Stream(BoxStream),
}

impl Wire {
    /// Makes bytes readable; returns their number, 0 at the end.
    pub(super) fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        match self {
            Self::Channel(channel) => channel.poll_fill(cx, 1),
            Self::Stream(stream) => stream.poll_fill(cx, 1),
        }
    }

    /// Returns the first readable bytes.
    pub(super) fn filled(&mut self) -> &[u8] {
        match self {
            Self::Channel(channel) => channel.filled(),
            Self::Stream(stream) => stream.filled(),
        }
    }

    /// Marks readable bytes as used.
    pub(super) fn consume(&mut self, n: usize) {
        match self {
            Self::Channel(channel) => channel.consume(n),
            Self::Stream(stream) => stream.consume(n),
        }
    }

    /// Takes the first of `bytes`; returns their number.
    pub(super) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Channel(channel) => Pin::new(channel).poll_write(cx, bytes),
            Self::Stream(stream) => {
                ready!(stream.poll_slot(cx, 1))?;
                let slot = stream.slot();
                let n = slot.len().min(bytes.len());
                let (Some(slot), Some(bytes)) = (slot.get_mut(..n), bytes.get(..n)) else {
                    return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                };
                if n == 0 {
                    return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                }
                slot.copy_from_slice(bytes);
                stream.commit(n)?;
                Poll::Ready(Ok(n))
            }
        }
    }

    /// Sends what was taken.
    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Channel(channel) => Stream::poll_flush(channel, cx),
            Self::Stream(stream) => stream.poll_flush(cx),
        }
    }
}
