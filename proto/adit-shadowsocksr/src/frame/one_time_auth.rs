//! `verify_sha1`: client-to-server frames have an HMAC-SHA1 each; the other direction has no
//! authentication.
//!
//! The first message is the target header with a flag in its first byte, followed by the header's
//! HMAC.

use core::ops::Range;

use adit_crypto::{Secret, ct_eq, hmac_sha1};
use adit_wire::{HandshakeProgress, Overhead, ProtocolError};

use super::bounds::{MAX_DATA, OpenedFrame};
use crate::field::{get_field, length_field, put_field, range_around, range_mut, range_ref};

/// The flag in the address type that announces this protocol.
const FLAG: u8 = 0x10;

/// Length of a truncated HMAC.
pub(crate) const TAG: usize = 10;

const HEAD: usize = 2 + TAG;

/// The HMAC key: the IV of the request, followed by a frame's number, which starts at 0.
struct NumberedIv {
    key: Vec<u8>,
    number: u32,
}

impl NumberedIv {
    fn new(iv: &[u8]) -> Self {
        Self {
            key: [iv, &[0; 4]].concat(),
            number: 0,
        }
    }

    fn data_tag(&self, data: &[u8]) -> [u8; TAG] {
        truncate_tag(hmac_sha1(&self.key, &[data]))
    }

    fn advance_number(&mut self) {
        self.number = self.number.wrapping_add(1);
        if let Some(place) = self.key.last_chunk_mut() {
            *place = self.number.to_be_bytes();
        }
    }
}

/// A client's sealing side.
pub(crate) struct OneTimeSeal {
    /// `iv ‖ key`; `None` once the first message was sealed.
    head: Option<Secret<Vec<u8>>>,
    frames: NumberedIv,
}

impl OneTimeSeal {
    pub(crate) fn new(iv: &[u8], iv_key: Secret<Vec<u8>>) -> Self {
        Self {
            head: Some(iv_key),
            frames: NumberedIv::new(iv),
        }
    }

    pub(super) const fn seal_overhead(&self) -> Overhead {
        let head = if self.head.is_some() {
            TAG + HEAD
        } else {
            HEAD
        };
        Overhead {
            head,
            tail: 0,
            max_payload: MAX_DATA,
        }
    }

    pub(crate) const fn owes_head(&self) -> bool {
        self.head.is_some()
    }

    pub(super) fn seal_data(
        &mut self,
        record: &mut [u8],
        payload: Range<usize>,
    ) -> Result<Range<usize>, ProtocolError> {
        let Some(key) = self.head.take() else {
            return self.seal_frame(record, payload);
        };
        let target = range_ref(record, payload.clone())?;
        let size = head_size(target).filter(|size| *size <= target.len());
        let size = size.ok_or(ProtocolError::Malformed("target header"))?;
        let body = payload.start + size..payload.end;
        // The header moves to the left to make room for its HMAC and the first frame's fields.
        let shift = if body.is_empty() { TAG } else { TAG + HEAD };
        let start = range_around(record, &payload, shift, 0)?.start;
        record.copy_within(payload.start..body.start, start);
        if let Some(first) = record.get_mut(start) {
            *first |= FLAG;
        }
        let header = range_ref(record, start..start + size)?;
        let tag: [u8; TAG] = truncate_tag(hmac_sha1(key.expose(), &[header]));
        put_field(record, start + size, &tag)?;
        if !body.is_empty() {
            self.seal_frame(record, body)?;
        }
        Ok(start..payload.end)
    }

    fn seal_frame(
        &mut self,
        record: &mut [u8],
        payload: Range<usize>,
    ) -> Result<Range<usize>, ProtocolError> {
        let range = range_around(record, &payload, HEAD, 0)?;
        let frame = range_mut(record, range.clone())?;
        let len = length_field(payload.len())?;
        let tag = self.frames.data_tag(range_ref(frame, HEAD..frame.len())?);
        put_field(frame, 0, &len.to_be_bytes())?;
        put_field(frame, 2, &tag)?;
        self.frames.advance_number();
        Ok(range)
    }
}

/// A server's opening side, after the first message.
pub(crate) struct OneTimeOpen(NumberedIv);

impl OneTimeOpen {
    pub(crate) fn new(iv: &[u8]) -> Self {
        Self(NumberedIv::new(iv))
    }

    pub(super) fn open_frame(&mut self, plain: &[u8]) -> Result<OpenedFrame, ProtocolError> {
        let Ok(len) = get_field(plain, 0) else {
            return Ok(OpenedFrame::NeedMore { total: HEAD });
        };
        let total = HEAD + usize::from(u16::from_be_bytes(len));
        let Some(data) = plain.get(HEAD..total) else {
            return Ok(OpenedFrame::NeedMore { total });
        };
        if !ct_eq(&self.0.data_tag(data), &get_field::<TAG>(plain, 2)?) {
            return Err(ProtocolError::Unauthentic);
        }
        self.0.advance_number();
        Ok(OpenedFrame::Plain {
            consumed: total,
            payload: HEAD..total,
        })
    }
}

/// Returns the size of the target header at the front of `bytes`; `None` if it is incomplete or
/// invalid.
fn head_size(bytes: &[u8]) -> Option<usize> {
    match bytes {
        [kind, len, ..] => match kind & 7 {
            1 => Some(7),
            3 => Some(4 + usize::from(*len)),
            4 => Some(19),
            _ => None,
        },
        _ => None,
    }
}

/// Checks a client's first message and returns the range of its target header, with the flag
/// cleared. The message ends [`TAG`] bytes after it.
pub(crate) fn open_head(
    plain: &mut [u8],
    iv_key: &[u8],
) -> Result<HandshakeProgress<Range<usize>>, ProtocolError> {
    let need = |total| Ok(HandshakeProgress::NeedMore { total });
    let Some(first) = plain.first() else {
        return need(2);
    };
    if first & FLAG == 0 {
        return Err(ProtocolError::Unauthentic);
    }
    if plain.len() < 2 {
        return need(2);
    }
    let size = head_size(plain).ok_or(ProtocolError::Malformed("target header"))?;
    if plain.len() < size + TAG {
        return need(size + TAG);
    }
    let tag: [u8; TAG] = truncate_tag(hmac_sha1(iv_key, &[range_ref(plain, 0..size)?]));
    if !ct_eq(&tag, &get_field::<TAG>(plain, size)?) {
        return Err(ProtocolError::Unauthentic);
    }
    if let Some(first) = plain.first_mut() {
        *first &= !FLAG;
    }
    Ok(HandshakeProgress::Done(0..size))
}

fn truncate_tag([a, b, c, d, e, f, g, h, i, j, ..]: [u8; 20]) -> [u8; TAG] {
    [a, b, c, d, e, f, g, h, i, j]
}
