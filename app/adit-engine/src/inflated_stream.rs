//! A stream whose plaintext is in a separate buffer: `verify_deflate` of ShadowsocksR.
//!
//! Frames grow when they are opened, so their data is written to a buffer of its own, one frame at a
//! time. Writing works as in other codecs.

use std::io::{self, IoSlice, IoSliceMut};
use std::task::{Context, Poll, ready};

use adit_shadowsocksr::{OpenedFrame, StackOpen};
use adit_stream::lane::RelayLane;
use adit_stream::{BoxStream, Layered, Stream};
use adit_wire::{Open, Opened, ProtocolError, Seal, subslice, subslice_mut};

/// Codecs over a stream, of which the opening one has separate plaintext.
pub(crate) struct InflatedStream<Se> {
    below: Layered<BoxStream, Se, PassThrough>,
    open: StackOpen,
    plain: Vec<u8>,
    /// Number of bytes of `plain` that were consumed.
    used: usize,
    ended: bool,
}

impl<Se: Seal> InflatedStream<Se> {
    pub(crate) const fn new(below: BoxStream, seal: Se, open: StackOpen) -> Self {
        Self {
            below: Layered::new(below, seal, PassThrough),
            open,
            plain: Vec::new(),
            used: 0,
            ended: false,
        }
    }

    fn unread_plaintext(&self) -> &[u8] {
        subslice(&self.plain, self.used..)
    }

    fn consume_plaintext(&mut self, consumed: usize) {
        self.below.consume(consumed);
    }
}

/// Passes the bytes through as received.
struct PassThrough;

impl Open for PassThrough {
    fn open(&mut self, wire: &mut [u8]) -> Result<Opened, ProtocolError> {
        Ok(match wire.len() {
            0 => Opened::NeedMore { total: 1 },
            consumed => Opened::Record {
                consumed,
                payload: 0..consumed,
            },
        })
    }
}

fn io_error(why: ProtocolError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

impl<Se: Seal> Stream for InflatedStream<Se> {
    fn poll_fill(&mut self, cx: &mut Context<'_>, want: usize) -> Poll<io::Result<usize>> {
        loop {
            let readable = self.unread_plaintext().len();
            if readable >= want || self.ended {
                return Poll::Ready(Ok(readable));
            }
            self.plain.drain(..self.used);
            self.used = 0;
            match self
                .open
                .open_frame(self.below.filled())
                .map_err(io_error)?
            {
                OpenedFrame::Inflated { consumed } => {
                    self.plain.extend_from_slice(self.open.inflated());
                    self.consume_plaintext(consumed);
                }
                OpenedFrame::Plain { consumed, payload } => {
                    let data = subslice(self.below.filled(), payload);
                    self.plain.extend_from_slice(data);
                    self.consume_plaintext(consumed);
                }
                OpenedFrame::NeedMore { total } => {
                    let have = ready!(self.below.poll_fill(cx, total))?;
                    if have < total {
                        if have > 0 {
                            let why = ProtocolError::Truncated("a frame");
                            return Poll::Ready(Err(io_error(why)));
                        }
                        self.ended = true;
                    }
                }
            }
        }
    }

    fn filled(&mut self) -> &mut [u8] {
        subslice_mut(&mut self.plain, self.used..)
    }

    fn runs<'a>(&'a mut self, out: &mut [IoSlice<'a>]) -> usize {
        match out.first_mut() {
            Some(first) if self.used < self.plain.len() => {
                *first = IoSlice::new(subslice(&self.plain, self.used..));
                1
            }
            _ => 0,
        }
    }

    fn consume(&mut self, n: usize) {
        self.used = self.used.saturating_add(n).min(self.plain.len());
        if self.used == self.plain.len() {
            self.plain.clear();
            self.used = 0;
        }
    }

    fn poll_slot(&mut self, cx: &mut Context<'_>, min: usize) -> Poll<io::Result<usize>> {
        self.below.poll_slot(cx, min)
    }

    fn slot(&mut self) -> &mut [u8] {
        self.below.slot()
    }

    fn slots<'a>(&'a mut self, out: &mut [IoSliceMut<'a>]) -> usize {
        self.below.slots(out)
    }

    fn commit(&mut self, n: usize) -> io::Result<()> {
        self.below.commit(n)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.below.poll_flush(cx)
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.below.poll_finish(cx)
    }

    fn abort(&mut self) {
        self.below.abort();
    }

    fn owes_head(&self) -> bool {
        self.below.owes_head()
    }

    fn lane(&self) -> RelayLane {
        self.below.lane()
    }
}
