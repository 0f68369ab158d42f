//! The sealing codec: frames, encrypted in place.

use core::fmt;
use core::ops::Range;

use adit_crypto::StreamCipher;
use adit_wire::{Broken, Room, Seal};

use crate::field::{around, check_room, part, put};

/// The sealing codec of a connection. The cipher's IV, and a client's target header, are part of
/// the first record.
pub struct StackSeal<S> {
    frames: S,
    cipher: StreamCipher,
    /// `None` once the first record was sealed.
    first: Option<Box<First>>,
}

struct First {
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
            first: Some(Box::new(First { iv, header })),
        }
    }

    fn encipher(&mut self, record: &mut [u8], frame: &Range<usize>) -> Result<(), Broken> {
        self.cipher.apply(part(record, frame.clone())?);
        Ok(())
    }
}

impl<S: Seal> Seal for StackSeal<S> {
    fn room(&self) -> Room {
        let room = self.frames.room();
        match &self.first {
            None => room,
            Some(first) => Room {
                head: room.head + first.iv.len() + first.header.len(),
                tail: room.tail,
                max: room.max.saturating_sub(first.header.len()),
            },
        }
    }

    fn steady(&self) -> bool {
        self.frames.steady()
    }

    /// Seals a payload. An empty one results in an empty range, unless a head is owed.
    fn seal(&mut self, record: &mut [u8], payload: Range<usize>) -> Result<Range<usize>, Broken> {
        if payload.is_empty() && !self.owes_head() {
            return Ok(payload);
        }
        check_room(self.room(), record, &payload)?;
        let Some(first) = &self.first else {
            let frame = self.frames.seal(record, payload)?;
            self.encipher(record, &frame)?;
            return Ok(frame);
        };
        let inner = around(record, &payload, first.header.len(), 0)?;
        put(record, inner.start, &first.header)?;
        let frame = self.frames.seal(record, inner)?;
        let wire = around(record, &frame, first.iv.len(), 0)?;
        put(record, wire.start, &first.iv)?;
        self.first = None;
        self.encipher(record, &frame)?;
        Ok(wire)
    }

    fn looks_ahead(&self) -> bool {
        self.first.is_none() && self.frames.looks_ahead()
    }

    fn seal_ahead(&mut self, slot: &mut [u8], payloads: &[Range<usize>]) {
        self.frames.seal_ahead(slot, payloads);
    }

    fn owes_head(&self) -> bool {
        let header = self.first.as_ref().is_some_and(|f| !f.header.is_empty());
        header || self.frames.owes_head()
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
