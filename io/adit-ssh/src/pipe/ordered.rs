//! Channels in message mode: received and sent messages, each in order.

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

use adit_ssh_proto::connection::{CallError, Kind, Request, WantReply};

use super::room::{MAX_OUTPUT, keep};
use super::state::{Cut, Next, State};
use crate::error::RequestError;
use crate::messages::{Bounds, Message, Say};
use crate::spares::Spares;

/// Maximum size of data that waits to be sent in one channel, in bytes, for callers that cannot wait.
const MAX_PENDING: usize = 16 << 20;
/// Maximum number of data chunks in the send queue; further data joins the last chunk. Requests, EOF
/// and close may double it.
const MAX_PIECES: usize = 1024;

/// The queues of a channel in message mode, besides its bytes.
#[derive(Debug)]
pub(crate) struct Ordered {
    bounds: Bounds,
    came: VecDeque<Message>,
    /// Number of received messages that count towards the limit: neither data nor an end.
    plain: usize,
    /// True if the messages are not read any more.
    deaf: bool,
    reader: Option<Waker>,
    /// True once the channel is open at both ends.
    open: bool,
    /// True if a message handle exists: then the channel closes only on request.
    kept: bool,
    sends: VecDeque<Sends>,
    /// True if an EOF or a close is at the end of the queue.
    ends: bool,
    closes: bool,
    writers: Vec<Waker>,
}

/// An entry of the send queue. The bytes of data are in their stream's output queue.
#[derive(Debug)]
enum Sends {
    Data(Kind, usize),
    Request(Request, WantReply),
    Eof,
    Close,
}

impl Ordered {
    pub(super) const fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            came: VecDeque::new(),
            plain: 0,
            deaf: false,
            reader: None,
            open: false,
            kept: false,
            sends: VecDeque::new(),
            ends: false,
            closes: false,
            writers: Vec::new(),
        }
    }

    /// Returns the next action for this end of the channel.
    pub(super) fn next(&mut self) -> Next {
        match self.sends.front() {
            Some(Sends::Data(..)) if self.open => return Next::Write,
            Some(_) if self.open => {}
            _ => return Next::Nothing,
        }
        match self.sends.pop_front() {
            Some(Sends::Request(request, want)) => Next::Tell(request, want),
            Some(Sends::Eof) => Next::End,
            _ => Next::Abort,
        }
    }

    pub(super) fn put_back(&mut self, request: Request, want: WantReply) {
        self.sends.push_front(Sends::Request(request, want));
    }

    /// Returns the stream and the number of the bytes at the front.
    pub(super) fn next_bytes(&self) -> (Kind, usize) {
        match self.sends.front() {
            Some(Sends::Data(kind, n)) => (*kind, *n),
            _ => (Kind::Stdout, 0),
        }
    }

    /// Records that `n` bytes were sent; returns true if the next entry is not data.
    pub(super) fn sent(&mut self, n: usize) -> bool {
        if let Some(Sends::Data(_, left)) = self.sends.front_mut() {
            *left = left.saturating_sub(n);
            if *left == 0 {
                self.sends.pop_front();
            }
        }
        !matches!(self.sends.front(), Some(Sends::Data(..)))
    }

    /// Records that the handle for the channel was dropped.
    pub(super) fn leave(&mut self) {
        if !self.kept {
            self.sends.push_back(Sends::Close);
        }
    }

    /// Takes the wakers of writers if there are few enough chunks.
    pub(super) fn take_writers(&mut self) -> Vec<Waker> {
        if self.sends.len() < self.bounds.pieces.max(1) {
            core::mem::take(&mut self.writers)
        } else {
            Vec::new()
        }
    }

    pub(super) fn wake_all(&mut self, wake: &mut Vec<Waker>) {
        wake.append(&mut self.writers);
        wake.extend(self.reader.take());
    }

    fn put(&mut self, message: Message, wake: &mut Vec<Waker>) -> bool {
        let plain = is_plain(&message);
        if self.deaf || plain && self.plain >= self.bounds.messages.max(1) {
            return false;
        }
        self.plain += usize::from(plain);
        self.came.push_back(message);
        wake.extend(self.reader.take());
        true
    }
}

const fn is_plain(message: &Message) -> bool {
    !matches!(message, Message::Data(..) | Message::Eof | Message::Closed)
}

impl State {
    /// For the task: stores a received message; returns false if it will not be read.
    pub(crate) fn put_message(&mut self, message: Message, wake: &mut Vec<Waker>) -> bool {
        let ordered = self.ordered.as_mut();
        ordered.is_some_and(|ordered| ordered.put(message, wake))
    }

    /// For the task: records that the channel is open at both ends.
    pub(crate) fn open(&mut self) {
        if let Some(ordered) = &mut self.ordered {
            ordered.open = true;
        }
    }

    /// For the handle: the channel closes only on request.
    pub(crate) fn keep(&mut self) {
        if let Some(ordered) = &mut self.ordered {
            ordered.kept = true;
        }
    }

    /// For the handle: returns the next message; `None` if nothing follows.
    pub(crate) fn poll_message(&mut self, cx: &Context<'_>) -> Poll<Option<Message>> {
        let Some(ordered) = &mut self.ordered else {
            return Poll::Ready(None);
        };
        match ordered.came.pop_front() {
            Some(message) => {
                ordered.plain -= usize::from(is_plain(&message));
                Poll::Ready(Some(message))
            }
            None if self.closed => Poll::Ready(None),
            None => {
                keep(&mut ordered.reader, cx);
                Poll::Pending
            }
        }
    }

    /// For the handle: stops reading messages and returns the number of unread data bytes.
    pub(crate) fn deafen_messages(&mut self) -> usize {
        let Some(ordered) = &mut self.ordered else {
            return 0;
        };
        (ordered.deaf, ordered.plain) = (true, 0);
        let left = ordered.came.drain(..).map(|message| match message {
            Message::Data(_, bytes) => bytes.len(),
            _ => 0,
        });
        left.sum()
    }

    fn speaks(&mut self) -> Result<&mut Ordered, RequestError> {
        if let Some(Cut::Session(end)) = &self.cut {
            return Err(end.clone().into());
        }
        let ordered = self.ordered.as_deref_mut().filter(|_| !self.closed);
        let ordered = ordered.filter(|ordered| !ordered.closes);
        ordered.ok_or(RequestError::Closed)
    }

    /// For the handle: waits for space for data and returns its size, in bytes.
    pub(crate) fn poll_room(&mut self, cx: &Context<'_>) -> Poll<Result<usize, RequestError>> {
        let unsent = self.unsent();
        let ordered = self.speaks()?;
        if unsent < MAX_OUTPUT && ordered.sends.len() < ordered.bounds.pieces.max(1) {
            return Poll::Ready(Ok(MAX_OUTPUT - unsent));
        }
        if !ordered.writers.iter().any(|old| old.will_wake(cx.waker())) {
            ordered.writers.push(cx.waker().clone());
        }
        Poll::Pending
    }

    /// For the handle: queues a message to be sent.
    pub(crate) fn say(&mut self, say: Say<'_>, spares: &Spares) -> Result<(), RequestError> {
        let unsent = self.unsent();
        let ordered = self.speaks()?;
        let sends = &mut ordered.sends;
        let full = || Err(CallError::Full.into());
        match say {
            Say::Data(_, []) => return Ok(()),
            Say::Data(..) if ordered.ends => return Err(RequestError::Closed),
            Say::Data(_, bytes) if unsent + bytes.len() > MAX_PENDING => return full(),
            Say::Data(kind, bytes) => {
                let many = sends.len() >= MAX_PIECES;
                match sends.back_mut() {
                    Some(Sends::Data(last, n)) if many && *last == kind => *n += bytes.len(),
                    _ if many => return full(),
                    _ => sends.push_back(Sends::Data(kind, bytes.len())),
                }
                self.outlet(kind).push(bytes, spares);
            }
            _ if sends.len() >= 2 * MAX_PIECES => return full(),
            Say::Behind(request) => sends.push_back(Sends::Request(request, WantReply::No)),
            Say::Ahead(request, want) => {
                let mut all = sends.iter();
                let first = all.position(|sends| !matches!(sends, Sends::Request(..)));
                let place = first.unwrap_or(sends.len());
                sends.insert(place, Sends::Request(request, want));
            }
            Say::Eof => {
                ordered.ends = true;
                sends.push_back(Sends::Eof);
            }
            Say::Close => {
                ordered.closes = true;
                sends.push_back(Sends::Close);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn state(messages: usize, pieces: usize) -> State {
        let mut state = State {
            ordered: Some(Box::new(Ordered::new(Bounds { messages, pieces }))),
            ..State::default()
        };
        state.open();
        state
    }

    fn take(state: &mut State) -> Poll<Option<Message>> {
        state.poll_message(&Context::from_waker(Waker::noop()))
    }

    #[test]
    fn what_has_no_bytes_is_bounded() {
        let (mut state, mut wake) = (state(2, 1), Vec::new());
        for n in 0..5 {
            let read = state.put_message(Message::Answer(true), &mut wake);
            assert_eq!(read, n < 2);
        }
        let data = || Message::Data(Kind::Stdout, Arc::from(*b"abc"));
        assert!(state.put_message(data(), &mut wake));
        assert!(state.put_message(Message::Closed, &mut wake));
        state.closed = true;
        for _ in 0..2 {
            assert!(matches!(
                take(&mut state),
                Poll::Ready(Some(Message::Answer(_)))
            ));
        }
        assert!(matches!(
            take(&mut state),
            Poll::Ready(Some(Message::Data(..)))
        ));
        assert!(matches!(
            take(&mut state),
            Poll::Ready(Some(Message::Closed))
        ));
        assert!(matches!(take(&mut state), Poll::Ready(None)));
        assert!(state.put_message(data(), &mut wake));
        assert_eq!(state.deafen_messages(), 3);
        assert!(!state.put_message(data(), &mut wake));
    }

    #[test]
    fn what_is_sent_keeps_its_order_and_its_bounds() {
        let (mut state, spares) = (state(1, 2), Spares::default());
        let cx = Context::from_waker(Waker::noop());
        state.say(Say::Data(Kind::Stdout, b"one"), &spares).unwrap();
        assert!(matches!(state.poll_room(&cx), Poll::Ready(Ok(_))));
        state.say(Say::Data(Kind::Stderr, b"two"), &spares).unwrap();
        assert!(state.poll_room(&cx).is_pending());
        state
            .say(Say::Behind(Request::ExitStatus(0)), &spares)
            .unwrap();
        let signal = Request::Signal("INT".to_owned());
        state
            .say(Say::Ahead(signal, WantReply::No), &spares)
            .unwrap();
        state.say(Say::Eof, &spares).unwrap();
        let late = state.say(Say::Data(Kind::Stdout, b"late"), &spares);
        assert!(matches!(late, Err(RequestError::Closed)));
        state.say(Say::Close, &spares).unwrap();
        assert!(state.say(Say::Eof, &spares).is_err());

        assert!(matches!(state.next(), Next::Tell(Request::Signal(_), _)));
        for kind in [Kind::Stdout, Kind::Stderr] {
            assert!(matches!(state.next(), Next::Write));
            assert_eq!(state.next_bytes(), (kind, 3));
            assert_eq!(state.sent(3), kind == Kind::Stderr);
        }
        assert!(matches!(
            state.next(),
            Next::Tell(Request::ExitStatus(0), _)
        ));
        assert!(matches!(state.next(), Next::End));
        assert!(matches!(state.next(), Next::Abort));
        assert!(matches!(state.next(), Next::Nothing));
    }

    #[test]
    fn small_pieces_without_end_join() {
        let (mut state, spares) = (state(1, 1), Spares::default());
        for _ in 0..3 * MAX_PIECES {
            state.say(Say::Data(Kind::Stdout, b"x"), &spares).unwrap();
        }
        let ordered = state.ordered.as_ref().unwrap();
        assert_eq!(ordered.sends.len(), MAX_PIECES);
        let other = state.say(Say::Data(Kind::Stderr, b"x"), &spares);
        assert!(matches!(other, Err(RequestError::Call(CallError::Full))));
        state.say(Say::Close, &spares).unwrap();
    }
}
