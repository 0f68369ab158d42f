//! `auth_chain_*`: RC4, a masked length, padding with a length that both sides compute, and a tag on
//! which the next frame depends.

use core::ops::Range;
use std::sync::Arc;

use adit_crypto::{Rc4, ct_eq, hmac_md5};
use adit_wire::{Entropy, Overhead, ProtocolError};

use super::bounds::OpenedFrame;
use super::tagged_frame::NumberedKey;
use crate::chain_padding::{FrameLayout, PAD_MAX, PaddingSizes};
use crate::field::{get_field, length_field, put_field, range_around, range_mut, range_ref};

const LENGTH: usize = 2;
const TAG: usize = 2;

/// Upper bound of the length of data and padding together, exclusive.
const LIMIT: usize = 4096;

/// Room for a second frame of one byte after one of 1,439 bytes: its fields, and the padding of the
/// first.
const SPLIT_ROOM: usize = LENGTH + TAG + 30;

const MSS: usize = 2;

/// One direction, sealing or opening.
pub(crate) struct ChainCodec {
    sizes: Arc<PaddingSizes>,
    key: NumberedKey,
    rc4: Rc4,
    /// The tag of the previous frame.
    hash: [u8; 16],
    mss: SegmentSize,
}

/// The segment size in front of a server's first data.
enum SegmentSize {
    None,
    Send(u16),
    Expect,
    Known(u16),
}

impl ChainCodec {
    /// Creates the codec of the client-to-server direction.
    pub(crate) fn new(sizes: Arc<PaddingSizes>, user_key: &[u8], rc4: Rc4, hash: [u8; 16]) -> Self {
        Self {
            sizes,
            key: NumberedKey::new(user_key),
            rc4,
            hash,
            mss: SegmentSize::None,
        }
    }

    /// Makes it a server's sealing side: the first frame reports `mss`.
    pub(crate) fn reporting_mss(mut self, mss: u16) -> Self {
        self.mss = SegmentSize::Send(mss);
        self
    }

    /// Makes it a client's opening side.
    pub(crate) fn expecting_mss(mut self) -> Self {
        self.mss = SegmentSize::Expect;
        self
    }

    pub(super) const fn segment_size(&self) -> Option<u16> {
        match self.mss {
            SegmentSize::Known(mss) => Some(mss),
            _ => None,
        }
    }

    pub(super) const fn seal_overhead(&self) -> Overhead {
        let mss = if matches!(self.mss, SegmentSize::Send(_)) {
            MSS
        } else {
            0
        };
        // No room for padding in front: padded data is short, and is moved to its place.
        Overhead {
            head: LENGTH + mss,
            tail: TAG + PAD_MAX + SPLIT_ROOM,
            max_payload: LIMIT - 1 - mss,
        }
    }

    /// Seals `record[payload]` in one frame, or in two if implementations disagree about frames of
    /// its size.
    pub(crate) fn seal_data(
        &mut self,
        record: &mut [u8],
        payload: Range<usize>,
        rng: &mut dyn Entropy,
    ) -> Result<Range<usize>, ProtocolError> {
        let mut payload = payload;
        if let SegmentSize::Send(mss) = self.mss {
            payload.start = range_around(record, &payload, MSS, 0)?.start;
            put_field(record, payload.start, &mss.to_le_bytes())?;
            self.mss = SegmentSize::None;
        }
        if !self.sizes.must_split(payload.len()) {
            return self.pack_frame(record, payload, rng);
        }
        let last = payload.end - 1;
        let byte: [u8; 1] = get_field(record, last)?;
        let first = self.pack_frame(record, payload.start..last, rng)?;
        let at = first.end + LENGTH;
        put_field(record, at, &byte)?;
        let second = self.pack_frame(record, at..at + 1, rng)?;
        Ok(first.start..second.end)
    }

    /// Writes one frame. Its data at `record[payload]` moves after the padding in front.
    pub(crate) fn pack_frame(
        &mut self,
        record: &mut [u8],
        payload: Range<usize>,
        rng: &mut dyn Entropy,
    ) -> Result<Range<usize>, ProtocolError> {
        let len = payload.len();
        let FrameLayout { pad, start } = self.sizes.layout(&self.hash, len);
        if len + pad >= LIMIT {
            return Err(ProtocolError::TooLong {
                what: "a frame's data",
                limit: LIMIT - 1,
            });
        }
        let range = range_around(record, &payload, LENGTH, pad + TAG)?;
        let frame = range_mut(record, range.clone())?;
        self.rc4.apply(range_mut(frame, LENGTH..LENGTH + len)?);
        let field = length_field(len)?.to_le_bytes();
        let end = frame.len() - TAG;
        if pad > 0 {
            let data = LENGTH + start;
            frame.copy_within(LENGTH..LENGTH + len, data);
            rng.fill(range_mut(frame, LENGTH..data)?);
            rng.fill(range_mut(frame, data + len..end)?);
        }
        put_field(frame, 0, &mask_length(field, &self.hash))?;
        self.hash = hmac_md5(self.key.as_bytes(), &[range_ref(frame, 0..end)?]);
        let [a, b, ..] = self.hash;
        put_field(frame, end, &[a, b])?;
        self.key.advance_number();
        Ok(range)
    }

    /// Opens the frame at the front.
    pub(super) fn open_frame(&mut self, plain: &mut [u8]) -> Result<OpenedFrame, ProtocolError> {
        let Ok(field) = get_field(plain, 0) else {
            return Ok(OpenedFrame::NeedMore { total: LENGTH });
        };
        // A wrong key results in an arbitrary length, which is checked before waiting for more
        // bytes.
        let len = usize::from(u16::from_le_bytes(mask_length(field, &self.hash)));
        let too_long = ProtocolError::TooLong {
            what: "a frame's data",
            limit: LIMIT - 1,
        };
        if len >= LIMIT {
            return Err(too_long);
        }
        let FrameLayout { pad, start } = self.sizes.layout(&self.hash, len);
        if len + pad >= LIMIT {
            return Err(too_long);
        }
        let end = LENGTH + len + pad;
        let total = end + TAG;
        if plain.len() < total {
            return Ok(OpenedFrame::NeedMore { total });
        }
        let hash = hmac_md5(self.key.as_bytes(), &[range_ref(plain, 0..end)?]);
        let [a, b, ..] = hash;
        if !ct_eq(&[a, b], &get_field::<TAG>(plain, end)?) {
            return Err(ProtocolError::Unauthentic);
        }
        let mut payload = LENGTH + start..LENGTH + start + len;
        self.rc4.apply(range_mut(plain, payload.clone())?);
        self.hash = hash;
        self.key.advance_number();
        if matches!(self.mss, SegmentSize::Expect) {
            if len < MSS {
                return Err(ProtocolError::Malformed("first frame: no segment size"));
            }
            self.mss = SegmentSize::Known(u16::from_le_bytes(get_field(plain, payload.start)?));
            payload.start += MSS;
        }
        Ok(OpenedFrame::Plain {
            consumed: total,
            payload,
        })
    }
}

fn mask_length([a, b]: [u8; 2], hash: &[u8; 16]) -> [u8; 2] {
    let [.., x, y] = hash;
    [a ^ x, b ^ y]
}
