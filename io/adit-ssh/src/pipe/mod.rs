//! What a channel's handle and the session's task share: bytes both ways, and how they end.

mod ordered;
mod room;
mod state;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use adit_ssh_proto::connection::{ChannelId, Kind, ReplyTo, Request, WantReply};
use adit_wire::{subslice, usize_from};
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

/// Requests of the peer that wait in one channel.
const MAX_REQUESTS: usize = 128;
/// Octets of the names and values in them: as long as one message may be.
const MAX_ASKED: usize = 256 << 10;
/// Consumed octets that are told to a task that has not said how many it wants to hear of: a
/// quarter of a window's least, and no more than this.
const WORTH: usize = 128 << 10;

/// A channel between its two sides.
#[derive(Debug)]
pub(super) struct Pipe {
    pub(super) id: ChannelId,
    pub(super) mail: Arc<Mail>,
    pub(super) listed: Listed,
    state: Mutex<State>,
    /// Told when a request came, how the program ended, or the channel closed.
    pub(super) news: Notify,
}

impl Pipe {
    /// `window`: the least window that its peer may have been given, octets. With `messages` it goes
    /// message by message.
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
                Poll::Pending
            }
        }
    }

    /// The handle: `n` octets were read.
    pub(super) fn consumed(self: &Arc<Self>, n: usize) {
        let mut state = self.lock();
        state.consumed += n;
        let tell = state.consumed >= state.worth;
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
            .push(subslice(bytes, ..n), &self.mail.spares);
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

    /// The handle: asks for something, and waits for the answer if there is one.
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

    /// The task: so many consumed octets it wants to hear of the next time. Gives them if there are
    /// as many already.
    pub(super) fn set_worth(&self, octets: usize) -> usize {
        let mut state = self.lock();
        state.worth = octets;
        match state.consumed >= octets {
            true => state.take_consumed(),
            false => 0,
        }
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
