//! The first message of `auth_simple`: only a checksum protects the hello.

use core::ops::Range;

use adit_wire::{HandshakeProgress, Open, Opened, ProtocolError};

use super::VerifiedHead;
use crate::field::{put_field, range_around, range_ref};
use crate::frame::{FrameOpen, FrameOpener, PaddingBlock, pack_crc};
use crate::hello::{HELLO_LEN, Hello};
use crate::noise::NoiseRng;

/// Returns the number of bytes in front of a payload.
pub(crate) fn head_len() -> usize {
    HELLO_LEN + crate::frame::room_crc().head
}

/// Writes the first frame.
pub(crate) fn seal_message(
    hello: &Hello,
    record: &mut [u8],
    payload: Range<usize>,
    noise: &mut NoiseRng,
) -> Result<Range<usize>, ProtocolError> {
    let data = range_around(record, &payload, HELLO_LEN, 0)?;
    put_field(record, data.start, &hello.to_bytes())?;
    let pad = PaddingBlock::with_random(noise.draw_up_to(15));
    pack_crc(record, data, pad, noise)
}

pub(crate) fn read_message(
    plain: &mut [u8],
) -> Result<HandshakeProgress<VerifiedHead>, ProtocolError> {
    match FrameOpen(FrameOpener::Crc).open(plain)? {
        Opened::Record { consumed, payload } => {
            let start = payload.start + HELLO_LEN;
            if start > payload.end {
                return Err(ProtocolError::Malformed("first frame: ids are missing"));
            }
            let proof = payload.start..start;
            Ok(HandshakeProgress::Done(VerifiedHead {
                hello: Hello::from_bytes(range_ref(plain, proof.clone())?)?,
                consumed,
                payload: start..payload.end,
                proof,
            }))
        }
        Opened::NeedMore { total } => Ok(HandshakeProgress::NeedMore { total }),
        Opened::End => Err(ProtocolError::Truncated("the first frame")),
    }
}
