//! `auth_chain_*`: RC4, a masked length, padding with a length that both sides compute, and a tag on
//! which the next frame depends.

use core::ops::Range;
use std::sync::Arc;

use adit_crypto::{Rc4, ct_eq, hmac_md5};
use adit_wire::{Broken, Entropy, Room};

use super::bounds::Frame;
use super::tagged::NumberedKey;
use crate::chain::{Layout, PAD_MAX, Sizes};
use crate::field::{around, get, len_16, part, put, view};

const LENGTH: usize = 2;
const TAG: usize = 2;

/// Upper bound of the length of data and padding together, exclusive.
const LIMIT: usize = 4096;

/// Room for a second frame of one byte after one of 1,439 bytes: its fields, and the padding of the
/// first.
const SPLIT: usize = LENGTH + TAG + 30;

const MSS: usize = 2;

/// One direction, sealing or opening.
pub(crate) struct Chained {
    sizes: Arc<Sizes>,
    key: NumberedKey,
    rc4: Rc4,
    /// The tag of the previous frame.
    hash: [u8; 16],
    mss: Mss,
}

/// The segment size in front of a server's first data.
enum Mss {
    None,
    Send(u16),
    Expect,
    Known(u16),
}

impl Chained {
    /// Creates the codec of the client-to-server direction.
    pub(crate) fn new(sizes: Arc<Sizes>, user_key: &[u8], rc4: Rc4, hash: [u8; 16]) -> Self {
        Self {
            sizes,
            key: NumberedKey::new(user_key),
            rc4,
            hash,
            mss: Mss::None,
        }
    }

    /// Makes it a server's sealing side: the first frame reports `mss`.
    pub(crate) fn telling(mut self, mss: u16) -> Self {
        self.mss = Mss::Send(mss);
        self
    }

    /// Makes it a client's opening side.
    pub(crate) fn told(mut self) -> Self {
        self.mss = Mss::Expect;
        self
    }

    pub(super) const fn mss(&self) -> Option<u16> {
        match self.mss {
            Mss::Known(mss) => Some(mss),
            _ => None,
        }
    }

    pub(super) const fn room(&self) -> Room {
        let mss = if matches!(self.mss, Mss::Send(_)) {
            MSS
        } else {
            0
        };
        // No room for padding in front: padded data is short, and is moved to its place.
        Room {
            head: LENGTH + mss,
            tail: TAG + PAD_MAX + SPLIT,
            max: LIMIT - 1 - mss,
        }
    }

    /// Seals `record[payload]` in one frame, or in two if implementations disagree about frames of
    /// its size.
    pub(crate) fn seal(
        &mut self,
        record: &mut [u8],
        payload: Range<usize>,
        chance: &mut dyn Entropy,
    ) -> Result<Range<usize>, Broken> {
        let mut payload = payload;
        if let Mss::Send(mss) = self.mss {
            payload.start = around(record, &payload, MSS, 0)?.start;
            put(record, payload.start, &mss.to_le_bytes())?;
            self.mss = Mss::None;
        }
        if !self.sizes.avoids(payload.len()) {
            return self.pack(record, payload, chance);
        }
        let last = payload.end - 1;
        let byte: [u8; 1] = get(record, last)?;
        let first = self.pack(record, payload.start..last, chance)?;
        let at = first.end + LENGTH;
        put(record, at, &byte)?;
        let second = self.pack(record, at..at + 1, chance)?;
        Ok(first.start..second.end)
    }

    /// Writes one frame. Its data at `record[payload]` moves after the padding in front.
    pub(crate) fn pack(
        &mut self,
        record: &mut [u8],
        payload: Range<usize>,
        chance: &mut dyn Entropy,
    ) -> Result<Range<usize>, Broken> {
        let len = payload.len();
        let Layout { pad, start } = self.sizes.layout(&self.hash, len);
        if len + pad >= LIMIT {
            return Err(Broken::TooLong {
                what: "a frame's data",
                limit: LIMIT - 1,
            });
        }
        let range = around(record, &payload, LENGTH, pad + TAG)?;
        let frame = part(record, range.clone())?;
        self.rc4.apply(part(frame, LENGTH..LENGTH + len)?);
        let field = len_16(len)?.to_le_bytes();
        let end = frame.len() - TAG;
        if pad > 0 {
            let data = LENGTH + start;
            frame.copy_within(LENGTH..LENGTH + len, data);
            chance.fill(part(frame, LENGTH..data)?);
            chance.fill(part(frame, data + len..end)?);
        }
        put(frame, 0, &masked(field, &self.hash))?;
        self.hash = hmac_md5(self.key.get(), &[view(frame, 0..end)?]);
        let [a, b, ..] = self.hash;
        put(frame, end, &[a, b])?;
        self.key.advance();
        Ok(range)
    }

    /// Opens the frame at the front.
    pub(super) fn open(&mut self, plain: &mut [u8]) -> Result<Frame, Broken> {
        let Ok(field) = get(plain, 0) else {
            return Ok(Frame::NeedMore { total: LENGTH });
        };
        // A wrong key results in an arbitrary length, which is checked before waiting for more
        // bytes.
        let len = usize::from(u16::from_le_bytes(masked(field, &self.hash)));
        let too_long = Broken::TooLong {
            what: "a frame's data",
            limit: LIMIT - 1,
        };
        if len >= LIMIT {
            return Err(too_long);
        }
        let Layout { pad, start } = self.sizes.layout(&self.hash, len);
        if len + pad >= LIMIT {
            return Err(too_long);
        }
        let end = LENGTH + len + pad;
        let total = end + TAG;
        if plain.len() < total {
            return Ok(Frame::NeedMore { total });
        }
        let hash = hmac_md5(self.key.get(), &[view(plain, 0..end)?]);
        let [a, b, ..] = hash;
        if !ct_eq(&[a, b], &get::<TAG>(plain, end)?) {
            return Err(Broken::Unauthentic);
        }
        let mut payload = LENGTH + start..LENGTH + start + len;
        self.rc4.apply(part(plain, payload.clone())?);
        self.hash = hash;
        self.key.advance();
        if matches!(self.mss, Mss::Expect) {
            if len < MSS {
                return Err(Broken::Malformed("first frame: no segment size"));
            }
            self.mss = Mss::Known(u16::from_le_bytes(get(plain, payload.start)?));
            payload.start += MSS;
        }
        Ok(Frame::Plain {
            consumed: total,
            payload,
        })
    }
}

fn masked([a, b]: [u8; 2], hash: &[u8; 16]) -> [u8; 2] {
    let [.., x, y] = hash;
    [a ^ x, b ^ y]
}
