//! The first message of `auth_simple`: only a checksum protects the hello.

use core::ops::Range;

use adit_wire::{Open, Opened, ProtocolError, Step};

use super::Found;
use crate::field::{around, put, view};
use crate::frame::{FrameOpen, Opener, Pad, pack_crc};
use crate::hello::{HELLO, Hello};
use crate::noise::Noise;

/// Returns the number of bytes in front of a payload.
pub(crate) fn room() -> usize {
    HELLO + crate::frame::room_crc().head
}

/// Writes the first frame.
pub(crate) fn seal(
    hello: &Hello,
    record: &mut [u8],
    payload: Range<usize>,
    noise: &mut Noise,
) -> Result<Range<usize>, ProtocolError> {
    let data = around(record, &payload, HELLO, 0)?;
    put(record, data.start, &hello.bytes())?;
    let pad = Pad::random(noise.up_to(15));
    pack_crc(record, data, pad, noise)
}

pub(crate) fn read(plain: &mut [u8]) -> Result<Step<Found>, ProtocolError> {
    match FrameOpen(Opener::Crc).open(plain)? {
        Opened::Record { consumed, payload } => {
            let start = payload.start + HELLO;
            if start > payload.end {
                return Err(ProtocolError::Malformed("first frame: ids are missing"));
            }
            let proof = payload.start..start;
            Ok(Step::Done(Found {
                hello: Hello::read(view(plain, proof.clone())?)?,
                consumed,
                payload: start..payload.end,
                proof,
            }))
        }
        Opened::NeedMore { total } => Ok(Step::NeedMore { total }),
        Opened::End => Err(ProtocolError::Truncated("the first frame")),
    }
}
