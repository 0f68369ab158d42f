//! `verify_simple` and `auth_simple`: `BE16 length ‖ pad ‖ data ‖ c`, where `c` makes the CRC-32 of
//! the whole frame all ones.

use core::ops::Range;

use adit_wire::{Entropy, Overhead, ProtocolError};

use super::bounds::{FRAME_LIMIT, Frame, MAX_DATA};
use super::pad::{Pad, Style};
use crate::field::{around, frame_len, get, len_16, part, put, view};

const LENGTH: usize = 2;
const SUM: usize = 4;
const WHOLE: u32 = 0xffff_ffff;

pub(crate) const fn room() -> Overhead {
    Overhead {
        head: LENGTH + 16,
        tail: SUM,
        max_payload: MAX_DATA,
    }
}

/// Writes the frame around `record[payload]`.
pub(crate) fn pack(
    record: &mut [u8],
    payload: Range<usize>,
    pad: Pad,
    chance: &mut dyn Entropy,
) -> Result<Range<usize>, ProtocolError> {
    let range = around(record, &payload, LENGTH + pad.len(), SUM)?;
    let frame = part(record, range.clone())?;
    let len = len_16(frame.len())?;
    put(frame, 0, &len.to_be_bytes())?;
    pad.write(frame, LENGTH, Style::Byte, chance)?;
    let end = frame.len() - SUM;
    let sum = WHOLE - crc32fast::hash(view(frame, 0..end)?);
    put(frame, end, &sum.to_le_bytes())?;
    Ok(range)
}

/// Opens the frame at the front.
pub(crate) fn open(plain: &[u8]) -> Result<Frame, ProtocolError> {
    let Ok(len) = get(plain, 0) else {
        return Ok(Frame::NeedMore { total: LENGTH });
    };
    let total = frame_len(u16::from_be_bytes(len), LENGTH + 1 + SUM, FRAME_LIMIT)?;
    let Some(frame) = plain.get(..total) else {
        return Ok(Frame::NeedMore { total });
    };
    if crc32fast::hash(frame) != WHOLE {
        return Err(ProtocolError::Unauthentic);
    }
    let payload = behind_pad(frame, LENGTH, SUM, Style::Byte)?;
    Ok(Frame::Plain {
        consumed: total,
        payload,
    })
}

/// Returns the range of the data in `frame`, between a padding block at `at` and `tail` bytes at
/// the end.
pub(super) fn behind_pad(
    frame: &[u8],
    at: usize,
    tail: usize,
    style: Style,
) -> Result<Range<usize>, ProtocolError> {
    let end = frame.len().saturating_sub(tail);
    let start = at + Pad::read(view(frame, at..end)?, style)?;
    if start > end {
        return Err(ProtocolError::Malformed("padding: longer than its frame"));
    }
    Ok(start..end)
}
