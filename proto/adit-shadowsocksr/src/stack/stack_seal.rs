//! The sealing codec: frames, encrypted in place.

use core::fmt;
use core::ops::Range;

use adit_crypto::StreamCipher;
use adit_wire::{Overhead, ProtocolError, Seal};

use crate::field::{check_overhead, put_field, range_around, range_mut};

/// The sealing codec of a connection. The cipher's IV, and a client's target header, are part of
/// the first record.
pub struct StackSeal<S> {
    frames: S,
    cipher: StreamCipher,
    /// `None` once the first record was sealed.
    first: Option<Box<FirstRecord>>,
}

struct FirstRecord {
    iv: Vec<u8>,
    /// A client's target header; a server has none.
    header: Vec<u8>,
}

impl<S: Seal> StackSeal<S> {
    /// Creates the codec; `cipher` was started with `iv`.
    pub(super) fn new(frames: S, cipher: StreamCipher, iv: Vec<u8>, header: Vec<u8>) -> Self {
        Self {
            frames,
            cipher,
            first: Some(Box::new(FirstRecord { iv, header })),
        }
    }

    fn encrypt_frame(
        &mut self,
        record: &mut [u8],
        frame: &Range<usize>,
    ) -> Result<(), ProtocolError> {
        self.cipher.apply(range_mut(record, frame.clone())?);
        Ok(())
    }
}

impl<S: Seal> Seal for StackSeal<S> {
    fn overhead(&self) -> Overhead {
        let room = self.frames.overhead();
        match &self.first {
            None => room,
            Some(first) => Overhead {
                head: room.head + first.iv.len() + first.header.len(),
                tail: room.tail,
                max_payload: room.max_payload.saturating_sub(first.header.len()),
            },
        }
    }

    fn has_steady_overhead(&self) -> bool {
        self.frames.has_steady_overhead()
    }

    /// Seals a payload. An empty one results in an empty range, unless a head is owed.
    fn seal(
        &mut self,
        record: &mut [u8],
        payload: Range<usize>,
    ) -> Result<Range<usize>, ProtocolError> {
        if payload.is_empty() && !self.must_send_head() {
            return Ok(payload);
        }
        check_overhead(self.overhead(), record, &payload)?;
        let Some(first) = &self.first else {
            let frame = self.frames.seal(record, payload)?;
            self.encrypt_frame(record, &frame)?;
            return Ok(frame);
        };
        let inner = range_around(record, &payload, first.header.len(), 0)?;
        put_field(record, inner.start, &first.header)?;
        let frame = self.frames.seal(record, inner)?;
        let wire = range_around(record, &frame, first.iv.len(), 0)?;
        put_field(record, wire.start, &first.iv)?;
        self.first = None;
        self.encrypt_frame(record, &frame)?;
        Ok(wire)
    }

    fn wants_seal_ahead(&self) -> bool {
        self.first.is_none() && self.frames.wants_seal_ahead()
    }

    fn seal_ahead(&mut self, slot: &mut [u8], payloads: &[Range<usize>]) {
        self.frames.seal_ahead(slot, payloads);
    }

    fn must_send_head(&self) -> bool {
        let header = self.first.as_ref().is_some_and(|f| !f.header.is_empty());
        header || self.frames.must_send_head()
    }
}

impl<S> fmt::Debug for StackSeal<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StackSeal")
            .field("cipher", &self.cipher)
            .field("first", &self.first.is_some())
            .finish_non_exhaustive()
    }
}
