//! `verify_simple` and `auth_simple`: `BE16 length ‖ pad ‖ data ‖ c`, where `c` makes the CRC-32 of
//! the whole frame all ones.

use core::ops::Range;

use adit_wire::{Entropy, Overhead, ProtocolError};

use super::bounds::{FRAME_LIMIT, MAX_DATA, OpenedFrame};
use super::padding::{LengthEncoding, PaddingBlock};
use crate::field::{
    check_frame_len, get_field, length_field, put_field, range_around, range_mut, range_ref,
};

const LENGTH: usize = 2;
const SUM: usize = 4;
const WHOLE: u32 = 0xffff_ffff;

pub(crate) const fn seal_overhead() -> Overhead {
    Overhead {
        head: LENGTH + 16,
        tail: SUM,
        max_payload: MAX_DATA,
    }
}

/// Writes the frame around `record[payload]`.
pub(crate) fn pack_frame(
    record: &mut [u8],
    payload: Range<usize>,
    pad: PaddingBlock,
    rng: &mut dyn Entropy,
) -> Result<Range<usize>, ProtocolError> {
    let range = range_around(record, &payload, LENGTH + pad.len(), SUM)?;
    let frame = range_mut(record, range.clone())?;
    let len = length_field(frame.len())?;
    put_field(frame, 0, &len.to_be_bytes())?;
    pad.write_block(frame, LENGTH, LengthEncoding::Byte, rng)?;
    let end = frame.len() - SUM;
    let sum = WHOLE - crc32fast::hash(range_ref(frame, 0..end)?);
    put_field(frame, end, &sum.to_le_bytes())?;
    Ok(range)
}

/// Opens the frame at the front.
pub(crate) fn open_frame(plain: &[u8]) -> Result<OpenedFrame, ProtocolError> {
    let Ok(len) = get_field(plain, 0) else {
        return Ok(OpenedFrame::NeedMore { total: LENGTH });
    };
    let total = check_frame_len(u16::from_be_bytes(len), LENGTH + 1 + SUM, FRAME_LIMIT)?;
    let Some(frame) = plain.get(..total) else {
        return Ok(OpenedFrame::NeedMore { total });
    };
    if crc32fast::hash(frame) != WHOLE {
        return Err(ProtocolError::Unauthentic);
    }
    let payload = data_after_pad(frame, LENGTH, SUM, LengthEncoding::Byte)?;
    Ok(OpenedFrame::Plain {
        consumed: total,
        payload,
    })
}

/// Returns the range of the data in `frame`, between a padding block at `at` and `tail` bytes at
/// the end.
pub(super) fn data_after_pad(
    frame: &[u8],
    at: usize,
    tail: usize,
    style: LengthEncoding,
) -> Result<Range<usize>, ProtocolError> {
    let end = frame.len().saturating_sub(tail);
    let start = at + PaddingBlock::read_len(range_ref(frame, at..end)?, style)?;
    if start > end {
        return Err(ProtocolError::Malformed("padding: longer than its frame"));
    }
    Ok(start..end)
}
