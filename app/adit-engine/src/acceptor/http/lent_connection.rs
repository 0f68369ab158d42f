//! A client's connection, lent to one exchange.

use std::io::{self, IoSlice, IoSliceMut};
use std::task::{Context, Poll, ready};

use adit_http::body::ExchangeEnds;
use adit_stream::lane::RelayLane;
use adit_stream::{BoxStream, Stream, Tcp};
use tokio::sync::oneshot;

/// The connection below the codecs of an exchange. When both directions of the exchange have ended it is
/// returned; in all other cases it is closed like any stream.
pub(super) struct LentConnection {
    /// The connection, until it is returned.
    io: Option<BoxStream>,
    ends: ExchangeEnds,
    back: Option<oneshot::Sender<BoxStream>>,
    /// True if all of a complete response was sent.
    flushed: bool,
}

impl LentConnection {
    /// Lends `io` until both `ends` are reached; then sends it to `back`.
    pub(super) fn new(io: BoxStream, ends: ExchangeEnds, back: oneshot::Sender<BoxStream>) -> Self {
        Self {
            io: Some(io),
            ends,
            back: Some(back),
            flushed: false,
        }
    }

    fn connection(&mut self) -> io::Result<&mut BoxStream> {
        let gone = io::ErrorKind::NotConnected;
        self.io.as_mut().ok_or_else(|| gone.into())
    }
}

impl Drop for LentConnection {
    fn drop(&mut self) {
        if let (true, Some(mut io), Some(back)) = (self.flushed, self.io.take(), self.back.take()) {
            // A fast upload may have set a low-water mark, below which input is not reported.
            if let Some(socket) = io.bottom()
                && socket.set_receive_mark(1).is_err()
            {
                return;
            }
            // The receiver is gone if the listener has ended; then the connection is closed.
            let _ = back.send(io);
        }
    }
}

impl Stream for LentConnection {
    fn poll_fill(&mut self, cx: &mut Context<'_>, want: usize) -> Poll<io::Result<usize>> {
        let next = self.ends.request_ended();
        let io = self.connection()?;
        // Behind the request this only checks that the client is still there. Its next request stays in the
        // buffer, and the end of the response wakes the task that waits here.
        let n = match next && io.filled().len() >= want {
            true => return Poll::Pending,
            false => ready!(io.poll_fill(cx, want))?,
        };
        match next && n >= want {
            true => Poll::Pending,
            false => Poll::Ready(Ok(n)),
        }
    }

    fn filled(&mut self) -> &mut [u8] {
        self.io.as_mut().map(Stream::filled).unwrap_or_default()
    }

    fn runs<'a>(&'a mut self, out: &mut [IoSlice<'a>]) -> usize {
        self.io.as_mut().map_or(0, |io| io.runs(out))
    }

    fn consume(&mut self, n: usize) {
        if let Some(io) = &mut self.io {
            io.consume(n);
        }
    }

    fn poll_slot(&mut self, cx: &mut Context<'_>, min: usize) -> Poll<io::Result<usize>> {
        self.connection()?.poll_slot(cx, min)
    }

    fn slot(&mut self) -> &mut [u8] {
        self.io.as_mut().map(Stream::slot).unwrap_or_default()
    }

    fn slots<'a>(&'a mut self, out: &mut [IoSliceMut<'a>]) -> usize {
        self.io.as_mut().map_or(0, |io| io.slots(out))
    }

    fn commit(&mut self, n: usize) -> io::Result<()> {
        self.connection()?.commit(n)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.connection()?.poll_flush(cx)
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.ends.both_ended() {
            return self.connection()?.poll_finish(cx);
        }
        ready!(self.connection()?.poll_flush(cx))?;
        self.flushed = true;
        Poll::Ready(Ok(()))
    }

    fn abort(&mut self) {
        self.back = None;
        if let Some(io) = &mut self.io {
            io.abort();
        }
    }

    fn bottom(&mut self) -> Option<&mut Tcp> {
        self.io.as_mut()?.bottom()
    }

    fn lane(&self) -> RelayLane {
        let io = self.io.as_ref();
        io.map_or(RelayLane::ByLoad, |io| io.lane())
    }
}
