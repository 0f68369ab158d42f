//! Events for the application, at most one pending for each stream and kind.

use crate::StreamId;

/// An event for the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The peer opened a stream; [`Session::accept`](crate::Session::accept) returns it.
    Opened(StreamId),
    /// There are bytes to read. Occurs again only after all were read.
    Readable(StreamId),
    /// The peer has ended its direction. There may still be bytes to read.
    Finished(StreamId),
    /// A write that was not accepted in full, or [`Session::direct_capacity`](crate::Session::direct_capacity) that
    /// returned 0, can continue.
    Writable(StreamId),
    /// The peer violated the stream's flow control. The stream can only be closed.
    Failed(StreamId),
}

/// A kind of event, in the order in which those of one stream are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventKind {
    Opened,
    Readable,
    Finished,
    Writable,
    Failed,
}

impl EventKind {
    const ALL: [Self; 5] = [
        Self::Opened,
        Self::Readable,
        Self::Finished,
        Self::Writable,
        Self::Failed,
    ];

    pub(crate) const fn to_event(self, id: StreamId) -> Event {
        match self {
            Self::Opened => Event::Opened(id),
            Self::Readable => Event::Readable(id),
            Self::Finished => Event::Finished(id),
            Self::Writable => Event::Writable(id),
            Self::Failed => Event::Failed(id),
        }
    }

    const fn as_bit(self) -> u8 {
        1 << self as u8
    }
}

/// The pending events of one stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PendingEvents(u8);

impl PendingEvents {
    pub(crate) const NONE: Self = Self(0);

    /// Adds an event. Returns true if it is the only one now.
    pub(crate) const fn push(&mut self, happening: EventKind) -> bool {
        let first = self.0 == 0;
        self.0 |= happening.as_bit();
        first
    }

    pub(crate) fn pop(&mut self) -> Option<EventKind> {
        let next = EventKind::ALL
            .into_iter()
            .find(|h| self.0 & h.as_bit() != 0)?;
        self.0 &= !next.as_bit();
        Some(next)
    }
}
