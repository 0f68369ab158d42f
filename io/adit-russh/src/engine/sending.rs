//! What is sent in channels: in order, by turns, as their windows allow.

use std::task::{Context, Poll};

use adit_ssh_proto::connection::{CallError, ChannelId as Id, Kind, Request};
use bytes::Bytes;

use super::core::{State, gone_is_fine, want};
use super::{Behind, Core};
use crate::Error;

/// Octets that may wait in one channel before its writer does.
const MAX_WAITING: usize = 256 << 10;
/// Octets that may wait in one channel in all, by those who cannot wait.
const MAX_PENDING: usize = 16 << 20;
/// Ends and words that may wait behind the bytes of one channel.
const MAX_TOLD: usize = 1024;

impl Core {
    /// Gives bytes to be sent, once there is room for more: `take` is told for how many, and gives
    /// no more.
    pub(crate) fn poll_send(
        &self,
        cx: &Context<'_>,
        id: Id,
        kind: Kind,
        take: impl FnOnce(usize) -> Bytes,
    ) -> Poll<Result<usize, Error>> {
        self.with(|state| {
            state.check()?;
            let pieces = state.pieces;
            let live = state.lives.get_mut(&id).ok_or(Error::WrongChannel)?;
            if live.waiting >= MAX_WAITING || live.behind.len() >= pieces {
                live.writers.push(cx.waker().clone());
                return Poll::Pending;
            }
            let bytes = take(MAX_WAITING - live.waiting);
            let n = bytes.len();
            state.put(id, Behind::Data(kind, bytes))?;
            Poll::Ready(Ok(n))
        })
    }

    /// Gives something to be sent behind what waits, at once. In a channel that has closed it is
    /// dropped.
    pub(crate) fn send(&self, id: Id, what: Behind) -> Result<(), Error> {
        self.with(|state| {
            state.check()?;
            match state.put(id, what) {
                Err(Error::WrongChannel) => Ok(()),
                done => done,
            }
        })
    }

    /// Tells something in a channel, ahead of the bytes that wait.
    pub(crate) fn tell(&self, id: Id, request: &Request, want_reply: bool) -> Result<(), Error> {
        self.with(|state| {
            state.check()?;
            let want = want(want_reply);
            Ok(gone_is_fine(state.connection.request(id, request, want))?)
        })
    }

    /// Answers the oldest request of the peer in a channel. Without one there is nothing to answer:
    /// not every request wants it.
    pub(crate) fn answer(&self, id: Id, ok: bool) -> Result<(), Error> {
        self.with(|state| {
            state.check()?;
            let live = state.lives.get_mut(&id);
            if let Some(to) = live.and_then(|live| live.owed.pop_front()) {
                state.connection.answer(to, ok);
            }
            Ok(())
        })
    }

    /// Answers the youngest request of the peer in a channel, which has just come.
    pub(crate) fn answer_last(&self, id: Id, ok: bool) {
        self.with(|state| {
            let live = state.lives.get_mut(&id);
            if let Some(to) = live.and_then(|live| live.owed.pop_back()) {
                state.connection.answer(to, ok);
            }
        });
    }

    /// Bytes of a channel have been read.
    pub(crate) fn consumed(&self, id: Id, octets: usize) {
        if octets > 0 {
            let now = adit_net::ambient::now();
            self.with(|state| state.connection.consumed(id, octets, now));
        }
    }

    /// Opens a channel that the peer wants.
    pub(crate) fn confirm(&self, id: Id) -> Result<(), Error> {
        self.with(|state| {
            state.connection.confirm(id)?;
            state.opened(id);
            Ok(())
        })
    }
}

impl State {
    /// Both sides have agreed to a channel.
    pub(super) fn opened(&mut self, id: Id) {
        if let Some(live) = self.lives.get_mut(&id) {
            live.open = true;
            if let Some(opening) = live.opening.take() {
                // Whoever has given up has closed it.
                let _ = opening.send(Ok(()));
            }
        }
        self.go_on(id);
    }

    fn put(&mut self, id: Id, what: Behind) -> Result<(), Error> {
        let live = self.lives.get_mut(&id).ok_or(Error::WrongChannel)?;
        match &what {
            Behind::Data(_, bytes) if bytes.is_empty() => return Ok(()),
            Behind::Data(_, bytes) if live.waiting + bytes.len() > MAX_PENDING => {
                return Err(Error::Pending);
            }
            Behind::Data(_, bytes) => live.waiting += bytes.len(),
            _ if live.behind.len() >= MAX_TOLD && live.waiting == 0 => return Err(Error::Pending),
            _ => {}
        }
        live.behind.push_back(what);
        if live.behind.len() == 1 {
            self.go_on(id);
        }
        Ok(())
    }

    /// Does what stands in front of a channel's queue, up to its next bytes.
    pub(super) fn go_on(&mut self, id: Id) {
        let Some(live) = self.lives.get_mut(&id).filter(|live| live.open) else {
            return;
        };
        loop {
            match live.behind.front() {
                None => return,
                Some(Behind::Data(..)) => return self.connection.want_write(id),
                // A channel whose own side has ended, or is gone, needs no further end.
                Some(Behind::Eof) => drop(self.connection.eof(id)),
                Some(Behind::Close) => self.connection.close(id),
                Some(Behind::Told(request)) => {
                    if self.connection.request(id, request, want(false)) == Err(CallError::Full) {
                        self.stalled.push(id);
                        return;
                    }
                }
            }
            live.behind.pop_front();
        }
    }

    /// Appends the next payload to `out`; false if there is none.
    pub(super) fn poll_output(&mut self, out: &mut Vec<u8>) -> bool {
        if self.connection.poll_output(out) {
            return true;
        }
        self.wake_waiters();
        for id in std::mem::take(&mut self.stalled) {
            self.go_on(id);
        }
        while let Some(id) = self.connection.next_writer() {
            let room = self.connection.room(id);
            let Some(live) = self.lives.get_mut(&id) else {
                continue;
            };
            let Some((kind, bytes)) = live.next_data(room) else {
                continue;
            };
            live.wake();
            let header = self.connection.data_header(id, kind, bytes.len(), out);
            self.go_on(id);
            // Bytes for a channel whose own side has ended are dropped.
            if header.is_ok() {
                out.extend_from_slice(&bytes);
                self.sent_data = true;
                return true;
            }
        }
        // What went on may have left control messages.
        self.connection.poll_output(out)
    }
}
