//! The sealing codec of a server.

use core::ops::Range;
use std::sync::Arc;

use adit_crypto::TAG_LEN;
use adit_wire::{Broken, Clock, Room, Seal};

use super::body::BodySeal;
use super::chunk::{LENGTH_LEN, check_room};
use super::client::seal_behind;
use super::{FIXED_LEN, RESPONSE};
use crate::salt::Salt;
use crate::writer::Writer;
use crate::{Edition, Method};

/// Seals a server's answers. The response header is sent with the first payload, never alone.
pub struct ServerSeal {
    method: Method,
    /// `None` once the first record was sealed.
    head: Option<Box<Head>>,
    body: BodySeal,
}

struct Head {
    salt: Salt,
    request_salt: Salt,
    clock: Arc<dyn Clock>,
}

impl Head {
    /// Returns the number of bytes in front of the first payload.
    fn len(&self, edition: Edition) -> usize {
        let salt = self.salt.len();
        match edition {
            Edition::Aead2022 => salt + FIXED_LEN + salt + TAG_LEN,
            Edition::Aead => salt + LENGTH_LEN,
            Edition::Stream | Edition::None => salt,
        }
    }

    fn seal(
        &self,
        edition: Edition,
        body: &mut BodySeal,
        record: &mut [u8],
        payload: Range<usize>,
    ) -> Result<Range<usize>, Broken> {
        let chunks = match body {
            BodySeal::Chunks(chunks) if edition == Edition::Aead2022 => chunks,
            _ => return seal_behind(body, &self.salt, record, payload),
        };
        let start = payload.start.checked_sub(self.len(edition));
        let start = start.ok_or(Broken::NoRoom("a response header"))?;
        let mut w = Writer::new(record, start..payload.start)?;
        w.put(&self.salt)?;
        w.put(&[RESPONSE])?;
        w.put(&self.clock.unix().0.to_be_bytes())?;
        w.put(&self.request_salt)?;
        w.put_len(payload.len())?;
        let header = start + self.salt.len();
        chunks.block(record, header..payload.start - TAG_LEN)?;
        chunks.block(record, payload.clone())?;
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
            head: Some(Box::new(Head {
                salt,
                request_salt,
                clock,
            })),
        }
    }

    /// Creates the codec of method `none`.
    pub(super) const fn raw() -> Self {
        Self {
            method: Method::None,
            head: None,
            body: BodySeal::Raw,
        }
    }
}

impl Seal for ServerSeal {
    /// The first record has the larger head.
    fn steady(&self) -> bool {
        true
    }

    fn room(&self) -> Room {
        let mut room = self.body.room(self.method);
        if let Some(head) = &self.head {
            room.head = head.len(self.method.edition());
        }
        room
    }

    fn seal(&mut self, record: &mut [u8], payload: Range<usize>) -> Result<Range<usize>, Broken> {
        check_room(self.room(), record, &payload)?;
        if payload.is_empty() {
            return Ok(payload);
        }
        match self.head.take() {
            Some(head) => head.seal(self.method.edition(), &mut self.body, record, payload),
            None => self.body.seal(record, payload),
        }
    }
}
