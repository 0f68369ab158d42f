//! The trait every layer has.

use std::future::poll_fn;
use std::io::{self, IoSlice, IoSliceMut};
use std::task::{Context, Poll};

use crate::Tcp;
use crate::lane::RelayLane;

/// Two directions of bytes. Borrow to read, reserve to write.
///
/// Reading: [`poll_fill`](Self::poll_fill) until there is something, look at it with
/// [`filled`](Self::filled) or [`runs`](Self::runs), [`consume`](Self::consume) what was used.
/// Writing: [`poll_slot`](Self::poll_slot), put bytes into [`slot`](Self::slot),
/// [`commit`](Self::commit) them, [`poll_flush`](Self::poll_flush) in the end.
///
/// The slot of a layer lies inside the slot of the layer below, so that nested records are sealed
/// in one buffer; likewise [`filled`](Self::filled) lies inside the receive buffer of the socket.
pub trait Stream: Send {
    /// Makes at least `want` contiguous bytes readable; gives all that is readable.
    /// Fewer than `want` mean that the stream has ended.
    fn poll_fill(&mut self, cx: &mut Context<'_>, want: usize) -> Poll<io::Result<usize>>;

    /// The first contiguous readable bytes. May be altered in place before they are consumed.
    fn filled(&mut self) -> &mut [u8];

    /// Puts the readable runs into `out`, in order; gives how many. For gathered writes.
    fn runs<'a>(&'a mut self, out: &mut [IoSlice<'a>]) -> usize;

    /// Marks `n` readable bytes as used.
    fn consume(&mut self, n: usize);

    /// Reserves room for at least `min` more bytes; gives how many [`slot`](Self::slot) has.
    /// 0 (with `min` > 0) means that the direction is complete and takes no more.
    /// The same slot stays reserved until [`commit`](Self::commit).
    fn poll_slot(&mut self, cx: &mut Context<'_>, min: usize) -> Poll<io::Result<usize>>;

    /// The room reserved by [`poll_slot`](Self::poll_slot).
    fn slot(&mut self) -> &mut [u8];

    /// Puts the slot, and those that follow it in the same buffer, into `out`; gives how many.
    /// For scattered reads: what fills them is committed at once.
    fn slots<'a>(&'a mut self, out: &mut [IoSliceMut<'a>]) -> usize {
        match out.first_mut() {
            Some(first) => {
                *first = IoSliceMut::new(self.slot());
                1
            }
            None => 0,
        }
    }

    /// Takes the first `n` bytes of the slot, or of [`slots`](Self::slots), as written; seals
    /// them.
    fn commit(&mut self, n: usize) -> io::Result<()>;

    /// Sends everything committed, and a head that is owed.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Flushes, then closes the write direction (half close).
    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Makes the close a visible failure for the peer (TCP reset).
    fn abort(&mut self);

    /// Whether a head is owed that may take a first payload with it.
    fn owes_head(&self) -> bool {
        false
    }

    /// Whether what is written is complete by the protocol's own means and takes no more, so that
    /// nobody need wait for the other side's end.
    fn complete(&self) -> bool {
        false
    }

    /// The socket itself, if this stream is bare: no codec stands above it.
    fn bare(&mut self) -> Option<&mut Tcp> {
        None
    }

    /// The socket below all codecs, if this stream comes from one alone.
    fn bottom(&mut self) -> Option<&mut Tcp> {
        self.bare()
    }

    /// Where a relay runs that works on this stream, or on one that is above it.
    fn lane(&self) -> RelayLane {
        RelayLane::ByLoad
    }
}

/// A stream of any kind: one virtual call per chunk.
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

/// Waits until `want` bytes are readable; gives how many are, fewer at the end.
pub async fn fill(io: &mut dyn Stream, want: usize) -> io::Result<usize> {
    poll_fn(|cx| io.poll_fill(cx, want)).await
}

/// Sends everything committed.
pub async fn flush(io: &mut dyn Stream) -> io::Result<()> {
    poll_fn(|cx| io.poll_flush(cx)).await
}

/// Closes the write direction after everything committed was sent.
pub async fn finish(io: &mut dyn Stream) -> io::Result<()> {
    poll_fn(|cx| io.poll_finish(cx)).await
}
