//! The session: the application's interface.

use std::collections::{BTreeMap, VecDeque};

use adit_wire::{ProtocolError, Time};

use crate::{
    Config, ConfigError, Event, Front, OpenError, Role, Silent, StreamError, StreamId, Version,
    budget::Budget,
    buffers::{Buffers, copy_front},
    event::{Happening, Happenings},
    input::Receiving,
    stream::{Sending, Stream, Wish},
};

/// One end of a connection with many streams.
///
/// A stream exists until it is [closed](Self::close), even when both directions have ended. The end
/// of a session sends nothing: drop it and the connection.
#[derive(Debug)]
pub struct Session {
    pub(crate) config: Config,
    pub(crate) streams: BTreeMap<StreamId, Stream>,
    pub(crate) buffers: Buffers,
    /// Streams of the peer that were not accepted yet.
    pub(crate) waiting: VecDeque<StreamId>,
    /// Streams with events.
    events: VecDeque<StreamId>,
    /// The number last used by this end; `None` after the last one.
    last_id: Option<u32>,

    pub(crate) receiving: Receiving,
    /// Number of bytes received and not read.
    pub(crate) held: usize,
    pub(crate) broken: Option<ProtocolError>,
    pub(crate) budget: Budget,
    pub(crate) heard: Time,

    /// A keep-alive has to be sent.
    pub(crate) alive: bool,
    /// Streams of the peer that have to be ended immediately.
    pub(crate) refused: VecDeque<StreamId>,
    /// Streams with control frames, and those that can send data, in the order of sending.
    pub(crate) control: VecDeque<StreamId>,
    pub(crate) turns: VecDeque<StreamId>,
    next_alive: Option<Time>,
}

impl Session {
    /// Creates a session on a new connection.
    ///
    /// # Errors
    ///
    /// See [`ConfigError`].
    pub fn new(config: Config, now: Time) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            streams: BTreeMap::new(),
            buffers: Buffers::default(),
            waiting: VecDeque::new(),
            events: VecDeque::new(),
            last_id: Some(match config.role {
                Role::Client => 1,
                Role::Server => 0,
            }),
            receiving: Receiving::START,
            held: 0,
            broken: None,
            budget: Budget::new(now),
            heard: now,
            alive: false,
            refused: VecDeque::new(),
            control: VecDeque::new(),
            turns: VecDeque::new(),
            next_alive: config.keepalive.map(|every| now + every),
            config,
        })
    }

    /// Opens a stream. You can write to it immediately: the peer can only refuse it by ending it.
    ///
    /// # Errors
    ///
    /// See [`OpenError`].
    pub fn open(&mut self) -> Result<StreamId, OpenError> {
        if self.broken.is_some() {
            return Err(OpenError::Broken);
        }
        if self.streams.len() >= self.config.max_streams {
            return Err(OpenError::TooMany);
        }
        // A peer may have used numbers that are reserved for this end.
        let id = loop {
            let next = self.last_id.and_then(|last| last.checked_add(2));
            self.last_id = next;
            let id = StreamId(next.ok_or(OpenError::Exhausted)?);
            if !self.streams.contains_key(&id) {
                break id;
            }
        };
        let mut stream = Stream::new();
        (stream.opens, stream.in_control) = (true, true);
        self.streams.insert(id, stream);
        self.control.push_back(id);
        Ok(id)
    }

    /// Returns the next stream that the peer opened.
    pub fn accept(&mut self) -> Option<StreamId> {
        self.waiting.pop_front()
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        loop {
            let id = *self.events.front()?;
            let found = self.streams.get_mut(&id).and_then(|s| s.events.pop());
            if let Some(happening) = found {
                return Some(happening.of(id));
            }
            self.events.pop_front();
        }
    }

    /// Queues bytes to send, and returns the number accepted. If not all were accepted,
    /// [`Event::Writable`] follows.
    ///
    /// # Errors
    ///
    /// See [`StreamError`].
    pub fn write(&mut self, id: StreamId, bytes: &[u8]) -> Result<usize, StreamError> {
        let stream = writer(&mut self.streams, id)?;
        let room = self.config.send_buffer.saturating_sub(stream.outbox.len());
        let accepted = bytes.get(..room).unwrap_or(bytes);
        if accepted.len() < bytes.len() {
            stream.wish = Wish::Room;
        }
        if !accepted.is_empty() {
            self.buffers.push(&mut stream.outbox, accepted);
            self.schedule(id);
        }
        Ok(accepted.len())
    }

    /// Returns the readable bytes of a stream without a copy.
    ///
    /// # Errors
    ///
    /// [`StreamError::Unknown`].
    pub fn front(&self, id: StreamId) -> Result<Front<'_>, StreamError> {
        let stream = self.streams.get(&id).filter(|stream| !stream.closed);
        let stream = stream.ok_or(StreamError::Unknown)?;
        let (first, _) = stream.inbox.as_slices();
        Ok(match first {
            [_, ..] => Front::Bytes(first),
            [] if stream.finished => Front::End,
            [] => Front::Nothing,
        })
    }

    /// Removes read bytes from the front of a stream, at most all of them.
    ///
    /// # Errors
    ///
    /// [`StreamError::Unknown`].
    pub fn consume(&mut self, id: StreamId, count: usize) -> Result<(), StreamError> {
        let stream = reader(&mut self.streams, id)?;
        let count = count.min(stream.inbox.len());
        if count == 0 {
            return Ok(());
        }
        self.buffers.pop(&mut stream.inbox, count);
        self.held -= count;
        stream.told &= !stream.inbox.is_empty();
        let update = self.config.version == Version::V2
            && !stream.finished
            && stream.count_read(count, self.config.stream_buffer);
        if update && !stream.in_control {
            stream.in_control = true;
            self.control.push_back(id);
        }
        Ok(())
    }

    /// Copies bytes of a stream to `out` and returns their number; 0 at the peer's end (or if `out`
    /// is empty).
    ///
    /// # Errors
    ///
    /// [`StreamError::Empty`] if there are no bytes now, or [`StreamError::Unknown`].
    pub fn read(&mut self, id: StreamId, out: &mut [u8]) -> Result<usize, StreamError> {
        let stream = reader(&mut self.streams, id)?;
        if stream.inbox.is_empty() && !stream.finished {
            return Err(StreamError::Empty);
        }
        let count = copy_front(&stream.inbox, out);
        self.consume(id, count)?;
        Ok(count)
    }

    /// Ends the write direction after the queued bytes. The read direction continues.
    ///
    /// # Errors
    ///
    /// [`StreamError::Unknown`].
    pub fn close_write(&mut self, id: StreamId) -> Result<(), StreamError> {
        let stream = reader(&mut self.streams, id)?;
        if stream.sending == Sending::Open {
            stream.sending = Sending::Ending;
            self.schedule(id);
        }
        Ok(())
    }

    /// Closes a stream: queued bytes are still sent, followed by the end; received bytes are
    /// dropped. Do not use the id any more.
    pub fn close(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| !stream.closed) else {
            return;
        };
        (stream.closed, stream.update) = (true, None);
        let unread = stream.inbox.len();
        self.buffers.pop(&mut stream.inbox, unread);
        self.held -= unread;
        stream.events = Happenings::NONE;
        self.events.retain(|other| *other != id);
        self.waiting.retain(|waiting| *waiting != id);
        if stream.sending == Sending::Ended {
            self.streams.remove(&id);
        } else {
            stream.sending = Sending::Ending;
            self.schedule(id);
        }
    }

    /// Like [`close`](Self::close), and drops the queued bytes. To the peer it looks like an
    /// ordinary end: the protocol has no other.
    pub fn abort(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(&id) {
            let unsent = stream.outbox.len();
            self.buffers.pop(&mut stream.outbox, unsent);
        }
        self.close(id);
    }

    /// Returns the number of streams that are not closed, or that still have something to send.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    /// Returns the time at which [`handle_timeout`](Self::handle_timeout) is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        let dead = self.heard + self.config.timeout;
        self.next_alive.map(|alive| alive.min(dead))
    }

    /// Sends a keep-alive if one is due. Silence does not count while this end accepts no input.
    ///
    /// # Errors
    ///
    /// [`Silent`] if the peer has been silent for the time-out.
    pub fn handle_timeout(&mut self, now: Time) -> Result<(), Silent> {
        let (Some(due), Some(every)) = (self.next_alive, self.config.keepalive) else {
            return Ok(());
        };
        if now >= due {
            self.alive = true;
            self.next_alive = Some(now + every);
            self.buffers.trim();
        }
        let silence = now.duration_since(self.heard);
        if silence < self.config.timeout {
            return Ok(());
        }
        let deaf = !self.wants_input();
        self.heard = now;
        if deaf { Ok(()) } else { Err(Silent(silence)) }
    }

    /// Sends a keep-alive now. The peer ignores it.
    pub const fn greet(&mut self) {
        self.alive = true;
    }

    /// Queues an event of a stream.
    pub(crate) fn tell(&mut self, id: StreamId, happening: Happening) {
        if let Some(stream) = self.streams.get_mut(&id).filter(|stream| !stream.closed)
            && stream.events.push(happening)
        {
            self.events.push_back(id);
        }
    }

    /// Adds a stream to those that can send, if it can.
    pub(crate) fn schedule(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(&id)
            && !stream.in_turn
            && stream.can_send(self.config.version)
        {
            stream.in_turn = true;
            self.turns.push_back(id);
        }
    }
}

/// Returns a stream that the application has not closed.
fn reader(
    streams: &mut BTreeMap<StreamId, Stream>,
    id: StreamId,
) -> Result<&mut Stream, StreamError> {
    let stream = streams.get_mut(&id).filter(|stream| !stream.closed);
    stream.ok_or(StreamError::Unknown)
}

/// Returns a stream that accepts writes.
pub(crate) fn writer(
    streams: &mut BTreeMap<StreamId, Stream>,
    id: StreamId,
) -> Result<&mut Stream, StreamError> {
    let stream = reader(streams, id)?;
    if stream.failed {
        return Err(StreamError::Failed);
    }
    match stream.sending {
        Sending::Open => Ok(stream),
        Sending::Ending | Sending::Ended => Err(StreamError::Ended),
    }
}

#[cfg(test)]
impl Session {
    /// Continues as if the streams up to `id` had been opened.
    pub(crate) const fn skip_ids_to(&mut self, id: u32) {
        self.last_id = Some(id);
    }
}
