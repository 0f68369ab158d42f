//! Record codecs: one object per direction, working in place.

use alloc::boxed::Box;
use core::ops::Range;

use crate::ProtocolError;

/// The space a codec needs around a payload, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overhead {
    /// Space before the payload.
    pub head: usize,
    /// Space after the payload.
    pub tail: usize,
    /// Maximum payload of one record.
    pub max_payload: usize,
}

impl Overhead {
    /// Returns the maximum payload in a slot of `slot` bytes; 0 if the slot is smaller than the overhead.
    #[must_use]
    pub fn max_payload_in(&self, slot: usize) -> usize {
        slot.saturating_sub(self.head)
            .saturating_sub(self.tail)
            .min(self.max_payload)
    }
}

/// The sending direction of a record codec: plaintext in, records out.
pub trait Seal: Send {
    /// Returns the space that the *next* record needs. The first record may need more than the others.
    fn overhead(&self) -> Overhead;

    /// Returns true if the space never grows from one record to the next, so that several records may be
    /// laid out before the first of them is sealed.
    fn has_steady_overhead(&self) -> bool {
        false
    }

    /// Seals `record[payload]` in place. At least [`Overhead::head`] bytes precede the payload and
    /// [`Overhead::tail`] follow it. Returns the range of the wire bytes, which contains the payload's range.
    ///
    /// # Errors
    /// [`ProtocolError::NoRoom`] if the overhead does not fit around the payload; otherwise the error of the codec,
    /// after which the direction is unusable.
    fn seal(
        &mut self,
        record: &mut [u8],
        payload: Range<usize>,
    ) -> Result<Range<usize>, ProtocolError>;

    /// Returns true if [`seal_ahead`](Self::seal_ahead) has something to do now.
    fn wants_seal_ahead(&self) -> bool {
        false
    }

    /// Announces the payloads of `slot` that are sealed next, in this order and at their current places.
    /// The codec may write into the space around them what is cheaper to compute for all of them together.
    fn seal_ahead(&mut self, _slot: &mut [u8], _payloads: &[Range<usize>]) {}

    /// Returns true if a header must be sent even when there is no payload (a client's request header).
    /// While this is true, sealing an empty payload is allowed.
    fn must_send_head(&self) -> bool {
        false
    }

    /// Returns true if the protocol itself has ended this direction: the stream is to be finished after the
    /// sealed bytes have been sent. Payloads sealed afterwards yield an empty range.
    fn is_finished(&self) -> bool {
        false
    }
}

/// The receiving direction of a record codec: records in, plaintext out.
pub trait Open: Send {
    /// Opens the record at the front of `wire` in place.
    ///
    /// This is called once with no bytes before anything is read, so that a codec can report that nothing
    /// will arrive.
    ///
    /// After [`Opened::NeedMore`], the next call's `wire` begins with the same bytes as this call left
    /// them: a codec may already have opened a length field in place. `total` is always greater than
    /// `wire.len()`.
    ///
    /// # Errors
    /// The record is not authentic or not well formed. The stream is unusable then.
    fn open(&mut self, wire: &mut [u8]) -> Result<Opened, ProtocolError>;

    /// Returns true if the stream may end here: not inside a record, and the header was seen.
    fn is_at_boundary(&self, unread: usize) -> bool {
        unread == 0
    }
}

/// The result of [`Open::open`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opened {
    /// More input is needed: call again with at least `total` bytes.
    NeedMore {
        /// Minimum length of `wire`, in bytes.
        total: usize,
    },
    /// The protocol itself has ended this direction (a framed body is complete), while the connection stays
    /// open for the answer. Any other bytes in `wire`, now or later, do not belong to the stream.
    End,
    /// One record was opened.
    Record {
        /// Wire bytes of the record.
        consumed: usize,
        /// Range of its plaintext in `wire`; may be empty.
        payload: Range<usize>,
    },
}

impl<T: Seal + ?Sized> Seal for Box<T> {
    fn overhead(&self) -> Overhead {
        (**self).overhead()
    }
    fn has_steady_overhead(&self) -> bool {
        (**self).has_steady_overhead()
    }
    fn seal(
        &mut self,
        record: &mut [u8],
        payload: Range<usize>,
    ) -> Result<Range<usize>, ProtocolError> {
        (**self).seal(record, payload)
    }
    fn wants_seal_ahead(&self) -> bool {
        (**self).wants_seal_ahead()
    }
    fn seal_ahead(&mut self, slot: &mut [u8], payloads: &[Range<usize>]) {
        (**self).seal_ahead(slot, payloads);
    }
    fn must_send_head(&self) -> bool {
        (**self).must_send_head()
    }
    fn is_finished(&self) -> bool {
        (**self).is_finished()
    }
}

impl<T: Open + ?Sized> Open for Box<T> {
    fn open(&mut self, wire: &mut [u8]) -> Result<Opened, ProtocolError> {
        (**self).open(wire)
    }
    fn is_at_boundary(&self, unread: usize) -> bool {
        (**self).is_at_boundary(unread)
    }
}
