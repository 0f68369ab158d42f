//! A stream of a session.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use adit_smux_proto::{StreamError, StreamId};
use adit_stream::lane::RelayLane;

use super::qpp::QppStream;
use super::shared::{SessionState, SharedSession, StreamSide};
use adit_stream::{Buffered, RawStream};

adit_stream::session_stream! {
    raw: Link;
    /// A smux stream as an [`adit_stream::Stream`], and as tokio's `AsyncRead` and `AsyncWrite`.
    ///
    /// Each direction ends separately. Bytes written before it is dropped are still sent.
    SmuxStream;
    /// The read half of a [`SmuxStream`].
    SmuxReadHalf;
    /// The write half of a [`SmuxStream`].
    SmuxWriteHalf;
}

/// The stream behind a [`SmuxStream`] or its halves; it is closed with the last of them.
#[derive(Clone)]
pub(crate) struct Link(Arc<StreamHandle>);

struct StreamHandle {
    shared: Arc<SharedSession>,
    id: StreamId,
    padded: Option<QppStream>,
}

impl Drop for StreamHandle {
    fn drop(&mut self) {
        self.with_session(|state, id| {
            state.core.close(id);
            state.remove_stream(id);
        });
    }
}

impl StreamHandle {
    /// Runs `work` on the session, and wakes its task if it has something to do afterwards.
    fn with_session<T>(&self, work: impl FnOnce(&mut SessionState, StreamId) -> T) -> T {
        let mut state = self.shared.lock();
        let done = work(&mut state, self.id);
        let waker = state.driver_to_wake();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
        done
    }
}

impl Link {
    /// Creates the handle of the new stream `id`.
    pub(super) fn new_stream(
        shared: &Arc<SharedSession>,
        state: &mut SessionState,
        id: StreamId,
    ) -> SmuxStream {
        state.add_stream(id);
        let shared = Arc::clone(shared);
        let padded = shared.pads.clone().map(QppStream::new);
        SmuxStream(Buffered::new(Self(Arc::new(StreamHandle {
            shared,
            id,
            padded,
        }))))
    }
}

impl SmuxStream {
    /// Returns the number of the stream.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.0.raw().0.id.get()
    }
}

impl StreamHandle {
    fn poll_read(&self, cx: &Context<'_>, out: &mut [u8]) -> Poll<io::Result<usize>> {
        self.with_session(|state, id| match (state.core.read(id, out), &state.end) {
            (Ok(n), _) => Poll::Ready(Ok(n)),
            (Err(StreamError::Empty), None) => {
                state.wait_for_stream(id, StreamSide::Reader, cx);
                Poll::Pending
            }
            (Err(StreamError::Empty), Some(end)) => Poll::Ready(Err(end.to_io_error())),
            (Err(why), _) => Poll::Ready(Err(broken_pipe(why))),
        })
    }

    fn poll_write(&self, cx: &Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.with_session(|state, id| {
            if let Some(end) = &state.end {
                return Poll::Ready(Err(end.to_io_error()));
            }
            match state.core.write(id, bytes) {
                Ok(0) => {
                    state.wait_for_stream(id, StreamSide::Writer, cx);
                    Poll::Pending
                }
                done => Poll::Ready(done.map_err(broken_pipe)),
            }
        })
    }
}

impl RawStream for Link {
    fn poll_read(&mut self, cx: &mut Context<'_>, out: &mut [u8]) -> Poll<io::Result<usize>> {
        match &self.0.padded {
            None => self.0.poll_read(cx, out),
            Some(padded) => padded.read_with(out, |out| self.0.poll_read(cx, out)),
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &self.0.padded {
            None => self.0.poll_write(cx, bytes),
            Some(padded) => padded.write_with(bytes, |bytes| self.0.poll_write(cx, bytes)),
        }
    }

    fn poll_finish(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = self.0.with_session(|state, id| state.core.close_write(id));
        Poll::Ready(done.map_err(broken_pipe))
    }

    /// The peer sees an ordinary end: the protocol has no other.
    fn abort(&mut self) {
        self.0.with_session(|state, id| state.core.abort(id));
    }

    /// The session's task and those of the other streams take turns on the same data; with relays
    /// on other threads a GiB through the tunnel took 5 % more processor time.
    fn lane(&self) -> RelayLane {
        RelayLane::Home
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Link({})", self.0.id.get())
    }
}

fn broken_pipe(why: StreamError) -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, why)
}
