//! The trait that all layers implement.

use std::future::poll_fn;
use std::io::{self, IoSlice, IoSliceMut};
use std::task::{Context, Poll};

use crate::lane::RelayLane;
use crate::{Tcp, TokioStream};

/// A bidirectional byte stream. Borrow to read, reserve to write.
///
/// To read, call [`poll_fill`](Self::poll_fill) until there are bytes, look at them with
/// [`filled`](Self::filled) or [`runs`](Self::runs), and [`consume`](Self::consume) those you used.
/// To write, call [`poll_slot`](Self::poll_slot), put bytes into [`slot`](Self::slot),
/// [`commit`](Self::commit) them, and call [`poll_flush`](Self::poll_flush) at the end.
///
/// The slot of a layer lies inside the slot of the layer below, so that nested records are sealed
/// in one buffer. Likewise, [`filled`](Self::filled) lies inside the receive buffer of the socket.
///
/// [`into_tokio`](Self::into_tokio) makes any stream one of tokio's, and [`Buffered::from_tokio`]
/// the reverse.
///
/// [`Buffered::from_tokio`]: crate::Buffered::from_tokio
pub trait Stream: Send {
    /// Makes at least `want` contiguous bytes readable and returns the number of all readable
    /// bytes. Fewer than `want` mean that the stream has ended.
    fn poll_fill(&mut self, cx: &mut Context<'_>, want: usize) -> Poll<io::Result<usize>>;

    /// Returns the first contiguous readable bytes. You may change them in place before you consume
    /// them.
    fn filled(&mut self) -> &mut [u8];

    /// Puts the readable runs into `out`, in order, and returns their number. For gathered writes.
    fn runs<'a>(&'a mut self, out: &mut [IoSlice<'a>]) -> usize;

    /// Marks `n` readable bytes as used.
    fn consume(&mut self, n: usize);

    /// Reserves space for at least `min` more bytes and returns the size of [`slot`](Self::slot). 0
    /// (with `min` > 0) means that the direction is complete and accepts no more bytes. The same
    /// slot stays reserved until [`commit`](Self::commit).
    fn poll_slot(&mut self, cx: &mut Context<'_>, min: usize) -> Poll<io::Result<usize>>;

    /// Returns the space reserved by [`poll_slot`](Self::poll_slot).
    fn slot(&mut self) -> &mut [u8];

    /// Puts the slot, and those that follow it in the same buffer, into `out`, and returns their
    /// number. For scattered reads: commit them together.
    fn slots<'a>(&'a mut self, out: &mut [IoSliceMut<'a>]) -> usize {
        match out.first_mut() {
            Some(first) => {
                *first = IoSliceMut::new(self.slot());
                1
            }
            None => 0,
        }
    }

    /// Marks the first `n` bytes of the slot, or of [`slots`](Self::slots), as written, and seals
    /// them.
    ///
    /// # Errors
    /// The codec cannot seal the bytes. The direction is unusable then.
    fn commit(&mut self, n: usize) -> io::Result<()>;

    /// Sends all committed bytes, and a head that is owed.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Flushes, then closes the write direction (half close).
    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Makes the close a visible failure for the peer (TCP reset).
    fn abort(&mut self);

    /// True if a head is owed that may carry a first payload.
    fn owes_head(&self) -> bool {
        false
    }

    /// True if the protocol has marked the written bytes as complete and accepts no more, so that
    /// there is no need to wait for the end of the other direction.
    fn complete(&self) -> bool {
        false
    }

    /// Returns the socket itself, if no codec is above it.
    fn bare(&mut self) -> Option<&mut Tcp> {
        None
    }

    /// Returns the socket below all codecs, if this stream uses a single socket.
    fn bottom(&mut self) -> Option<&mut Tcp> {
        self.bare()
    }

    /// Returns the lane for a relay that works on this stream, or on one above it.
    fn lane(&self) -> RelayLane {
        RelayLane::ByLoad
    }

    /// Wraps the stream so that it implements tokio's `AsyncRead`, `AsyncBufRead` and `AsyncWrite`.
    fn into_tokio(self) -> TokioStream<Self>
    where
        Self: Sized,
    {
        TokioStream::new(self)
    }
}

/// A boxed stream: one virtual call per chunk.
pub type BoxStream = Box<dyn Stream>;

impl<S: Stream + ?Sized> Stream for Box<S> {
    fn poll_fill(&mut self, cx: &mut Context<'_>, want: usize) -> Poll<io::Result<usize>> {
        (**self).poll_fill(cx, want)
    }
    fn filled(&mut self) -> &mut [u8] {
        (**self).filled()
    }
    fn runs<'a>(&'a mut self, out: &mut [IoSlice<'a>]) -> usize {
        (**self).runs(out)
    }
    fn consume(&mut self, n: usize) {
        (**self).consume(n);
    }
    fn poll_slot(&mut self, cx: &mut Context<'_>, min: usize) -> Poll<io::Result<usize>> {
        (**self).poll_slot(cx, min)
    }
    fn slot(&mut self) -> &mut [u8] {
        (**self).slot()
    }
    fn slots<'a>(&'a mut self, out: &mut [IoSliceMut<'a>]) -> usize {
        (**self).slots(out)
    }
    fn commit(&mut self, n: usize) -> io::Result<()> {
        (**self).commit(n)
    }
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        (**self).poll_flush(cx)
    }
    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        (**self).poll_finish(cx)
    }
    fn abort(&mut self) {
        (**self).abort();
    }
    fn owes_head(&self) -> bool {
        (**self).owes_head()
    }
    fn complete(&self) -> bool {
        (**self).complete()
    }
    fn bare(&mut self) -> Option<&mut Tcp> {
        (**self).bare()
    }
    fn bottom(&mut self) -> Option<&mut Tcp> {
        (**self).bottom()
    }
    fn lane(&self) -> RelayLane {
        (**self).lane()
    }
}

/// Waits until `want` bytes are readable. Returns the number of readable bytes, which is smaller at
/// the end of the stream.
///
/// # Errors
///
/// The error of the stream.
///
/// # Cancel safety
/// Cancel safe: what has arrived stays readable.
pub async fn fill_to(io: &mut dyn Stream, want: usize) -> io::Result<usize> {
    poll_fn(|cx| io.poll_fill(cx, want)).await
}

/// Sends all committed bytes.
///
/// # Errors
///
/// The error of the stream.
///
/// # Cancel safety
/// Cancel safe: a later flush sends the rest.
pub async fn flush_stream(io: &mut dyn Stream) -> io::Result<()> {
    poll_fn(|cx| io.poll_flush(cx)).await
}

/// Sends all committed bytes, then closes the write direction.
///
/// # Errors
///
/// The error of the stream.
///
/// # Cancel safety
/// Cancel safe: call it again to finish.
pub async fn finish_stream(io: &mut dyn Stream) -> io::Result<()> {
    poll_fn(|cx| io.poll_finish(cx)).await
}
