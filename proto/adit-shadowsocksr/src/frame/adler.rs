//! `auth_sha1` and its successors: frames with a checksum, which anyone can forge. Only the first
//! message is authenticated.

use core::ops::Range;

use adit_wire::{Broken, Entropy, Room};

use super::bounds::{FRAME_LIMIT, Frame, MAX_DATA, MAX_NOISE};
use super::crc::behind_pad;
use super::pad::{Pad, Style};
use crate::field::{around, frame_len, get, len_16, part, put, view};

/// The versions of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AdlerKind {
    V1,
    V2,
    V4,
}

const SUM: usize = 4;

impl AdlerKind {
    /// Returns the length of the head: the length field and, in V4, its checksum.
    const fn head(self) -> usize {
        match self {
            Self::V4 => 4,
            _ => 2,
        }
    }

    pub(crate) const fn style(self) -> Style {
        match self {
            Self::V1 => Style::Byte,
            _ => Style::Big,
        }
    }

    pub(super) const fn room(self) -> Room {
        let (pad, max) = match self {
            Self::V1 => (16, 8000),
            _ => (Pad::longest(MAX_NOISE), MAX_DATA),
        };
        Room {
            head: self.head() + pad,
            tail: SUM,
            max,
        }
    }

    /// Writes the frame around `record[payload]`.
    pub(crate) fn pack(
        self,
        record: &mut [u8],
        payload: Range<usize>,
        pad: Pad,
        chance: &mut dyn Entropy,
    ) -> Result<Range<usize>, Broken> {
        let range = around(record, &payload, self.head() + pad.len(), SUM)?;
        let frame = part(record, range.clone())?;
        let len = len_16(frame.len())?.to_be_bytes();
        put(frame, 0, &len)?;
        if self == Self::V4 {
            put(frame, 2, &check(len))?;
        }
        pad.write(frame, self.head(), self.style(), chance)?;
        let end = frame.len() - SUM;
        let sum = simd_adler32::adler32(&view(frame, 0..end)?);
        put(frame, end, &sum.to_le_bytes())?;
        Ok(range)
    }

    /// Opens the frame at the front.
    pub(super) fn open(self, plain: &[u8]) -> Result<Frame, Broken> {
        let head = self.head();
        let Some(fields) = plain.get(..head) else {
            return Ok(Frame::NeedMore { total: head });
        };
        let len: [u8; 2] = get(fields, 0)?;
        if self == Self::V4 && get(fields, 2)? != check(len) {
            return Err(Broken::Unauthentic);
        }
        let total = frame_len(u16::from_be_bytes(len), head + 1 + SUM, FRAME_LIMIT)?;
        let Some(frame) = plain.get(..total) else {
            return Ok(Frame::NeedMore { total });
        };
        let end = total - SUM;
        let sum = simd_adler32::adler32(&view(frame, 0..end)?);
        if get(frame, end)? != sum.to_le_bytes() {
            return Err(Broken::Unauthentic);
        }
        let payload = behind_pad(frame, head, SUM, self.style())?;
        Ok(Frame::Plain {
            consumed: total,
            payload,
        })
    }
}

/// Returns the checksum of a length: the lower half of its CRC-32.
fn check(len: [u8; 2]) -> [u8; 2] {
    let [a, b, ..] = crc32fast::hash(&len).to_le_bytes();
    [a, b]
}
