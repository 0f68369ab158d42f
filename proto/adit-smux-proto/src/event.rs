//! What the application may want to act on, at most once for each stream and kind.

use crate::StreamId;

/// Something that the application may want to act on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The peer opened a stream; [`Session::accept`](crate::Session::accept) gives it.
    Opened(StreamId),
    /// There are bytes to read. Comes again only after all were read.
    Readable(StreamId),
    /// The peer has ended its side. Bytes may still be there to be read.
    Finished(StreamId),
    /// A write that was not accepted in full, or [`Session::direct`](crate::Session::direct) that
    /// gave 0, can go on.
    Writable(StreamId),
    /// The peer broke the stream's flow control. It can only be closed.
    Failed(StreamId),
}

/// A kind of event, in the order in which those of one stream are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Happening {
    Opened,
    Readable,
    Finished,
    Writable,
    Failed,
}

impl Happening {
    const ALL: [Self; 5] = [
        Self::Opened,
        Self::Readable,
        Self::Finished,
        Self::Writable,
        Self::Failed,
    ];

    pub(crate) const fn of(self, id: StreamId) -> Event {
        match self {
            Self::Opened => Event::Opened(id),
            Self::Readable => Event::Readable(id),
            Self::Finished => Event::Finished(id),
            Self::Writable => Event::Writable(id),
            Self::Failed => Event::Failed(id),
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// The events of one stream that were not told yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Happenings(u8);

impl Happenings {
    pub(crate) const NONE: Self = Self(0);

    /// True if it is the only one now.
    pub(crate) const fn push(&mut self, happening: Happening) -> bool {
        let first = self.0 == 0;
        self.0 |= happening.bit();
        first
    }

    pub(crate) fn pop(&mut self) -> Option<Happening> {
        let next = Happening::ALL.into_iter().find(|h| self.0 & h.bit() != 0)?;
        self.0 &= !next.bit();
        Some(next)
    }
}
