//! The state that a channel's handle and the session's task share: bytes in both directions, and how
//! they end.

mod ordered;
mod room;
mod state;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use adit_ssh_proto::connection::{ChannelId, Kind, ReplyTo, Request, WantReply};
use adit_wire::{held, usize_from};
use tokio::sync::Notify;

use super::chunks::Chunks;
use super::error::{End, RequestError};
use super::mail::{Command, Listed, Mail};
use super::messages::Bounds;
use adit_stream::Buffer;
use ordered::Ordered;
use room::{MAX_OUTPUT, keep};
use state::{Cut, index, octets};
pub(super) use state::{Next, State};

/// Maximum number of the peer's requests that wait in one channel.
const MAX_REQUESTS: usize = 128;
/// Maximum size of the names and values in them, in bytes: the maximum length of one message.
const MAX_ASKED: usize = 256 << 10;
/// Number of consumed bytes reported to a task that has not set a threshold yet: a quarter of the
/// smallest possible window, and at most this.
const WORTH: usize = 128 << 10;

/// A channel, as shared by its handle and the session's task.
#[derive(Debug)]
pub(super) struct Pipe {
    pub(super) id: ChannelId,
    pub(super) mail: Arc<Mail>,
    pub(super) listed: Listed,
    state: Mutex<State>,
    /// Notified when a request arrives, the program exits, or the channel closes.
    pub(super) news: Notify,
}

impl Pipe {
    /// Creates the shared state. `window` is the smallest window that the peer may have been granted,
    /// in bytes. With `messages` the channel is in message mode.
    pub(super) fn new(
        id: ChannelId,
        mail: Arc<Mail>,
        window: u32,
        messages: Option<Bounds>,
    ) -> Self {
        let window = usize_from(window);
        let state = State {
            writing: [true, false],
            worth: (window / 4).clamp(1, WORTH),
            ordered: messages.map(|bounds| Box::new(Ordered::new(bounds))),
            ..State::default()
        };
        Self {
            id,
            mail,
            listed: Listed::default(),
            state: Mutex::new(state),
            news: Notify::new(),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For the handle: takes all received bytes; 0 means the end.
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
                Poll::Pending
            }
        }
    }

    /// For the handle: reports that `n` bytes were read.
    pub(super) fn consumed(self: &Arc<Self>, n: usize) {
        let mut state = self.lock();
        state.consumed += n;
        let tell = state.consumed >= state.worth;
        drop(state);
        if tell {
            self.mail.poke(self);
        }
    }

    /// For the handle: stops reading this stream and discards what waits in it.
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

    /// For the handle: queues bytes to be sent. They are moved out of `buffer` once there is space.
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

    /// For the handle: copies bytes to be sent and returns their number.
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
        state.outlet(kind).push(held(bytes, ..n), &self.mail.spares);
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
            if let Some(writer) = state.writers.get_mut(index(kind)) {
                keep(writer, cx);
            }
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }

    /// For the handle: sends a request, and waits for the reply if it wants one.
    pub(super) async fn ask(
        self: &Arc<Self>,
        request: Request,
        want: WantReply,
    ) -> Result<(), RequestError> {
        let pipe = Arc::clone(self);
        let asked = self.mail.ask(|reply| Command::Request {
            pipe,
            request,
            want,
            reply,
        });
        asked.await
    }

    /// For the handle: changes the state and wakes the task to look at it.
    pub(super) fn set(self: &Arc<Self>, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.mail.poke(self);
    }

    /// For the handle: discards unsent bytes.
    pub(super) fn abort(self: &Arc<Self>) {
        self.set(|state| {
            state.aborted = true;
            for output in &mut state.output {
                output.clear();
            }
        });
    }

    /// For the task: sets the number of consumed bytes that it next wants to be notified of. If they
    /// were read already, returns them.
    pub(super) fn set_worth(&self, octets: usize) -> usize {
        let mut state = self.lock();
        state.worth = octets;
        match state.consumed >= octets {
            true => state.take_consumed(),
            false => 0,
        }
    }

    /// For the task: stores received bytes and collects the reader to wake; returns false if the stream
    /// is not read.
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

    /// For the task: records that the peer sends no more bytes.
    pub(super) fn end_input(&self, wake: &mut Vec<Waker>) {
        let mut state = self.lock();
        state.ended = true;
        for inlet in &mut state.input {
            wake.extend(inlet.reader.take());
        }
    }

    /// For the task: records that the channel has closed; with `reset` missing bytes are an error.
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

    /// For the task: records that the session is over.
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

    /// For the task: stores a request of the peer; returns its reply as an error if it cannot.
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
                wake.extend(state.writers.iter_mut().filter_map(Option::take));
            }
            _ if !state.serves || state.dropped => return Err(reply),
            _ if state.requests.len() >= MAX_REQUESTS => return Err(reply),
            _ if state.asked_octets() + octets(&request) > MAX_ASKED => return Err(reply),
            _ => state.requests.push_back((request, reply)),
        }
        drop(state);
        self.news.notify_waiters();
        Ok(())
    }

    /// For the handle: waits until `look` returns a value, or the channel has closed.
    pub(super) async fn until<T>(
        &self,
        mut look: impl FnMut(&mut State) -> Option<T>,
    ) -> Option<T> {
        loop {
            let news = self.news.notified();
            tokio::pin!(news);
            // Enabled before the check, so that no change between the two is missed.
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
