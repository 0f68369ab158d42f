//! The state that a channel's handle and the session's task share: bytes in both directions, and how
//! they end.

mod message_queues;
mod output_limit;
mod state;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use adit_ssh_proto::connection::{ChannelId, DataKind, PendingReply, SshChannelRequest, WantReply};
use adit_wire::{subslice, usize_from};
use tokio::sync::Notify;

use super::byte_queue::ByteQueue;
use super::error::{RequestError, SessionEnd};
use super::messages::QueueLimits;
use super::shared_session::{Command, DirtyFlag, SharedSession};
use adit_stream::PooledBuffer;
use message_queues::MessageQueues;
use output_limit::{MAX_OUTPUT, store_waker};
pub(super) use state::{ChannelState, NextAction};
use state::{ReadFailure, request_size, stream_index};

/// Maximum number of the peer's requests that wait in one channel.
const MAX_REQUESTS: usize = 128;
/// Maximum size of the names and values in them, in bytes: the maximum length of one message.
const MAX_REQUEST_BYTES: usize = 256 << 10;
/// Number of consumed bytes reported to a task that has not set a threshold yet: a quarter of the
/// smallest possible window, and at most this.
const DEFAULT_REPORT_THRESHOLD: usize = 128 << 10;

/// A channel, as shared by its handle and the session's task.
#[derive(Debug)]
pub(super) struct SharedChannel {
    pub(super) id: ChannelId,
    pub(super) mail: Arc<SharedSession>,
    pub(super) dirty: DirtyFlag,
    state: Mutex<ChannelState>,
    /// Notified when a request arrives, the program exits, or the channel closes.
    pub(super) changed: Notify,
}

impl SharedChannel {
    /// Creates the shared state. `window` is the smallest window that the peer may have been granted,
    /// in bytes. With `messages` the channel is in message mode.
    pub(super) fn new(
        id: ChannelId,
        mail: Arc<SharedSession>,
        window: u32,
        messages: Option<QueueLimits>,
    ) -> Self {
        let window = usize_from(window);
        let state = ChannelState {
            writing: [true, false],
            report_threshold: (window / 4).clamp(1, DEFAULT_REPORT_THRESHOLD),
            messages: messages.map(|bounds| Box::new(MessageQueues::new(bounds))),
            ..ChannelState::default()
        };
        Self {
            id,
            mail,
            dirty: DirtyFlag::default(),
            state: Mutex::new(state),
            changed: Notify::new(),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, ChannelState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For the handle: takes all received bytes; 0 means the end.
    pub(super) fn poll_receive(
        self: &Arc<Self>,
        cx: &Context<'_>,
        kind: DataKind,
        into: &mut ByteQueue,
    ) -> Poll<io::Result<usize>> {
        let mut state = self.lock();
        let (ended, cut) = (state.ended, state.cut.clone());
        let inlet = state.input_stream(kind);
        let n = inlet.bytes.len();
        if n > 0 {
            into.append_queue(&mut inlet.bytes);
            return Poll::Ready(Ok(n));
        }
        match cut {
            _ if ended => Poll::Ready(Ok(0)),
            Some(cut) => Poll::Ready(Err(cut.to_io_error())),
            None => {
                store_waker(&mut inlet.reader, cx);
                Poll::Pending
            }
        }
    }

    /// For the handle: reports that `n` bytes were read.
    pub(super) fn report_consumed(self: &Arc<Self>, n: usize) {
        let mut state = self.lock();
        state.consumed += n;
        let tell = state.consumed >= state.report_threshold;
        drop(state);
        if tell {
            self.mail.mark_dirty(self);
        }
    }

    /// For the handle: stops reading this stream and discards what waits in it.
    pub(super) fn stop_reading(self: &Arc<Self>, kind: DataKind) {
        let mut state = self.lock();
        let inlet = state.input_stream(kind);
        inlet.closed = true;
        let n = inlet.bytes.len();
        inlet.bytes.clear();
        state.consumed += n;
        drop(state);
        self.mail.mark_dirty(self);
    }

    /// For the handle: queues bytes to be sent. They are moved out of `buffer` once there is space.
    pub(super) fn poll_send_buffer(
        self: &Arc<Self>,
        cx: &Context<'_>,
        kind: DataKind,
        buffer: &mut PooledBuffer,
    ) -> Poll<io::Result<()>> {
        let mut state = self.lock();
        match Self::poll_writable(&mut state, kind, cx) {
            Poll::Ready(Ok(())) => {}
            other => return other,
        }
        state
            .output_queue(kind)
            .append_buffer(core::mem::take(buffer), &self.mail.spares);
        drop(state);
        self.mail.mark_dirty(self);
        Poll::Ready(Ok(()))
    }

    /// For the handle: copies bytes to be sent and returns their number.
    pub(super) fn poll_send_copy(
        self: &Arc<Self>,
        cx: &Context<'_>,
        kind: DataKind,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut state = self.lock();
        match Self::poll_writable(&mut state, kind, cx) {
            Poll::Ready(Ok(())) => {}
            other => return other.map_ok(|()| 0),
        }
        let n = bytes.len().min(MAX_OUTPUT - state.unsent_bytes());
        state
            .output_queue(kind)
            .push(subslice(bytes, ..n), &self.mail.spares);
        drop(state);
        self.mail.mark_dirty(self);
        Poll::Ready(Ok(n))
    }

    fn poll_writable(
        state: &mut ChannelState,
        kind: DataKind,
        cx: &Context<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(ReadFailure::Session(end)) = &state.cut {
            return Poll::Ready(Err(end.to_io_error()));
        }
        let writing = state.writing.get(stream_index(kind)) == Some(&true);
        if state.closed || !writing || state.aborted {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if state.unsent_bytes() >= MAX_OUTPUT {
            if let Some(writer) = state.writers.get_mut(stream_index(kind)) {
                store_waker(writer, cx);
            }
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }

    /// For the handle: sends a request, and waits for the reply if it wants one.
    pub(super) async fn send_request(
        self: &Arc<Self>,
        request: SshChannelRequest,
        want: WantReply,
    ) -> Result<(), RequestError> {
        let pipe = Arc::clone(self);
        let asked = self.mail.call_driver(|reply| Command::Request {
            pipe,
            request,
            want,
            reply,
        });
        asked.await
    }

    /// For the handle: changes the state and wakes the task to look at it.
    pub(super) fn update_state(self: &Arc<Self>, change: impl FnOnce(&mut ChannelState)) {
        change(&mut self.lock());
        self.mail.mark_dirty(self);
    }

    /// For the handle: discards unsent bytes.
    pub(super) fn abort(self: &Arc<Self>) {
        self.update_state(|state| {
            state.aborted = true;
            for output in &mut state.output {
                output.clear();
            }
        });
    }

    /// For the task: sets the number of consumed bytes that it next wants to be notified of. If they
    /// were read already, returns them.
    pub(super) fn set_report_threshold(&self, octets: usize) -> usize {
        let mut state = self.lock();
        state.report_threshold = octets;
        match state.consumed >= octets {
            true => state.take_consumed(),
            false => 0,
        }
    }

    /// For the task: stores received bytes and collects the reader to wake; returns false if the stream
    /// is not read.
    pub(super) fn push_received(
        &self,
        kind: DataKind,
        bytes: &[u8],
        wake: &mut Vec<Waker>,
    ) -> bool {
        let mut state = self.lock();
        let inlet = state.input_stream(kind);
        if inlet.closed {
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
    pub(super) fn set_closed(&self, reset: bool, wake: &mut Vec<Waker>) {
        let mut state = self.lock();
        state.closed = true;
        if !state.ended {
            match reset {
                true => state.cut = Some(ReadFailure::Reset),
                false => state.ended = true,
            }
        }
        for output in &mut state.output {
            output.clear();
        }
        state.wake_all(wake);
        drop(state);
        self.changed.notify_waiters();
    }

    /// For the task: records that the session is over.
    pub(super) fn end_with_session(&self, end: &SessionEnd, wake: &mut Vec<Waker>) {
        let mut state = self.lock();
        state.closed = true;
        state
            .cut
            .get_or_insert_with(|| ReadFailure::Session(end.clone()));
        for output in &mut state.output {
            output.clear();
        }
        state.wake_all(wake);
        drop(state);
        self.changed.notify_waiters();
    }

    /// For the task: stores a request of the peer; returns its reply as an error if it cannot.
    pub(super) fn push_request(
        &self,
        request: SshChannelRequest,
        reply: Option<PendingReply>,
        wake: &mut Vec<Waker>,
    ) -> Result<(), Option<PendingReply>> {
        let mut state = self.lock();
        match request {
            SshChannelRequest::ExitStatus(_) | SshChannelRequest::ExitSignal { .. }
                if reply.is_none() =>
            {
                state.exit.get_or_insert(request);
            }
            SshChannelRequest::EndOfWriting if !state.accepts_requests => {
                for output in &mut state.output {
                    output.clear();
                }
                state.writing = [false; 2];
                wake.extend(state.writers.iter_mut().filter_map(Option::take));
            }
            _ if !state.accepts_requests || state.dropped => return Err(reply),
            _ if state.requests.len() >= MAX_REQUESTS => return Err(reply),
            _ if state.waiting_request_bytes() + request_size(&request) > MAX_REQUEST_BYTES => {
                return Err(reply);
            }
            _ => state.requests.push_back((request, reply)),
        }
        drop(state);
        self.changed.notify_waiters();
        Ok(())
    }

    /// For the handle: waits until `look` returns a value, or the channel has closed.
    pub(super) async fn wait_until<T>(
        &self,
        mut look: impl FnMut(&mut ChannelState) -> Option<T>,
    ) -> Option<T> {
        loop {
            let news = self.changed.notified();
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
