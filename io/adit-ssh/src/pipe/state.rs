//! What a channel's two sides share, behind the lock.

use std::collections::VecDeque;
use std::io;
use std::task::Waker;

use adit_ssh_proto::connection::{Kind, ReplyTo, Request, WantReply};

use super::ordered::Ordered;
use super::room::MAX_OUTPUT;
use crate::chunks::Chunks;
use crate::error::End;

/// What is behind the lock.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(super) input: [Inlet; 2],
    /// The peer sends no more bytes.
    pub(super) ended: bool,
    /// The channel has closed.
    pub(crate) closed: bool,
    /// It was cut off.
    pub(super) cut: Option<Cut>,
    /// Octets that were read and not told to the task.
    pub(super) consumed: usize,
    /// So many of them are worth a message to the task.
    pub(super) worth: usize,

    pub(super) output: [Chunks; 2],
    /// Who waits for room, by stream: two tasks may write a program's two.
    pub(super) writers: [Option<Waker>; 2],
    /// Streams that may still be written to.
    pub(super) writing: [bool; 2],
    /// Nobody holds the channel any more, or it is at its end.
    pub(super) dropped: bool,
    /// What was not sent is not sent any more.
    pub(super) aborted: bool,
    /// To be told behind the last byte.
    pub(super) last: Option<Request>,
    /// The channel has an end that answers requests.
    pub(super) serves: bool,

    /// Requests of the peer.
    pub(crate) requests: VecDeque<(Request, Option<ReplyTo>)>,
    /// How the program ended.
    pub(crate) exit: Option<Request>,

    /// What a channel has that goes message by message.
    pub(super) ordered: Option<Box<Ordered>>,
    /// Its requests of the peer that wait for an answer.
    pub(crate) owed: VecDeque<ReplyTo>,
}

/// What a channel's own side wants.
#[derive(Debug)]
pub(crate) enum Next {
    /// Nothing now.
    Nothing,
    /// There are bytes to send.
    Write,
    /// This is to be asked for, or told, before what follows.
    Tell(Request, WantReply),
    /// The own side ends, before what follows.
    End,
    /// All is sent, and that was all.
    Finish {
        /// Nobody holds the channel any more.
        close: bool,
    },
    /// The channel is to be closed as it is.
    Abort,
}

/// One stream from the peer.
#[derive(Debug, Default)]
pub(super) struct Inlet {
    pub(super) bytes: Chunks,
    pub(super) reader: Option<Waker>,
    /// Nobody reads it.
    pub(super) deaf: bool,
}

/// Why reading stops.
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
                "the peer closed the channel in the middle",
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

    /// Whether the peer's side has told how a program ended, or there are bytes to be read.
    pub(crate) fn has_spoken(&self) -> bool {
        self.exit.is_some() || self.input.iter().any(|from| !from.bytes.is_empty())
    }

    /// Which stream has bytes to send, and how many: standard error first, of which there is little.
    pub(crate) fn next_bytes(&self) -> (Kind, usize) {
        match (&self.ordered, &self.output) {
            (Some(ordered), _) => ordered.next_bytes(),
            (None, [_, err]) if !err.is_empty() => (Kind::Stderr, err.len()),
            (None, [out, _]) => (Kind::Stdout, out.len()),
        }
    }

    /// So many of them have left: whether there is something else to do now.
    pub(crate) fn sent(&mut self, n: usize) -> bool {
        match &mut self.ordered {
            Some(ordered) => ordered.sent(n),
            None => self.unsent() == 0,
        }
    }

    /// What the task is to do about the channel's own side.
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
            // How the program ended is the last word.
            self.dropped = true;
            Next::Tell(last, WantReply::No)
        } else {
            Next::Finish {
                close: self.dropped,
            }
        }
    }

    /// What was to be told could not be told yet.
    pub(crate) fn put_back(&mut self, request: Request, want: WantReply) {
        match &mut self.ordered {
            Some(ordered) => ordered.put_back(request, want),
            None => self.last = Some(request),
        }
    }

    /// The handle: nothing is written to this stream any more.
    pub(crate) fn finish(&mut self, kind: Kind) {
        if let Some(writing) = self.writing.get_mut(index(kind)) {
            *writing = false;
        }
    }

    /// The handle: nobody holds the channel any more.
    pub(crate) fn leave(&mut self) {
        (self.writing, self.dropped) = ([false; 2], true);
        if let Some(ordered) = &mut self.ordered {
            ordered.leave();
        }
    }

    /// The handle: this is told behind the last byte.
    pub(crate) fn exit(&mut self, how: Request) {
        self.last.get_or_insert(how);
    }

    /// The handle: requests of the peer will be answered, and there is a standard error.
    pub(crate) fn serve(&mut self) {
        (self.serves, self.writing) = (true, [true; 2]);
    }

    /// The channel is of an own type: its requests wait to be answered, and nobody reads a standard
    /// error.
    pub(crate) fn serve_own(&mut self) {
        self.serves = true;
        self.inlet(Kind::Stderr).deaf = true;
    }

    /// The handle: requests of the peer are refused from now on. Returns those that waited.
    pub(crate) fn serve_no_more(&mut self) -> VecDeque<(Request, Option<ReplyTo>)> {
        self.serves = false;
        core::mem::take(&mut self.requests)
    }

    /// Takes who waits for room, if there is room.
    pub(crate) fn take_writers(&mut self) -> impl Iterator<Item = Waker> {
        let room = self.unsent() < MAX_OUTPUT;
        let ordered = self.ordered.as_mut().filter(|_| room);
        let ordered = ordered.map(|ordered| ordered.take_writers());
        let writers = self.writers.iter_mut().filter(move |_| room);
        let writers = writers.filter_map(Option::take);
        writers.chain(ordered.into_iter().flatten())
    }

    /// Octets of the requests that wait.
    pub(super) fn asked_octets(&self) -> usize {
        let requests = self.requests.iter();
        requests.map(|(request, _)| octets(request)).sum()
    }

    /// Octets that were read since the last time.
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

/// Octets of a request's names and values, which the peer chooses.
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
