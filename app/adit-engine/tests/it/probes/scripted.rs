//! A stream whose peer follows a script, and records its observations.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use adit_stream::Stream;
use tokio::time::{Instant, Sleep, sleep_until};

/// The actions of a peer, at times relative to the start of the connection.
pub(crate) type Script = Vec<(Duration, Act)>;

/// An action of a peer.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    Say(Vec<u8>),
    End,
}

/// The observations of a peer, at times relative to the start of the connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Number of bytes received.
    pub(crate) answer: usize,
    /// An end of the stream.
    pub(crate) end: Option<Duration>,
    /// A reset, or a close with unread bytes.
    pub(crate) reset: Option<Duration>,
    /// The final close: the server has dropped the connection.
    pub(crate) closed: Option<Duration>,
    /// Number of bytes that were accepted before the window closed.
    pub(crate) taken: usize,
}

/// The server's side of a connection.
pub(crate) struct Scripted {
    script: VecDeque<(Duration, Act)>,
    began: Instant,
    timer: Pin<Box<Sleep>>,
    held: Vec<u8>,
    ended: bool,
    aborted: bool,
    slot: [u8; 64],
    seen: Arc<Mutex<Seen>>,
}

impl Scripted {
    /// Creates a connection that starts now; the observations are complete when it is dropped.
    pub(crate) fn new(script: Script) -> (Self, Arc<Mutex<Seen>>) {
        let seen = Arc::default();
        let began = Instant::now();
        let stream = Self {
            script: script.into(),
            began,
            timer: Box::pin(sleep_until(began)),
            held: Vec::new(),
            ended: false,
            aborted: false,
            slot: [0; 64],
            seen: Arc::clone(&seen),
        };
        (stream, seen)
    }

    /// Returns the next action, if its time has come.
    fn arrived(&mut self) -> Option<Act> {
        let now = self.began.elapsed();
        if self.script.front()?.0 > now {
            return None;
        }
        self.script.pop_front().map(|(_, act)| act)
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        let now = self.began.elapsed();
        let unread = matches!(self.arrived(), Some(Act::Say(_)));
        let mut seen = self.seen.lock().unwrap();
        if self.aborted || unread {
            seen.reset = Some(now);
        } else if seen.end.is_none() {
            seen.end = Some(now);
        }
        seen.closed = Some(now);
    }
}

impl Stream for Scripted {
    fn poll_fill(&mut self, cx: &mut Context<'_>, want: usize) -> Poll<io::Result<usize>> {
        while self.held.len() < want && !self.ended {
            match self.arrived() {
                Some(Act::Say(bytes)) => {
                    self.seen.lock().unwrap().taken += bytes.len();
                    self.held.extend(bytes);
                }
                Some(Act::End) => self.ended = true,
                None => {
                    let Some((at, _)) = self.script.front() else {
                        return Poll::Pending;
                    };
                    let at = self.began + *at;
                    self.timer.as_mut().reset(at);
                    ready!(self.timer.as_mut().poll(cx));
                }
            }
        }
        Poll::Ready(Ok(self.held.len()))
    }

    fn filled(&mut self) -> &mut [u8] {
        &mut self.held
    }

    fn runs<'a>(&'a mut self, out: &mut [IoSlice<'a>]) -> usize {
        out[0] = IoSlice::new(&self.held);
        1
    }

    fn consume(&mut self, n: usize) {
        self.held.drain(..n);
    }

    fn poll_slot(&mut self, _: &mut Context<'_>, _: usize) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(self.slot.len()))
    }

    fn slot(&mut self) -> &mut [u8] {
        &mut self.slot
    }

    fn commit(&mut self, n: usize) -> io::Result<()> {
        self.seen.lock().unwrap().answer += n;
        Ok(())
    }

    fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_finish(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.seen.lock().unwrap().end = Some(self.began.elapsed());
        Poll::Ready(Ok(()))
    }

    fn abort(&mut self) {
        self.aborted = true;
    }
}
