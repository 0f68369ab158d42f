//! The part of a channel's shared state that is behind the lock.

use std::collections::VecDeque;
use std::io;
use std::task::Waker;

use adit_ssh_proto::connection::{DataKind, PendingReply, SshChannelRequest, WantReply};

use super::message_queues::MessageQueues;
use super::output_limit::MAX_OUTPUT;
use crate::byte_queue::ByteQueue;
use crate::error::SessionEnd;

/// The state behind the lock.
#[derive(Debug, Default)]
pub(crate) struct ChannelState {
    pub(super) input: [InputStream; 2],
    /// True if the peer sends no more bytes.
    pub(super) ended: bool,
    /// True if the channel has closed.
    pub(crate) closed: bool,
    /// The reason if the channel was cut off.
    pub(super) cut: Option<ReadFailure>,
    /// Number of bytes that were read and not reported to the task.
    pub(super) consumed: usize,
    /// Number of read bytes that is worth a report to the task.
    pub(super) report_threshold: usize,

    pub(super) output: [ByteQueue; 2],
    /// Tasks that wait for space, by stream: two tasks may write a program's two streams.
    pub(super) writers: [Option<Waker>; 2],
    /// True for streams that may still be written to.
    pub(super) writing: [bool; 2],
    /// True if no handle of the channel is left, or the program has exited.
    pub(super) dropped: bool,
    /// True if unsent bytes were discarded.
    pub(super) aborted: bool,
    /// The exit status, to be sent after the last byte.
    pub(super) exit_to_send: Option<SshChannelRequest>,
    /// True if this end answers the peer's requests.
    pub(super) accepts_requests: bool,

    /// Requests of the peer that wait.
    pub(crate) requests: VecDeque<(SshChannelRequest, Option<PendingReply>)>,
    /// The program's exit status or signal.
    pub(crate) exit: Option<SshChannelRequest>,

    /// The queues of a channel in message mode.
    pub(super) messages: Option<Box<MessageQueues>>,
    /// In message mode: requests of the peer that wait for a reply.
    pub(crate) owed_replies: VecDeque<PendingReply>,
}

/// The next action for this end of a channel.
#[derive(Debug)]
pub(crate) enum NextAction {
    /// Nothing to do.
    Nothing,
    /// Bytes are ready to be sent.
    Write,
    /// Send this request before what follows.
    Tell(SshChannelRequest, WantReply),
    /// Send EOF before what follows.
    End,
    /// All bytes are sent: send EOF.
    Finish {
        /// True if the channel is to be closed too.
        close: bool,
    },
    /// Close the channel immediately.
    Abort,
}

/// A stream of bytes from the peer.
#[derive(Debug, Default)]
pub(super) struct InputStream {
    pub(super) bytes: ByteQueue,
    pub(super) reader: Option<Waker>,
    /// True if the stream is not read any more.
    pub(super) closed: bool,
}

/// The reason why reading fails.
#[derive(Debug, Clone)]
pub(super) enum ReadFailure {
    Session(SessionEnd),
    Reset,
}

impl ReadFailure {
    pub(super) fn to_io_error(&self) -> io::Error {
        match self {
            Self::Session(end) => end.to_io_error(),
            Self::Reset => io::Error::new(
                io::ErrorKind::ConnectionReset,
                "the peer closed the channel before the end of the data",
            ),
        }
    }
}

pub(super) const fn stream_index(kind: DataKind) -> usize {
    match kind {
        DataKind::Stdout => 0,
        DataKind::Stderr => 1,
    }
}

impl ChannelState {
    pub(super) fn input_stream(&mut self, kind: DataKind) -> &mut InputStream {
        let [out, err] = &mut self.input;
        if stream_index(kind) == 0 { out } else { err }
    }

    pub(crate) fn output_queue(&mut self, kind: DataKind) -> &mut ByteQueue {
        let [out, err] = &mut self.output;
        if stream_index(kind) == 0 { out } else { err }
    }

    pub(super) fn unsent_bytes(&self) -> usize {
        self.output.iter().map(ByteQueue::len).sum()
    }

    /// Returns true if the peer has reported an exit status, or if there are bytes to read.
    pub(crate) fn has_responded(&self) -> bool {
        self.exit.is_some() || self.input.iter().any(|from| !from.bytes.is_empty())
    }

    /// Returns the stream to send from and the number of bytes: standard error first, which is usually
    /// short.
    pub(crate) fn next_bytes(&self) -> (DataKind, usize) {
        match (&self.messages, &self.output) {
            (Some(ordered), _) => ordered.next_bytes(),
            (None, [_, err]) if !err.is_empty() => (DataKind::Stderr, err.len()),
            (None, [out, _]) => (DataKind::Stdout, out.len()),
        }
    }

    /// Records that `n` bytes were sent; returns true if something else is to be done next.
    pub(crate) fn mark_sent(&mut self, n: usize) -> bool {
        match &mut self.messages {
            Some(ordered) => ordered.mark_sent(n),
            None => self.unsent_bytes() == 0,
        }
    }

    /// Returns the next action for this end of the channel.
    pub(crate) fn next_action(&mut self) -> NextAction {
        if let Some(ordered) = &mut self.messages {
            return ordered.next_action();
        }
        if self.aborted {
            NextAction::Abort
        } else if self.unsent_bytes() > 0 {
            NextAction::Write
        } else if self.writing != [false; 2] {
            NextAction::Nothing
        } else if let Some(last) = self.exit_to_send.take() {
            // The exit status is the last message.
            self.dropped = true;
            NextAction::Tell(last, WantReply::No)
        } else {
            NextAction::Finish {
                close: self.dropped,
            }
        }
    }

    /// Puts back a request that could not be sent yet.
    pub(crate) fn put_back(&mut self, request: SshChannelRequest, want: WantReply) {
        match &mut self.messages {
            Some(ordered) => ordered.put_back(request, want),
            None => self.exit_to_send = Some(request),
        }
    }

    /// For the handle: ends writing to this stream.
    pub(crate) fn finish_writing(&mut self, kind: DataKind) {
        if let Some(writing) = self.writing.get_mut(stream_index(kind)) {
            *writing = false;
        }
    }

    /// For the handle: records that no handle of the channel is left.
    pub(crate) fn release_handle(&mut self) {
        (self.writing, self.dropped) = ([false; 2], true);
        if let Some(ordered) = &mut self.messages {
            ordered.release_handle();
        }
    }

    /// For the handle: sets the exit status to be sent after the last byte.
    pub(crate) fn set_exit(&mut self, how: SshChannelRequest) {
        self.exit_to_send.get_or_insert(how);
    }

    /// For the handle: this end answers the peer's requests and may write standard error.
    pub(crate) fn accept_requests(&mut self) {
        (self.accepts_requests, self.writing) = (true, [true; 2]);
    }

    /// Sets up a channel of an application-defined type: requests wait for an answer, and standard
    /// error is discarded.
    pub(crate) fn accept_custom_requests(&mut self) {
        self.accepts_requests = true;
        self.input_stream(DataKind::Stderr).closed = true;
    }

    /// For the handle: refuses requests of the peer from now on. Returns those that wait.
    pub(crate) fn refuse_requests(
        &mut self,
    ) -> VecDeque<(SshChannelRequest, Option<PendingReply>)> {
        self.accepts_requests = false;
        core::mem::take(&mut self.requests)
    }

    /// Takes the wakers of writers if there is space.
    pub(crate) fn take_writers(&mut self) -> impl Iterator<Item = Waker> {
        let room = self.unsent_bytes() < MAX_OUTPUT;
        let ordered = self.messages.as_mut().filter(|_| room);
        let ordered = ordered.map(|ordered| ordered.take_writers());
        let writers = self.writers.iter_mut().filter(move |_| room);
        let writers = writers.filter_map(Option::take);
        writers.chain(ordered.into_iter().flatten())
    }

    /// Returns the size of the waiting requests, in bytes.
    pub(super) fn waiting_request_bytes(&self) -> usize {
        let requests = self.requests.iter();
        requests.map(|(request, _)| request_size(request)).sum()
    }

    /// Returns the number of bytes read since the last call.
    pub(crate) fn take_consumed(&mut self) -> usize {
        core::mem::take(&mut self.consumed)
    }

    pub(super) fn wake_all(&mut self, wake: &mut Vec<Waker>) {
        wake.extend(self.writers.iter_mut().filter_map(Option::take));
        if let Some(ordered) = &mut self.messages {
            ordered.wake_all(wake);
        }
        for inlet in &mut self.input {
            wake.extend(inlet.reader.take());
        }
    }
}

/// Returns the size of a request's names and values, which the peer chooses, in bytes.
pub(super) fn request_size(request: &SshChannelRequest) -> usize {
    match request {
        SshChannelRequest::Env { name, value } => name.len() + value.len(),
        SshChannelRequest::Exec(command) => command.len(),
        SshChannelRequest::Subsystem(name) | SshChannelRequest::Signal(name) => name.len(),
        SshChannelRequest::Pty(pty) => pty.term.len(),
        SshChannelRequest::X11 {
            protocol, cookie, ..
        } => protocol.len() + cookie.expose().len(),
        SshChannelRequest::ExitSignal { name, message, .. } => name.len() + message.len(),
        SshChannelRequest::Custom(own) => own.byte_len(),
        _ => 0,
    }
}
