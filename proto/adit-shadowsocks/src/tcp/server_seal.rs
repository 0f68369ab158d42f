//! The sealing codec of a server.

use core::ops::Range;
use std::sync::Arc;

use adit_crypto::TAG_LEN;
use adit_wire::{Clock, Overhead, ProtocolError, Seal};

use super::body::BodySeal;
use super::chunk::{LENGTH_LEN, check_overhead};
use super::client::seal_with_salt;
use super::{FIXED_LEN, RESPONSE};
use crate::header_writer::HeaderWriter;
use crate::salt::Salt;
use crate::{Edition, Method};

/// Seals a server's answers. The response header is sent with the first payload, never alone.
pub struct ServerSeal {
    method: Method,
    /// `None` once the first record was sealed.
    head: Option<Box<PendingResponse>>,
    body: BodySeal,
}

struct PendingResponse {
    salt: Salt,
    request_salt: Salt,
    clock: Arc<dyn Clock>,
}

impl PendingResponse {
    /// Returns the number of bytes in front of the first payload.
    fn head_len(&self, edition: Edition) -> usize {
        let salt = self.salt.len();
        match edition {
            Edition::Aead2022 => salt + FIXED_LEN + salt + TAG_LEN,
            Edition::Aead => salt + LENGTH_LEN,
            Edition::Stream | Edition::None => salt,
        }
    }

    fn seal_first(
        &self,
        edition: Edition,
        body: &mut BodySeal,
        record: &mut [u8],
        payload: Range<usize>,
    ) -> Result<Range<usize>, ProtocolError> {
        let chunks = match body {
            BodySeal::Chunks(chunks) if edition == Edition::Aead2022 => chunks,
            _ => return seal_with_salt(body, &self.salt, record, payload),
        };
        let start = payload.start.checked_sub(self.head_len(edition));
        let start = start.ok_or(ProtocolError::NoRoom("a response header"))?;
        let mut w = HeaderWriter::new(record, start..payload.start)?;
        w.put_bytes(&self.salt)?;
        w.put_bytes(&[RESPONSE])?;
        w.put_bytes(&self.clock.unix_time().0.to_be_bytes())?;
        w.put_bytes(&self.request_salt)?;
        w.put_len(payload.len())?;
        let header = start + self.salt.len();
        chunks.seal_block(record, header..payload.start - TAG_LEN)?;
        chunks.seal_block(record, payload.clone())?;
        Ok(start..payload.end + TAG_LEN)
    }
}

impl ServerSeal {
    /// Creates the codec of the connection whose request had `request_salt`; `body` is keyed with
    /// `salt`.
    pub(super) fn new(
        method: Method,
        body: BodySeal,
        salt: Salt,
        request_salt: Salt,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            method,
            body,
            head: Some(Box::new(PendingResponse {
                salt,
                request_salt,
                clock,
            })),
        }
    }

    /// Creates the codec of method `none`.
    pub(super) const fn new_raw() -> Self {
        Self {
            method: Method::None,
            head: None,
            body: BodySeal::Raw,
        }
    }
}

impl Seal for ServerSeal {
    /// The first record has the larger head.
    fn has_steady_overhead(&self) -> bool {
        true
    }

    fn overhead(&self) -> Overhead {
        let mut room = self.body.seal_overhead(self.method);
        if let Some(head) = &self.head {
            room.head = head.head_len(self.method.edition());
        }
        room
    }

    fn seal(
        &mut self,
        record: &mut [u8],
        payload: Range<usize>,
    ) -> Result<Range<usize>, ProtocolError> {
        check_overhead(self.overhead(), record, &payload)?;
        if payload.is_empty() {
            return Ok(payload);
        }
        match self.head.take() {
            Some(head) => head.seal_first(self.method.edition(), &mut self.body, record, payload),
            None => self.body.seal(record, payload),
        }
    }
}
