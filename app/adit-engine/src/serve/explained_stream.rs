//! The stream of a server whose end without an answer is explained to the client.

use std::io::{self, IoSlice, IoSliceMut};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use adit_stream::lane::RelayLane;
use adit_stream::{BoxStream, Stream, Tcp};
use adit_wire::{subslice, subslice_mut};
use tokio::time::{Sleep, sleep};
use tracing::debug;

use crate::acceptor::LateFailure;
use crate::connector::{HopWatch, ServerProof};
use crate::{FailureCause, ServerHealth};

/// Interval between two looks at the health of a silent server.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// A stream that lends an explanation to its reader if the server ends it, or fails, before a byte of an answer.
///
/// A hop's server that has a different key than this client closes the connection, or is silent. Without the
/// explanation an HTTP client would see an empty reply. A silent server is given up once a check of it has failed, too.
pub(super) struct ExplainedStream {
    io: BoxStream,
    state: State,
}

enum State {
    /// No byte of an answer has arrived.
    Unanswered(Box<Unanswered>),
    /// The bytes are those of the server.
    Answered,
    /// The server has not answered.
    Explained { text: Vec<u8>, read: usize },
}

struct Unanswered {
    reply: LateFailure,
    hop: Option<WatchedHop>,
    /// The time of the next look at the health of the hop's server.
    look: Option<Pin<Box<Sleep>>>,
}

/// A hop whose server has to prove that it has the key.
struct WatchedHop {
    health: Arc<ServerHealth>,
    progress: Arc<dyn ServerProof>,
}

impl Unanswered {
    /// Returns the explanation of an end.
    fn explain(&self, cause: FailureCause, why: &io::Error) -> Vec<u8> {
        let unproven = self.hop.as_ref();
        let unproven = unproven.filter(|hop| !hop.progress.is_authenticated());
        let hop = unproven.map(|hop| hop.health.name());
        debug!(
            hop,
            cause = cause.label(),
            "the client gets an error page: {why}"
        );
        self.reply.response(hop, cause)
    }

    /// Waits until a check of a silent server has failed.
    fn poll_given_up(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(hop) = &self.hop else {
            return Poll::Pending;
        };
        // Leaves time for the check, which starts at the limit.
        let first = || Box::pin(sleep(hop.health.silence_limit() + LOOK_INTERVAL));
        let look = self.look.get_or_insert_with(first);
        loop {
            ready!(look.as_mut().poll(cx));
            if !hop.progress.is_authenticated() && hop.health.has_failed_check() {
                return Poll::Ready(());
            }
            look.set(sleep(LOOK_INTERVAL));
        }
    }
}

impl ExplainedStream {
    /// Wraps the stream of a server for a client with such a reply.
    pub(super) fn new(io: BoxStream, reply: LateFailure, watch: Option<&HopWatch>) -> Self {
        let hop = watch.map(|watch| WatchedHop {
            health: watch.health.clone(),
            progress: watch.progress.clone(),
        });
        let unanswered = Unanswered {
            reply,
            hop,
            look: None,
        };
        Self {
            io,
            state: State::Unanswered(Box::new(unanswered)),
        }
    }

    /// Replaces the stream by the explanation of `why`, if no byte has arrived.
    ///
    /// # Errors
    ///
    /// `why`, if there was an answer.
    fn explain(&mut self, why: io::Error) -> io::Result<()> {
        match &self.state {
            State::Unanswered(unanswered) => {
                let text = unanswered.explain(FailureCause::from_io_error(&why), &why);
                self.state = State::Explained { text, read: 0 };
                Ok(())
            }
            State::Answered | State::Explained { .. } => Err(why),
        }
    }

    /// Returns the state of the direction to the server if that is not written to any more: pending until the
    /// explanation has been read, so that the direction to the client ends first. A relay polls it again then.
    fn poll_closed(&self) -> Option<Poll<()>> {
        match &self.state {
            State::Explained { text, read } if *read < text.len() => Some(Poll::Pending),
            State::Explained { .. } => Some(Poll::Ready(())),
            State::Unanswered(_) | State::Answered => None,
        }
    }

    /// Flushes or finishes the stream below.
    fn poll_below(
        &mut self,
        poll: impl FnOnce(&mut BoxStream) -> Poll<io::Result<()>>,
    ) -> Poll<io::Result<()>> {
        if self.poll_closed().is_none() {
            match ready!(poll(&mut self.io)) {
                Ok(()) => return Poll::Ready(Ok(())),
                Err(why) => self.explain(why)?,
            }
        }
        self.poll_closed().unwrap_or(Poll::Pending).map(Ok)
    }
}

impl Stream for ExplainedStream {
    fn poll_fill(&mut self, cx: &mut Context<'_>, want: usize) -> Poll<io::Result<usize>> {
        match &mut self.state {
            State::Answered => return self.io.poll_fill(cx, want),
            State::Explained { text, read } => return Poll::Ready(Ok(text.len() - *read)),
            State::Unanswered(unanswered) => match self.io.poll_fill(cx, want) {
                Poll::Ready(Ok(n)) if n > 0 || want == 0 => {
                    self.state = State::Answered;
                    return Poll::Ready(Ok(n));
                }
                Poll::Ready(Ok(_)) => self.explain(io::ErrorKind::UnexpectedEof.into())?,
                Poll::Ready(Err(why)) => self.explain(why)?,
                Poll::Pending => {
                    ready!(unanswered.poll_given_up(cx));
                    self.explain(io::ErrorKind::TimedOut.into())?;
                    self.io.abort();
                }
            },
        }
        Poll::Ready(Ok(self.filled().len()))
    }

    fn filled(&mut self) -> &mut [u8] {
        match &mut self.state {
            State::Explained { text, read } => subslice_mut(text, *read..),
            State::Unanswered(_) | State::Answered => self.io.filled(),
        }
    }

    fn runs<'a>(&'a mut self, out: &mut [IoSlice<'a>]) -> usize {
        match (&mut self.state, out.first_mut()) {
            (State::Unanswered(_) | State::Answered, _) => self.io.runs(out),
            (State::Explained { text, read }, Some(first)) if *read < text.len() => {
                *first = IoSlice::new(subslice(text, *read..));
                1
            }
            (State::Explained { .. }, _) => 0,
        }
    }

    fn consume(&mut self, n: usize) {
        match &mut self.state {
            State::Explained { text, read } => *read = text.len().min(*read + n),
            State::Unanswered(_) | State::Answered => self.io.consume(n),
        }
    }

    fn poll_slot(&mut self, cx: &mut Context<'_>, min: usize) -> Poll<io::Result<usize>> {
        if self.poll_closed().is_none() {
            match ready!(self.io.poll_slot(cx, min)) {
                Ok(size) => return Poll::Ready(Ok(size)),
                Err(why) => self.explain(why)?,
            }
        }
        self.poll_closed().unwrap_or(Poll::Pending).map(|()| Ok(0))
    }

    fn slot(&mut self) -> &mut [u8] {
        match &self.state {
            State::Explained { .. } => Default::default(),
            State::Unanswered(_) | State::Answered => self.io.slot(),
        }
    }

    fn slots<'a>(&'a mut self, out: &mut [IoSliceMut<'a>]) -> usize {
        match &self.state {
            State::Explained { .. } => 0,
            State::Unanswered(_) | State::Answered => self.io.slots(out),
        }
    }

    fn commit(&mut self, n: usize) -> io::Result<()> {
        match &self.state {
            State::Explained { .. } => Ok(()),
            State::Unanswered(_) | State::Answered => {
                self.io.commit(n).or_else(|why| self.explain(why))
            }
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_below(|io| io.poll_flush(cx))
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_below(|io| io.poll_finish(cx))
    }

    fn abort(&mut self) {
        self.io.abort();
    }

    fn owes_head(&self) -> bool {
        self.poll_closed().is_none() && self.io.owes_head()
    }

    fn complete(&self) -> bool {
        match self.poll_closed() {
            Some(closed) => closed.is_ready(),
            None => self.io.complete(),
        }
    }

    fn bare(&mut self) -> Option<&mut Tcp> {
        match &self.state {
            State::Answered => self.io.bare(),
            State::Unanswered(_) | State::Explained { .. } => None,
        }
    }

    fn bottom(&mut self) -> Option<&mut Tcp> {
        self.io.bottom()
    }

    fn lane(&self) -> RelayLane {
        self.io.lane()
    }
}
