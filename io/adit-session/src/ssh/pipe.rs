//! What a channel's handle and the session's task share: bytes both ways, and how they end.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use adit_ssh::connection::{ChannelId, Kind, ReplyTo, Request};
use tokio::sync::Notify;

use super::chunks::Chunks;
use super::error::End;
use super::mail::{Listed, Mail};
use crate::stream::Buffer;

/// Octets that wait in one channel to be sent; one buffer may go beyond.
const MAX_OUTPUT: usize = 256 << 10;
/// Requests of the peer that wait in one channel.
const MAX_REQUESTS: usize = 128;
/// Consumed octets that are told to the task at once; windows are widened by no less.
const WORTH: usize = 128 << 10;

/// A channel between its two sides.
#[derive(Debug)]
pub(super) struct Pipe {
    pub(super) id: ChannelId,
    pub(super) mail: Arc<Mail>,
    pub(super) listed: Listed,
    /// Consumed octets that are worth a message to the task: at once, and before a reader waits.
    worth: (usize, usize),
    state: Mutex<State>,
    /// Told when a request came, how the program ended, or the channel closed.
    pub(super) news: Notify,
}

/// What is behind the lock.
#[derive(Debug, Default)]
pub(super) struct State {
    input: [Inlet; 2],
    /// The peer sends no more bytes.
    ended: bool,
    /// The channel has closed.
    pub(super) closed: bool,
    /// It was cut off.
    cut: Option<Cut>,
    /// Octets that were read and not told to the task.
    consumed: usize,

    output: [Chunks; 2],
    writer: Option<Waker>,
    /// Streams that may still be written to.
    writing: [bool; 2],
    /// Nobody holds the channel any more, or it is at its end.
    dropped: bool,
    /// What was not sent is not sent any more.
    aborted: bool,
    /// To be told behind the last byte.
    last: Option<Request>,
    /// The channel has an end that answers requests.
    serves: bool,

    /// Requests of the peer.
    pub(super) requests: VecDeque<(Request, Option<ReplyTo>)>,
    /// How the program ended.
    pub(super) exit: Option<Request>,
}

/// What a channel's own side wants.
#[derive(Debug)]
pub(super) enum Next {
    /// Nothing now.
    Nothing,
    /// There are bytes to send.
    Write,
    /// All is sent, and that was all.
    Finish {
        /// To be told behind it.
        last: Option<Request>,
        /// Nobody holds the channel any more.
        close: bool,
    },
    /// The channel is to be closed as it is.
    Abort,
}

/// One stream from the peer.
#[derive(Debug, Default)]
struct Inlet {
    bytes: Chunks,
    reader: Option<Waker>,
    /// Nobody reads it.
    deaf: bool,
}

/// Why reading stops.
#[derive(Debug, Clone)]
enum Cut {
    Session(End),
    Reset,
}

impl Cut {
    fn error(&self) -> io::Error {
        match self {
            Self::Session(end) => end.error(),
            Self::Reset => io::Error::new(
                io::ErrorKind::ConnectionReset,
                "the peer closed the channel in the middle",
            ),
        }
    }
}

const fn index(kind: Kind) -> usize {
    match kind {
        Kind::Stdout => 0,
        Kind::Stderr => 1,
    }
}

impl State {
    fn inlet(&mut self, kind: Kind) -> &mut Inlet {
        let [out, err] = &mut self.input;
        if index(kind) == 0 { out } else { err }
    }

    pub(super) fn outlet(&mut self, kind: Kind) -> &mut Chunks {
        let [out, err] = &mut self.output;
        if index(kind) == 0 { out } else { err }
    }

    fn unsent(&self) -> usize {
        self.output.iter().map(Chunks::len).sum()
    }

    /// Whether there is nothing left to send.
    pub(super) fn is_sent(&self) -> bool {
        self.unsent() == 0
    }

    /// Which stream has bytes to send: standard error first, of which there is little.
    pub(super) fn next_kind(&self) -> Kind {
        match &self.output {
            [_, err] if !err.is_empty() => Kind::Stderr,
            _ => Kind::Stdout,
        }
    }

    /// What the task is to do about the channel's own side.
    pub(super) fn next(&mut self) -> Next {
        if self.aborted {
            Next::Abort
        } else if !self.is_sent() {
            Next::Write
        } else if self.writing == [false; 2] {
            let last = self.last.take();
            // How the program ended is the last word.
            self.dropped |= last.is_some();
            Next::Finish {
                last,
                close: self.dropped,
            }
        } else {
            Next::Nothing
        }
    }

    /// What was to be told behind the last byte could not be told yet.
    pub(super) fn put_back(&mut self, last: Request) {
        self.last = Some(last);
    }

    /// The handle: nothing is written to this stream any more.
    pub(super) fn finish(&mut self, kind: Kind) {
        if let Some(writing) = self.writing.get_mut(index(kind)) {
            *writing = false;
        }
    }

    /// The handle: nobody holds the channel any more.
    pub(super) fn leave(&mut self) {
        (self.writing, self.dropped) = ([false; 2], true);
    }

    /// The handle: this is told behind the last byte.
    pub(super) fn exit(&mut self, how: Request) {
        self.last.get_or_insert(how);
    }

    /// The handle: requests of the peer will be answered, and there is a standard error.
    pub(super) fn serve(&mut self) {
        (self.serves, self.writing) = (true, [true; 2]);
    }

    /// Takes who waits for room, if there is room.
    pub(super) fn take_writer(&mut self) -> Option<Waker> {
        if self.unsent() < MAX_OUTPUT {
            self.writer.take()
        } else {
            None
        }
    }

    /// Octets that were read since the last time.
    pub(super) fn take_consumed(&mut self) -> usize {
        core::mem::take(&mut self.consumed)
    }

    fn wake_all(&mut self, wake: &mut Vec<Waker>) {
        wake.extend(self.writer.take());
        for inlet in &mut self.input {
            wake.extend(inlet.reader.take());
        }
    }
}

impl Pipe {
    /// `window`: the least window that its peer may have been given, octets.
    pub(super) fn new(id: ChannelId, mail: Arc<Mail>, window: u32) -> Self {
        let window = usize::try_from(window).unwrap_or(usize::MAX);
        let state = State {
            writing: [true, false],
            ..State::default()
        };
        Self {
            id,
            mail,
            listed: Listed::default(),
            worth: (WORTH, (window / 4).clamp(1, WORTH)),
            state: Mutex::new(state),
            news: Notify::new(),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The handle: takes all that came; 0 is the end.
    pub(super) fn poll_take(
        self: &Arc<Self>,
        cx: &Context<'_>,
        kind: Kind,
        into: &mut Chunks,
    ) -> Poll<io::Result<usize>> {
        let mut state = self.lock();
        let (ended, cut) = (state.ended, state.cut.clone());
        let inlet = state.inlet(kind);
        let n = inlet.bytes.len();
        if n > 0 {
            into.take(&mut inlet.bytes);
            return Poll::Ready(Ok(n));
        }
        match cut {
            _ if ended => Poll::Ready(Ok(0)),
            Some(cut) => Poll::Ready(Err(cut.error())),
            None => {
                keep(&mut inlet.reader, cx);
                // The peer may wait for the window that this reader has made.
                let tell = state.consumed >= self.worth.1;
                drop(state);
                if tell {
                    self.mail.poke(self);
                }
                Poll::Pending
            }
        }
    }

    /// The handle: `n` octets were read.
    pub(super) fn consumed(self: &Arc<Self>, n: usize) {
        let mut state = self.lock();
        state.consumed += n;
        let tell = state.consumed >= self.worth.0;
        drop(state);
        if tell {
            self.mail.poke(self);
        }
    }

    /// The handle: nobody reads this stream any more.
    pub(super) fn deafen(self: &Arc<Self>, kind: Kind) {
        let mut state = self.lock();
        let inlet = state.inlet(kind);
        inlet.deaf = true;
        let n = inlet.bytes.len();
        inlet.bytes.clear();
        state.consumed += n;
        drop(state);
        self.mail.poke(self);
    }

    /// The handle: gives bytes to be sent. They are taken out of `buffer` when there is room.
    pub(super) fn poll_give(
        self: &Arc<Self>,
        cx: &Context<'_>,
        kind: Kind,
        buffer: &mut Buffer,
    ) -> Poll<io::Result<()>> {
        let mut state = self.lock();
        match Self::writable(&mut state, kind, cx) {
            Poll::Ready(Ok(())) => {}
            other => return other,
        }
        state
            .outlet(kind)
            .append(core::mem::take(buffer), &self.mail.spares);
        drop(state);
        self.mail.poke(self);
        Poll::Ready(Ok(()))
    }

    /// The handle: copies bytes to be sent; gives how many.
    pub(super) fn poll_copy(
        self: &Arc<Self>,
        cx: &Context<'_>,
        kind: Kind,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut state = self.lock();
        match Self::writable(&mut state, kind, cx) {
            Poll::Ready(Ok(())) => {}
            other => return other.map_ok(|()| 0),
        }
        let n = bytes.len().min(MAX_OUTPUT - state.unsent());
        state
            .outlet(kind)
            .push(bytes.get(..n).unwrap_or_default(), &self.mail.spares);
        drop(state);
        self.mail.poke(self);
        Poll::Ready(Ok(n))
    }

    fn writable(state: &mut State, kind: Kind, cx: &Context<'_>) -> Poll<io::Result<()>> {
        if let Some(Cut::Session(end)) = &state.cut {
            return Poll::Ready(Err(end.error()));
        }
        let writing = state.writing.get(index(kind)) == Some(&true);
        if state.closed || !writing || state.aborted {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if state.unsent() >= MAX_OUTPUT {
            keep(&mut state.writer, cx);
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }

    /// The handle: changes something that the task is to see.
    pub(super) fn set(self: &Arc<Self>, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.mail.poke(self);
    }

    /// The handle: gives up what was not sent.
    pub(super) fn abort(self: &Arc<Self>) {
        self.set(|state| {
            state.aborted = true;
            for output in &mut state.output {
                output.clear();
            }
        });
    }

    /// The task: bytes came. Gives who is to be woken; `false` if nobody reads them.
    pub(super) fn receive(&self, kind: Kind, bytes: &[u8], wake: &mut Vec<Waker>) -> bool {
        let mut state = self.lock();
        let inlet = state.inlet(kind);
        if inlet.deaf {
            return false;
        }
        inlet.bytes.push(bytes, &self.mail.spares);
        wake.extend(inlet.reader.take());
        true
    }

    /// The task: the peer sends no more bytes.
    pub(super) fn end_input(&self, wake: &mut Vec<Waker>) {
        let mut state = self.lock();
        state.ended = true;
        for inlet in &mut state.input {
            wake.extend(inlet.reader.take());
        }
    }

    /// The task: the channel has closed; `reset` if that means that bytes are missing.
    pub(super) fn close(&self, reset: bool, wake: &mut Vec<Waker>) {
        let mut state = self.lock();
        state.closed = true;
        if !state.ended {
            match reset {
                true => state.cut = Some(Cut::Reset),
                false => state.ended = true,
            }
        }
        for output in &mut state.output {
            output.clear();
        }
        state.wake_all(wake);
        drop(state);
        self.news.notify_waiters();
    }

    /// The task: the session is over.
    pub(super) fn cut(&self, end: &End, wake: &mut Vec<Waker>) {
        let mut state = self.lock();
        state.closed = true;
        state.cut.get_or_insert_with(|| Cut::Session(end.clone()));
        for output in &mut state.output {
            output.clear();
        }
        state.wake_all(wake);
        drop(state);
        self.news.notify_waiters();
    }

    /// The task: a request of the peer; given back if it cannot be kept.
    pub(super) fn request(
        &self,
        request: Request,
        reply: Option<ReplyTo>,
        wake: &mut Vec<Waker>,
    ) -> Result<(), Option<ReplyTo>> {
        let mut state = self.lock();
        match request {
            Request::ExitStatus(_) | Request::ExitSignal { .. } if reply.is_none() => {
                state.exit.get_or_insert(request);
            }
            Request::EndOfWrite if !state.serves => {
                for output in &mut state.output {
                    output.clear();
                }
                state.writing = [false; 2];
                wake.extend(state.writer.take());
            }
            _ if !state.serves || state.dropped => return Err(reply),
            _ if state.requests.len() >= MAX_REQUESTS => return Err(reply),
            _ => state.requests.push_back((request, reply)),
        }
        drop(state);
        self.news.notify_waiters();
        Ok(())
    }

    /// The handle: waits until `look` finds something, or the channel has closed.
    pub(super) async fn until<T>(
        &self,
        mut look: impl FnMut(&mut State) -> Option<T>,
    ) -> Option<T> {
        loop {
            let news = self.news.notified();
            tokio::pin!(news);
            // Before the look, so that nothing is missed between the two.
            news.as_mut().enable();
            {
                let mut state = self.lock();
                if let Some(found) = look(&mut state) {
                    return Some(found);
                }
                if state.closed {
                    return None;
                }
            }
            news.await;
        }
    }
}

fn keep(place: &mut Option<Waker>, cx: &Context<'_>) {
    match place {
        Some(old) => old.clone_from(cx.waker()),
        none => *none = Some(cx.waker().clone()),
    }
}
