//! `auth_sha1` and its successors: frames with a checksum, which anyone can forge. Only the first
//! message is authenticated.

use core::ops::Range;

use adit_wire::{Entropy, Overhead, ProtocolError};

use super::bounds::{FRAME_LIMIT, MAX_DATA, MAX_NOISE, OpenedFrame};
use super::crc::data_after_pad;
use super::padding::{LengthEncoding, PaddingBlock};
use crate::field::{
    check_frame_len, get_field, length_field, put_field, range_around, range_mut, range_ref,
};

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
    const fn head_len(self) -> usize {
        match self {
            Self::V4 => 4,
            _ => 2,
        }
    }

    pub(crate) const fn pad_style(self) -> LengthEncoding {
        match self {
            Self::V1 => LengthEncoding::Byte,
            _ => LengthEncoding::Big,
        }
    }

    pub(super) const fn seal_overhead(self) -> Overhead {
        let (pad, max) = match self {
            Self::V1 => (16, 8000),
            _ => (PaddingBlock::max_len(MAX_NOISE), MAX_DATA),
        };
        Overhead {
            head: self.head_len() + pad,
            tail: SUM,
            max_payload: max,
        }
    }

    /// Writes the frame around `record[payload]`.
    pub(crate) fn pack_frame(
        self,
        record: &mut [u8],
        payload: Range<usize>,
        pad: PaddingBlock,
        rng: &mut dyn Entropy,
    ) -> Result<Range<usize>, ProtocolError> {
        let range = range_around(record, &payload, self.head_len() + pad.len(), SUM)?;
        let frame = range_mut(record, range.clone())?;
        let len = length_field(frame.len())?.to_be_bytes();
        put_field(frame, 0, &len)?;
        if self == Self::V4 {
            put_field(frame, 2, &length_checksum(len))?;
        }
        pad.write_block(frame, self.head_len(), self.pad_style(), rng)?;
        let end = frame.len() - SUM;
        let sum = simd_adler32::adler32(&range_ref(frame, 0..end)?);
        put_field(frame, end, &sum.to_le_bytes())?;
        Ok(range)
    }

    /// Opens the frame at the front.
    pub(super) fn open_frame(self, plain: &[u8]) -> Result<OpenedFrame, ProtocolError> {
        let head = self.head_len();
        let Some(fields) = plain.get(..head) else {
            return Ok(OpenedFrame::NeedMore { total: head });
        };
        let len: [u8; 2] = get_field(fields, 0)?;
        if self == Self::V4 && get_field(fields, 2)? != length_checksum(len) {
            return Err(ProtocolError::Unauthentic);
        }
        let total = check_frame_len(u16::from_be_bytes(len), head + 1 + SUM, FRAME_LIMIT)?;
        let Some(frame) = plain.get(..total) else {
            return Ok(OpenedFrame::NeedMore { total });
        };
        let end = total - SUM;
        let sum = simd_adler32::adler32(&range_ref(frame, 0..end)?);
        if get_field(frame, end)? != sum.to_le_bytes() {
            return Err(ProtocolError::Unauthentic);
        }
        let payload = data_after_pad(frame, head, SUM, self.pad_style())?;
        Ok(OpenedFrame::Plain {
            consumed: total,
            payload,
        })
    }
}

/// Returns the checksum of a length: the lower half of its CRC-32.
fn length_checksum(len: [u8; 2]) -> [u8; 2] {
    let [a, b, ..] = crc32fast::hash(&len).to_le_bytes();
    [a, b]
}
