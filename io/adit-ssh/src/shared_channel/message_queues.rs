//! Channels in message mode: received and sent messages, each in order.

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

use adit_ssh_proto::connection::{ChannelCallError, DataKind, SshChannelRequest, WantReply};

use super::output_limit::{MAX_OUTPUT, store_waker};
use super::state::{ChannelState, NextAction, ReadFailure};
use crate::error::RequestError;
use crate::messages::{Message, OutgoingMessage, QueueLimits};
use crate::spare_buffers::SpareBuffers;

/// Maximum size of data that waits to be sent in one channel, in bytes, for callers that cannot wait.
const MAX_PENDING: usize = 16 << 20;
/// Maximum number of data chunks in the send queue; further data joins the last chunk. Requests, EOF
/// and close may double it.
const MAX_CHUNKS: usize = 1024;

/// The queues of a channel in message mode, besides its bytes.
#[derive(Debug)]
pub(crate) struct MessageQueues {
    bounds: QueueLimits,
    received: VecDeque<Message>,
    /// Number of received messages that count towards the limit: neither data nor an end.
    counted: usize,
    /// True if the messages are not read any more.
    closed: bool,
    reader: Option<Waker>,
    /// True once the channel is open at both ends.
    open: bool,
    /// True if a message handle exists: then the channel closes only on request.
    held_open: bool,
    queue: VecDeque<QueuedSend>,
    /// True if an EOF or a close is at the end of the queue.
    has_eof: bool,
    has_close: bool,
    writers: Vec<Waker>,
}

/// An entry of the send queue. The bytes of data are in their stream's output queue.
#[derive(Debug)]
enum QueuedSend {
    Data(DataKind, usize),
    Request(SshChannelRequest, WantReply),
    Eof,
    Close,
}

impl MessageQueues {
    pub(super) const fn new(bounds: QueueLimits) -> Self {
        Self {
            bounds,
            received: VecDeque::new(),
            counted: 0,
            closed: false,
            reader: None,
            open: false,
            held_open: false,
            queue: VecDeque::new(),
            has_eof: false,
            has_close: false,
            writers: Vec::new(),
        }
    }

    /// Returns the next action for this end of the channel.
    pub(super) fn next_action(&mut self) -> NextAction {
        match self.queue.front() {
            Some(QueuedSend::Data(..)) if self.open => return NextAction::Write,
            Some(_) if self.open => {}
            _ => return NextAction::Nothing,
        }
        match self.queue.pop_front() {
            Some(QueuedSend::Request(request, want)) => NextAction::Tell(request, want),
            Some(QueuedSend::Eof) => NextAction::End,
            _ => NextAction::Abort,
        }
    }

    pub(super) fn put_back(&mut self, request: SshChannelRequest, want: WantReply) {
        self.queue.push_front(QueuedSend::Request(request, want));
    }

    /// Returns the stream and the number of the bytes at the front.
    pub(super) fn next_bytes(&self) -> (DataKind, usize) {
        match self.queue.front() {
            Some(QueuedSend::Data(kind, n)) => (*kind, *n),
            _ => (DataKind::Stdout, 0),
        }
    }

    /// Records that `n` bytes were sent; returns true if the next entry is not data.
    pub(super) fn mark_sent(&mut self, n: usize) -> bool {
        if let Some(QueuedSend::Data(_, left)) = self.queue.front_mut() {
            *left = left.saturating_sub(n);
            if *left == 0 {
                self.queue.pop_front();
            }
        }
        !matches!(self.queue.front(), Some(QueuedSend::Data(..)))
    }

    /// Records that the handle for the channel was dropped.
    pub(super) fn release_handle(&mut self) {
        if !self.held_open {
            self.queue.push_back(QueuedSend::Close);
        }
    }

    /// Takes the wakers of writers if there are few enough chunks.
    pub(super) fn take_writers(&mut self) -> Vec<Waker> {
        if self.queue.len() < self.bounds.chunks.max(1) {
            core::mem::take(&mut self.writers)
        } else {
            Vec::new()
        }
    }

    pub(super) fn wake_all(&mut self, wake: &mut Vec<Waker>) {
        wake.append(&mut self.writers);
        wake.extend(self.reader.take());
    }

    fn push_message(&mut self, message: Message, wake: &mut Vec<Waker>) -> bool {
        let plain = is_counted(&message);
        if self.closed || plain && self.counted >= self.bounds.messages.max(1) {
            return false;
        }
        self.counted += usize::from(plain);
        self.received.push_back(message);
        wake.extend(self.reader.take());
        true
    }
}

const fn is_counted(message: &Message) -> bool {
    !matches!(message, Message::Data(..) | Message::Eof | Message::Closed)
}

impl ChannelState {
    /// For the task: stores a received message; returns false if it will not be read.
    pub(crate) fn push_message(&mut self, message: Message, wake: &mut Vec<Waker>) -> bool {
        let ordered = self.messages.as_mut();
        ordered.is_some_and(|ordered| ordered.push_message(message, wake))
    }

    /// For the task: records that the channel is open at both ends.
    pub(crate) fn mark_open(&mut self) {
        if let Some(ordered) = &mut self.messages {
            ordered.open = true;
        }
    }

    /// For the handle: the channel closes only on request.
    pub(crate) fn hold_open(&mut self) {
        if let Some(ordered) = &mut self.messages {
            ordered.held_open = true;
        }
    }

    /// For the handle: returns the next message; `None` if nothing follows.
    pub(crate) fn poll_message(&mut self, cx: &Context<'_>) -> Poll<Option<Message>> {
        let Some(ordered) = &mut self.messages else {
            return Poll::Ready(None);
        };
        match ordered.received.pop_front() {
            Some(message) => {
                ordered.counted -= usize::from(is_counted(&message));
                Poll::Ready(Some(message))
            }
            None if self.closed => Poll::Ready(None),
            None => {
                store_waker(&mut ordered.reader, cx);
                Poll::Pending
            }
        }
    }

    /// For the handle: stops reading messages and returns the number of unread data bytes.
    pub(crate) fn stop_reading_messages(&mut self) -> usize {
        let Some(ordered) = &mut self.messages else {
            return 0;
        };
        (ordered.closed, ordered.counted) = (true, 0);
        let left = ordered.received.drain(..).map(|message| match message {
            Message::Data(_, bytes) => bytes.len(),
            _ => 0,
        });
        left.sum()
    }

    fn sendable_queues(&mut self) -> Result<&mut MessageQueues, RequestError> {
        if let Some(ReadFailure::Session(end)) = &self.cut {
            return Err(end.clone().into());
        }
        let ordered = self.messages.as_deref_mut().filter(|_| !self.closed);
        let ordered = ordered.filter(|ordered| !ordered.has_close);
        ordered.ok_or(RequestError::Closed)
    }

    /// For the handle: waits for space for data and returns its size, in bytes.
    pub(crate) fn poll_capacity(&mut self, cx: &Context<'_>) -> Poll<Result<usize, RequestError>> {
        let unsent = self.unsent_bytes();
        let ordered = self.sendable_queues()?;
        if unsent < MAX_OUTPUT && ordered.queue.len() < ordered.bounds.chunks.max(1) {
            return Poll::Ready(Ok(MAX_OUTPUT - unsent));
        }
        if !ordered.writers.iter().any(|old| old.will_wake(cx.waker())) {
            ordered.writers.push(cx.waker().clone());
        }
        Poll::Pending
    }

    /// For the handle: queues a message to be sent.
    pub(crate) fn queue_message(
        &mut self,
        say: OutgoingMessage<'_>,
        spares: &SpareBuffers,
    ) -> Result<(), RequestError> {
        let unsent = self.unsent_bytes();
        let ordered = self.sendable_queues()?;
        let sends = &mut ordered.queue;
        let full = || Err(ChannelCallError::Full.into());
        match say {
            OutgoingMessage::Data(_, []) => return Ok(()),
            OutgoingMessage::Data(..) if ordered.has_eof => return Err(RequestError::Closed),
            OutgoingMessage::Data(_, bytes) if unsent + bytes.len() > MAX_PENDING => return full(),
            OutgoingMessage::Data(kind, bytes) => {
                let many = sends.len() >= MAX_CHUNKS;
                match sends.back_mut() {
                    Some(QueuedSend::Data(last, n)) if many && *last == kind => *n += bytes.len(),
                    _ if many => return full(),
                    _ => sends.push_back(QueuedSend::Data(kind, bytes.len())),
                }
                self.output_queue(kind).push(bytes, spares);
            }
            _ if sends.len() >= 2 * MAX_CHUNKS => return full(),
            OutgoingMessage::QueuedRequest(request) => {
                sends.push_back(QueuedSend::Request(request, WantReply::No));
            }
            OutgoingMessage::UrgentRequest(request, want) => {
                let mut all = sends.iter();
                let first = all.position(|sends| !matches!(sends, QueuedSend::Request(..)));
                let place = first.unwrap_or(sends.len());
                sends.insert(place, QueuedSend::Request(request, want));
            }
            OutgoingMessage::Eof => {
                ordered.has_eof = true;
                sends.push_back(QueuedSend::Eof);
            }
            OutgoingMessage::Close => {
                ordered.has_close = true;
                sends.push_back(QueuedSend::Close);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn state(messages: usize, pieces: usize) -> ChannelState {
        let mut state = ChannelState {
            messages: Some(Box::new(MessageQueues::new(QueueLimits {
                messages,
                chunks: pieces,
            }))),
            ..ChannelState::default()
        };
        state.mark_open();
        state
    }

    fn take(state: &mut ChannelState) -> Poll<Option<Message>> {
        state.poll_message(&Context::from_waker(Waker::noop()))
    }

    #[test]
    fn what_has_no_bytes_is_bounded() {
        let (mut state, mut wake) = (state(2, 1), Vec::new());
        for n in 0..5 {
            let read = state.push_message(Message::Answer(true), &mut wake);
            assert_eq!(read, n < 2);
        }
        let data = || Message::Data(DataKind::Stdout, Arc::from(*b"abc"));
        assert!(state.push_message(data(), &mut wake));
        assert!(state.push_message(Message::Closed, &mut wake));
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
        assert!(state.push_message(data(), &mut wake));
        assert_eq!(state.stop_reading_messages(), 3);
        assert!(!state.push_message(data(), &mut wake));
    }

    #[test]
    fn what_is_sent_keeps_its_order_and_its_bounds() {
        let (mut state, spares) = (state(1, 2), SpareBuffers::default());
        let cx = Context::from_waker(Waker::noop());
        state
            .queue_message(OutgoingMessage::Data(DataKind::Stdout, b"one"), &spares)
            .unwrap();
        assert!(matches!(state.poll_capacity(&cx), Poll::Ready(Ok(_))));
        state
            .queue_message(OutgoingMessage::Data(DataKind::Stderr, b"two"), &spares)
            .unwrap();
        assert!(state.poll_capacity(&cx).is_pending());
        state
            .queue_message(
                OutgoingMessage::QueuedRequest(SshChannelRequest::ExitStatus(0)),
                &spares,
            )
            .unwrap();
        let signal = SshChannelRequest::Signal("INT".to_owned());
        state
            .queue_message(
                OutgoingMessage::UrgentRequest(signal, WantReply::No),
                &spares,
            )
            .unwrap();
        state.queue_message(OutgoingMessage::Eof, &spares).unwrap();
        let late = state.queue_message(OutgoingMessage::Data(DataKind::Stdout, b"late"), &spares);
        assert!(matches!(late, Err(RequestError::Closed)));
        state
            .queue_message(OutgoingMessage::Close, &spares)
            .unwrap();
        assert!(state.queue_message(OutgoingMessage::Eof, &spares).is_err());

        assert!(matches!(
            state.next_action(),
            NextAction::Tell(SshChannelRequest::Signal(_), _)
        ));
        for kind in [DataKind::Stdout, DataKind::Stderr] {
            assert!(matches!(state.next_action(), NextAction::Write));
            assert_eq!(state.next_bytes(), (kind, 3));
            assert_eq!(state.mark_sent(3), kind == DataKind::Stderr);
        }
        assert!(matches!(
            state.next_action(),
            NextAction::Tell(SshChannelRequest::ExitStatus(0), _)
        ));
        assert!(matches!(state.next_action(), NextAction::End));
        assert!(matches!(state.next_action(), NextAction::Abort));
        assert!(matches!(state.next_action(), NextAction::Nothing));
    }

    #[test]
    fn small_pieces_without_end_join() {
        let (mut state, spares) = (state(1, 1), SpareBuffers::default());
        for _ in 0..3 * MAX_CHUNKS {
            state
                .queue_message(OutgoingMessage::Data(DataKind::Stdout, b"x"), &spares)
                .unwrap();
        }
        let ordered = state.messages.as_ref().unwrap();
        assert_eq!(ordered.queue.len(), MAX_CHUNKS);
        let other = state.queue_message(OutgoingMessage::Data(DataKind::Stderr, b"x"), &spares);
        assert!(matches!(
            other,
            Err(RequestError::Call(ChannelCallError::Full))
        ));
        state
            .queue_message(OutgoingMessage::Close, &spares)
            .unwrap();
    }
}
