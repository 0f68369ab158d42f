//! `auth_aes128_*`: frames whose length and whole have a MAC each, under the user's key and the
//! frame's number.

use core::ops::Range;

use adit_crypto::{Secret, ct_eq};
use adit_wire::{Broken, Entropy, Room};

use super::crc::behind_pad;
use super::{FRAME_LIMIT, Frame, MAX_DATA, MAX_NOISE, Pad, Style};
use crate::field::{around, frame_len, get, len_16, part, put, view};
use crate::mac::{Mac, MacKind};

const HEAD: usize = 4;
const TAG: usize = 4;
pub(crate) const STYLE: Style = Style::Little;

/// One direction, sealing or opening.
pub(crate) struct Tagged {
    kind: MacKind,
    key: NumberedKey,
    /// The length of the frame at the front, once its MAC was checked.
    waiting: Option<usize>,
}

impl Tagged {
    pub(super) const ROOM: Room = Room {
        head: HEAD + Pad::longest(MAX_NOISE),
        tail: TAG,
        max: MAX_DATA,
    };

    pub(crate) fn new(kind: MacKind, user_key: &[u8]) -> Self {
        Self {
            kind,
            key: NumberedKey::new(user_key),
            waiting: None,
        }
    }

    /// Writes the frame around `record[payload]`.
    pub(crate) fn pack(
        &mut self,
        record: &mut [u8],
        payload: Range<usize>,
        pad: Pad,
        chance: &mut dyn Entropy,
    ) -> Result<Range<usize>, Broken> {
        let range = around(record, &payload, HEAD + pad.len(), TAG)?;
        let frame = part(record, range.clone())?;
        let len = len_16(frame.len())?.to_le_bytes();
        pad.write(frame, HEAD, STYLE, chance)?;
        let mac = Mac::new(self.kind, self.key.get());
        put(frame, 0, &len)?;
        put(frame, 2, &mac.tag::<2>(&len))?;
        let end = frame.len() - TAG;
        let tag = mac.tag::<TAG>(view(frame, 0..end)?);
        put(frame, end, &tag)?;
        self.key.advance();
        Ok(range)
    }

    /// Opens the frame at the front.
    pub(super) fn open(&mut self, plain: &[u8]) -> Result<Frame, Broken> {
        let Some(fields) = plain.get(..HEAD) else {
            return Ok(Frame::NeedMore { total: HEAD });
        };
        let mac = Mac::new(self.kind, self.key.get());
        let total = if let Some(total) = self.waiting {
            total
        } else {
            let len: [u8; 2] = get(fields, 0)?;
            if !ct_eq(&mac.tag::<2>(&len), &get::<2>(fields, 2)?) {
                return Err(Broken::Unauthentic);
            }
            let total = frame_len(u16::from_le_bytes(len), HEAD + 1 + TAG, FRAME_LIMIT)?;
            self.waiting = Some(total);
            total
        };
        let Some(frame) = plain.get(..total) else {
            return Ok(Frame::NeedMore { total });
        };
        let end = total - TAG;
        let tag = mac.tag::<TAG>(view(frame, 0..end)?);
        if !ct_eq(&tag, &get::<TAG>(frame, end)?) {
            return Err(Broken::Unauthentic);
        }
        let payload = behind_pad(frame, HEAD, TAG, STYLE)?;
        self.waiting = None;
        self.key.advance();
        Ok(Frame::Plain {
            consumed: total,
            payload,
        })
    }
}

/// A user's key with the number of a frame behind it, from 1 on.
pub(super) struct NumberedKey {
    bytes: Secret<Vec<u8>>,
    number: u32,
}

impl NumberedKey {
    pub(super) fn new(user_key: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(user_key.len() + 4);
        bytes.extend_from_slice(user_key);
        bytes.extend_from_slice(&1u32.to_le_bytes());
        Self {
            bytes: Secret::new(bytes),
            number: 1,
        }
    }

    pub(super) fn get(&self) -> &[u8] {
        self.bytes.expose()
    }

    /// The numbers begin again after 2³² frames, as peers' do.
    pub(super) fn advance(&mut self) {
        self.number = self.number.wrapping_add(1);
        let number = self.number.to_le_bytes();
        if let Some(place) = self.bytes.expose_mut().last_chunk_mut() {
            *place = number;
        }
    }
}
