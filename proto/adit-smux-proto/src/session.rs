//! The session: the application's interface.

use alloc::collections::{BTreeMap, VecDeque};

use adit_wire::{ProtocolError, Time};

use crate::{
    Config, ConfigError, Event, OpenError, PeerSilent, ReadFront, Role, StreamError, StreamId,
    Version,
    event::{EventKind, PendingEvents},
    frame_budget::FrameBudget,
    input::ReceiveState,
    queue_pool::{QueuePool, copy_front},
    stream::{SendState, StreamState, WriteWait},
};

/// One end of a connection with many streams.
///
/// A stream exists until it is [closed](Self::close), even when both directions have ended. The end
/// of a session sends nothing: drop it and the connection.
///
/// # Examples
///
/// ```
/// use adit_smux_proto::{Config, Event, Role, Session, Version};
/// use adit_wire::Time;
///
/// let now = Time(0);
/// let mut client = Session::new(Config::new(Version::V2, Role::Client), now)?;
/// let mut server = Session::new(Config::new(Version::V2, Role::Server), now)?;
///
/// // Two streams, whose frames share the connection.
/// for text in [b"one", b"two"] {
///     let id = client.open()?;
///     client.write(id, text)?;
/// }
/// let mut wire = [0; 256];
/// loop {
///     let len = client.poll_output(&mut wire);
///     if len == 0 {
///         break;
///     }
///     assert_eq!(server.handle_input(now, &wire[..len])?, len);
/// }
/// let mut text = [0; 3];
/// for expected in [b"one", b"two"] {
///     let id = server.accept().unwrap();
///     assert_eq!(server.read(id, &mut text)?, 3);
///     assert_eq!(&text, expected);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Session {
    pub(crate) config: Config,
    pub(crate) streams: BTreeMap<StreamId, StreamState>,
    pub(crate) buffers: QueuePool,
    /// Streams of the peer that were not accepted yet.
    pub(crate) unaccepted: VecDeque<StreamId>,
    /// Streams with events.
    events: VecDeque<StreamId>,
    /// The number last used by this end; `None` after the last one.
    last_id: Option<u32>,

    pub(crate) receiving: ReceiveState,
    /// Number of bytes received and not read.
    pub(crate) unread_bytes: usize,
    pub(crate) failure: Option<ProtocolError>,
    pub(crate) budget: FrameBudget,
    pub(crate) last_heard: Time,

    /// A keep-alive has to be sent.
    pub(crate) keepalive_due: bool,
    /// Streams of the peer that have to be ended immediately.
    pub(crate) refused: VecDeque<StreamId>,
    /// Streams with control frames, and those that can send data, in the order of sending.
    pub(crate) control_queue: VecDeque<StreamId>,
    pub(crate) send_queue: VecDeque<StreamId>,
    next_keepalive: Option<Time>,
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
            buffers: QueuePool::default(),
            unaccepted: VecDeque::new(),
            events: VecDeque::new(),
            last_id: Some(match config.role {
                Role::Client => 1,
                Role::Server => 0,
            }),
            receiving: ReceiveState::START,
            unread_bytes: 0,
            failure: None,
            budget: FrameBudget::new(now),
            last_heard: now,
            keepalive_due: false,
            refused: VecDeque::new(),
            control_queue: VecDeque::new(),
            send_queue: VecDeque::new(),
            next_keepalive: config.keepalive.map(|every| now + every),
            config,
        })
    }

    /// Opens a stream. You can write to it immediately: the peer can only refuse it by ending it.
    ///
    /// # Errors
    ///
    /// See [`OpenError`].
    pub fn open(&mut self) -> Result<StreamId, OpenError> {
        if self.failure.is_some() {
            return Err(OpenError::SessionFailed);
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
        let mut stream = StreamState::new();
        (stream.open_pending, stream.in_control) = (true, true);
        self.streams.insert(id, stream);
        self.control_queue.push_back(id);
        Ok(id)
    }

    /// Returns the next stream that the peer opened.
    pub fn accept(&mut self) -> Option<StreamId> {
        self.unaccepted.pop_front()
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        loop {
            let id = *self.events.front()?;
            let found = self.streams.get_mut(&id).and_then(|s| s.events.pop());
            if let Some(happening) = found {
                return Some(happening.to_event(id));
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
        let stream = writable_stream_mut(&mut self.streams, id)?;
        let room = self.config.send_buffer.saturating_sub(stream.outbox.len());
        let accepted = bytes.get(..room).unwrap_or(bytes);
        if accepted.len() < bytes.len() {
            stream.write_wait = WriteWait::QueueSpace;
        }
        if !accepted.is_empty() {
            self.buffers.push_bytes(&mut stream.outbox, accepted);
            self.schedule_stream(id);
        }
        Ok(accepted.len())
    }

    /// Returns the readable bytes of a stream without a copy.
    ///
    /// # Errors
    ///
    /// [`StreamError::Unknown`].
    pub fn front_bytes(&self, id: StreamId) -> Result<ReadFront<'_>, StreamError> {
        let stream = self.streams.get(&id).filter(|stream| !stream.closed);
        let stream = stream.ok_or(StreamError::Unknown)?;
        let (first, _) = stream.inbox.as_slices();
        Ok(match first {
            [_, ..] => ReadFront::Bytes(first),
            [] if stream.finished => ReadFront::End,
            [] => ReadFront::Nothing,
        })
    }

    /// Removes read bytes from the front of a stream, at most all of them.
    ///
    /// # Errors
    ///
    /// [`StreamError::Unknown`].
    pub fn consume(&mut self, id: StreamId, count: usize) -> Result<(), StreamError> {
        let stream = open_stream_mut(&mut self.streams, id)?;
        let count = count.min(stream.inbox.len());
        if count == 0 {
            return Ok(());
        }
        self.buffers.pop_bytes(&mut stream.inbox, count);
        self.unread_bytes -= count;
        stream.is_readable_reported &= !stream.inbox.is_empty();
        let update = self.config.version == Version::V2
            && !stream.finished
            && stream.count_read(count, self.config.stream_buffer);
        if update && !stream.in_control {
            stream.in_control = true;
            self.control_queue.push_back(id);
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
        let stream = open_stream_mut(&mut self.streams, id)?;
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
        let stream = open_stream_mut(&mut self.streams, id)?;
        if stream.sending == SendState::Open {
            stream.sending = SendState::Ending;
            self.schedule_stream(id);
        }
        Ok(())
    }

    /// Closes a stream: queued bytes are still sent, followed by the end; received bytes are
    /// dropped. Do not use the id any more.
    pub fn close(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| !stream.closed) else {
            return;
        };
        (stream.closed, stream.pending_update) = (true, None);
        let unread = stream.inbox.len();
        self.buffers.pop_bytes(&mut stream.inbox, unread);
        self.unread_bytes -= unread;
        stream.events = PendingEvents::NONE;
        self.events.retain(|other| *other != id);
        self.unaccepted.retain(|waiting| *waiting != id);
        if stream.sending == SendState::Ended {
            self.streams.remove(&id);
        } else {
            stream.sending = SendState::Ending;
            self.schedule_stream(id);
        }
    }

    /// Like [`close`](Self::close), and drops the queued bytes. To the peer it looks like an
    /// ordinary end: the protocol has no other.
    pub fn abort(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(&id) {
            let unsent = stream.outbox.len();
            self.buffers.pop_bytes(&mut stream.outbox, unsent);
        }
        self.close(id);
    }

    /// Returns the number of streams that are not closed, or that still have something to send.
    #[must_use]
    pub fn stream_count(&self) -> usize {
        self.streams.len()
    }

    /// Returns the time at which [`handle_timeout`](Self::handle_timeout) is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        let dead = self.last_heard + self.config.timeout;
        self.next_keepalive.map(|alive| alive.min(dead))
    }

    /// Sends a keep-alive if one is due. Silence does not count while this end accepts no input.
    ///
    /// # Errors
    ///
    /// [`PeerSilent`] if the peer has been silent for the time-out.
    pub fn handle_timeout(&mut self, now: Time) -> Result<(), PeerSilent> {
        let (Some(due), Some(every)) = (self.next_keepalive, self.config.keepalive) else {
            return Ok(());
        };
        if now >= due {
            self.keepalive_due = true;
            self.next_keepalive = Some(now + every);
            self.buffers.release_spare();
        }
        let silence = now.duration_since(self.last_heard);
        if silence < self.config.timeout {
            return Ok(());
        }
        let deaf = !self.wants_input();
        self.last_heard = now;
        if deaf {
            Ok(())
        } else {
            Err(PeerSilent(silence))
        }
    }

    /// Sends a keep-alive now. The peer ignores it.
    pub const fn send_keepalive(&mut self) {
        self.keepalive_due = true;
    }

    /// Queues an event of a stream.
    pub(crate) fn queue_event(&mut self, id: StreamId, happening: EventKind) {
        if let Some(stream) = self.streams.get_mut(&id).filter(|stream| !stream.closed)
            && stream.events.push(happening)
        {
            self.events.push_back(id);
        }
    }

    /// Adds a stream to those that can send, if it can.
    pub(crate) fn schedule_stream(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(&id)
            && !stream.in_turn
            && stream.can_send(self.config.version)
        {
            stream.in_turn = true;
            self.send_queue.push_back(id);
        }
    }
}

/// Returns a stream that the application has not closed.
fn open_stream_mut(
    streams: &mut BTreeMap<StreamId, StreamState>,
    id: StreamId,
) -> Result<&mut StreamState, StreamError> {
    let stream = streams.get_mut(&id).filter(|stream| !stream.closed);
    stream.ok_or(StreamError::Unknown)
}

/// Returns a stream that accepts writes.
pub(crate) fn writable_stream_mut(
    streams: &mut BTreeMap<StreamId, StreamState>,
    id: StreamId,
) -> Result<&mut StreamState, StreamError> {
    let stream = open_stream_mut(streams, id)?;
    if stream.failed {
        return Err(StreamError::Failed);
    }
    match stream.sending {
        SendState::Open => Ok(stream),
        SendState::Ending | SendState::Ended => Err(StreamError::Ended),
    }
}

#[cfg(test)]
impl Session {
    /// Continues as if the streams up to `id` had been opened.
    pub(crate) const fn skip_ids_to(&mut self, id: u32) {
        self.last_id = Some(id);
    }
}
