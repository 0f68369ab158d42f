//! Record codecs, one object per direction, in place.

use core::ops::Range;

use crate::Broken;

/// The room a codec needs around a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Bytes in front of the payload.
    pub head: usize,
    /// Bytes behind the payload.
    pub tail: usize,
    /// The longest payload of one record.
    pub max: usize,
}

impl Room {
    /// The longest payload that fits a slot of `slot` bytes, 0 if not even the room does.
    #[must_use]
    pub fn payload_in(&self, slot: usize) -> usize {
        slot.saturating_sub(self.head)
            .saturating_sub(self.tail)
            .min(self.max)
    }
}

/// Plaintext in, records out.
pub trait Seal: Send {
    /// The room the *next* record needs. The first may need more than the others.
    fn room(&self) -> Room;

    /// Whether the room never grows from one record to the next, so that several records may be
    /// laid out before the first of them is sealed.
    fn steady(&self) -> bool {
        false
    }

    /// Seals `record[payload]` in place; at least [`Room::head`] bytes stand in front of it and
    /// [`Room::tail`] behind. Returns the range of wire bytes, which holds the payload's place.
    fn seal(&mut self, record: &mut [u8], payload: Range<usize>) -> Result<Range<usize>, Broken>;

    /// Whether [`seal_ahead`](Self::seal_ahead) has something to do now.
    fn looks_ahead(&self) -> bool {
        false
    }

    /// Tells which payloads of `slot` are sealed next, in this order and where they are now. What
    /// is cheaper for all of them together can be written into the room around them.
    fn seal_ahead(&mut self, _slot: &mut [u8], _payloads: &[Range<usize>]) {}

    /// Whether a head must go out even when there is no payload (a client's request header).
    /// While this is true, sealing an empty payload is allowed.
    fn owes_head(&self) -> bool {
        false
    }

    /// Whether this direction is complete by the protocol's own means, so that the stream is to be
    /// finished after what was sealed has left. Payloads sealed afterwards give an empty range.
    fn ended(&self) -> bool {
        false
    }
}

/// Records in, plaintext out.
pub trait Open: Send {
    /// Opens the record at the front of `wire` in place. Asked once with no bytes at all before
    /// anything is read, so that a codec can say that nothing will come.
    ///
    /// After [`Opened::NeedMore`] the next call's `wire` begins with the same bytes as this
    /// one left them: a codec may already have opened a length field in place.
    /// `total` is always more than `wire.len()`.
    fn open(&mut self, wire: &mut [u8]) -> Result<Opened, Broken>;

    /// Whether the stream may end here: not inside a record, and the head was seen.
    fn at_boundary(&self, unread: usize) -> bool {
        unread == 0
    }
}

/// What [`Open::open`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opened {
    /// Call again with at least `total` bytes.
    NeedMore {
        /// Bytes wanted, counted from the front of `wire`.
        total: usize,
    },
    /// This direction is complete by the protocol's own means (a framed body is at its end), while
    /// the connection lives on for the answer. Whatever else stands in `wire` or comes later does
    /// not belong to the stream.
    End,
    /// One record was opened.
    Record {
        /// Wire bytes the record took.
        consumed: usize,
        /// Where its plaintext lies in `wire`; may be empty.
        payload: Range<usize>,
    },
}

impl<T: Seal + ?Sized> Seal for Box<T> {
    fn room(&self) -> Room {
        (**self).room()
    }
    fn steady(&self) -> bool {
        (**self).steady()
    }
    fn seal(&mut self, record: &mut [u8], payload: Range<usize>) -> Result<Range<usize>, Broken> {
        (**self).seal(record, payload)
    }
    fn looks_ahead(&self) -> bool {
        (**self).looks_ahead()
    }
    fn seal_ahead(&mut self, slot: &mut [u8], payloads: &[Range<usize>]) {
        (**self).seal_ahead(slot, payloads);
    }
    fn owes_head(&self) -> bool {
        (**self).owes_head()
    }
    fn ended(&self) -> bool {
        (**self).ended()
    }
}

impl<T: Open + ?Sized> Open for Box<T> {
    fn open(&mut self, wire: &mut [u8]) -> Result<Opened, Broken> {
        (**self).open(wire)
    }
    fn at_boundary(&self, unread: usize) -> bool {
        (**self).at_boundary(unread)
    }
}
