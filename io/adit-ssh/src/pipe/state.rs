//! The part of a channel's shared state that is behind the lock.

use std::collections::VecDeque;
use std::io;
use std::task::Waker;

use adit_ssh_proto::connection::{Kind, ReplyTo, Request, WantReply};

use super::ordered::Ordered;
use super::room::MAX_OUTPUT;
use crate::chunks::Chunks;
use crate::error::End;

/// The state behind the lock.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(super) input: [Inlet; 2],
    /// True if the peer sends no more bytes.
    pub(super) ended: bool,
    /// True if the channel has closed.
    pub(crate) closed: bool,
    /// The reason if the channel was cut off.
    pub(super) cut: Option<Cut>,
    /// Number of bytes that were read and not reported to the task.
    pub(super) consumed: usize,
    /// Number of read bytes that is worth a report to the task.
    pub(super) worth: usize,

    pub(super) output: [Chunks; 2],
    /// Tasks that wait for space, by stream: two tasks may write a program's two streams.
    pub(super) writers: [Option<Waker>; 2],
    /// True for streams that may still be written to.
    pub(super) writing: [bool; 2],
    /// True if no handle of the channel is left, or the program has exited.
    pub(super) dropped: bool,
    /// True if unsent bytes were discarded.
    pub(super) aborted: bool,
    /// The exit status, to be sent after the last byte.
    pub(super) last: Option<Request>,
    /// True if this end answers the peer's requests.
    pub(super) serves: bool,

    /// Requests of the peer that wait.
    pub(crate) requests: VecDeque<(Request, Option<ReplyTo>)>,
    /// The program's exit status or signal.
    pub(crate) exit: Option<Request>,

    /// The queues of a channel in message mode.
    pub(super) ordered: Option<Box<Ordered>>,
    /// In message mode: requests of the peer that wait for a reply.
    pub(crate) owed: VecDeque<ReplyTo>,
}

/// The next action for this end of a channel.
#[derive(Debug)]
pub(crate) enum Next {
    /// Nothing to do.
    Nothing,
    /// Bytes are ready to be sent.
    Write,
    /// Send this request before what follows.
    Tell(Request, WantReply),
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
pub(super) struct Inlet {
    pub(super) bytes: Chunks,
    pub(super) reader: Option<Waker>,
    /// True if the stream is not read any more.
    pub(super) deaf: bool,
}

/// The reason why reading fails.
#[derive(Debug, Clone)]
pub(super) enum Cut {
    Session(End),
    Reset,
}

impl Cut {
    pub(super) fn error(&self) -> io::Error {
        match self {
            Self::Session(end) => end.error(),
            Self::Reset => io::Error::new(
                io::ErrorKind::ConnectionReset,
                "the peer closed the channel before the end of the data",
            ),
        }
    }
}

pub(super) const fn index(kind: Kind) -> usize {
    match kind {
        Kind::Stdout => 0,
        Kind::Stderr => 1,
    }
}

impl State {
    pub(super) fn inlet(&mut self, kind: Kind) -> &mut Inlet {
        let [out, err] = &mut self.input;
        if index(kind) == 0 { out } else { err }
    }

    pub(crate) fn outlet(&mut self, kind: Kind) -> &mut Chunks {
        let [out, err] = &mut self.output;
        if index(kind) == 0 { out } else { err }
    }

    pub(super) fn unsent(&self) -> usize {
        self.output.iter().map(Chunks::len).sum()
    }

    /// Returns true if the peer has reported an exit status, or if there are bytes to read.
    pub(crate) fn has_spoken(&self) -> bool {
        self.exit.is_some() || self.input.iter().any(|from| !from.bytes.is_empty())
    }

    /// Returns the stream to send from and the number of bytes: standard error first, which is usually
    /// short.
    pub(crate) fn next_bytes(&self) -> (Kind, usize) {
        match (&self.ordered, &self.output) {
            (Some(ordered), _) => ordered.next_bytes(),
            (None, [_, err]) if !err.is_empty() => (Kind::Stderr, err.len()),
            (None, [out, _]) => (Kind::Stdout, out.len()),
        }
    }

    /// Records that `n` bytes were sent; returns true if something else is to be done next.
    pub(crate) fn sent(&mut self, n: usize) -> bool {
        match &mut self.ordered {
            Some(ordered) => ordered.sent(n),
            None => self.unsent() == 0,
        }
    }

    /// Returns the next action for this end of the channel.
    pub(crate) fn next(&mut self) -> Next {
        if let Some(ordered) = &mut self.ordered {
            return ordered.next();
        }
        if self.aborted {
            Next::Abort
        } else if self.unsent() > 0 {
            Next::Write
        } else if self.writing != [false; 2] {
            Next::Nothing
        } else if let Some(last) = self.last.take() {
            // The exit status is the last message.
            self.dropped = true;
            Next::Tell(last, WantReply::No)
        } else {
            Next::Finish {
                close: self.dropped,
            }
        }
    }

    /// Puts back a request that could not be sent yet.
    pub(crate) fn put_back(&mut self, request: Request, want: WantReply) {
        match &mut self.ordered {
            Some(ordered) => ordered.put_back(request, want),
            None => self.last = Some(request),
        }
    }

    /// For the handle: ends writing to this stream.
    pub(crate) fn finish(&mut self, kind: Kind) {
        if let Some(writing) = self.writing.get_mut(index(kind)) {
            *writing = false;
        }
    }

    /// For the handle: records that no handle of the channel is left.
    pub(crate) fn leave(&mut self) {
        (self.writing, self.dropped) = ([false; 2], true);
        if let Some(ordered) = &mut self.ordered {
            ordered.leave();
        }
    }

    /// For the handle: sets the exit status to be sent after the last byte.
    pub(crate) fn exit(&mut self, how: Request) {
        self.last.get_or_insert(how);
    }

    /// For the handle: this end answers the peer's requests and may write standard error.
    pub(crate) fn serve(&mut self) {
        (self.serves, self.writing) = (true, [true; 2]);
    }

    /// Sets up a channel of an application-defined type: requests wait for an answer, and standard
    /// error is discarded.
    pub(crate) fn serve_own(&mut self) {
        self.serves = true;
        self.inlet(Kind::Stderr).deaf = true;
    }

    /// For the handle: refuses requests of the peer from now on. Returns those that wait.
    pub(crate) fn serve_no_more(&mut self) -> VecDeque<(Request, Option<ReplyTo>)> {
        self.serves = false;
        core::mem::take(&mut self.requests)
    }

    /// Takes the wakers of writers if there is space.
    pub(crate) fn take_writers(&mut self) -> impl Iterator<Item = Waker> {
        let room = self.unsent() < MAX_OUTPUT;
        let ordered = self.ordered.as_mut().filter(|_| room);
        let ordered = ordered.map(|ordered| ordered.take_writers());
        let writers = self.writers.iter_mut().filter(move |_| room);
        let writers = writers.filter_map(Option::take);
        writers.chain(ordered.into_iter().flatten())
    }

    /// Returns the size of the waiting requests, in bytes.
    pub(super) fn asked_octets(&self) -> usize {
        let requests = self.requests.iter();
        requests.map(|(request, _)| octets(request)).sum()
    }

    /// Returns the number of bytes read since the last call.
    pub(crate) fn take_consumed(&mut self) -> usize {
        core::mem::take(&mut self.consumed)
    }

    pub(super) fn wake_all(&mut self, wake: &mut Vec<Waker>) {
        wake.extend(self.writers.iter_mut().filter_map(Option::take));
        if let Some(ordered) = &mut self.ordered {
            ordered.wake_all(wake);
        }
        for inlet in &mut self.input {
            wake.extend(inlet.reader.take());
        }
    }
}

/// Returns the size of a request's names and values, which the peer chooses, in bytes.
pub(super) fn octets(request: &Request) -> usize {
    match request {
        Request::Env { name, value } => name.len() + value.len(),
        Request::Exec(command) => command.len(),
        Request::Subsystem(name) | Request::Signal(name) => name.len(),
        Request::Pty(pty) => pty.term.len(),
        Request::X11 {
            protocol, cookie, ..
        } => protocol.len() + cookie.expose().len(),
        Request::ExitSignal { name, message, .. } => name.len() + message.len(),
        Request::Own(own) => own.octets(),
        _ => 0,
    }
}
