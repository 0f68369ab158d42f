//! The first message of `auth_sha1`, `auth_sha1_v2` and `auth_sha1_v4`.

use core::ops::Range;

use adit_crypto::{ct_eq, hmac_sha1};
use adit_wire::{Entropy, ProtocolError, Step};

use super::{FORGED, Found};
use crate::field::{around, frame_len, get, len_16, part, put, view};
use crate::frame::{AdlerKind, Pad};
use crate::hello::{HELLO, Hello};
use crate::noise::Noise;

/// Length of checksum and length field, in either order.
const HEAD: usize = 6;

const TAG: usize = 10;

/// Number of bytes from which a server can recognize a client of this protocol.
const ENOUGH: usize = 7;

/// Maximum length of the first message in V1 and V2.
const MAX_OLD: usize = 2048;

/// Bytes in front of a payload, and after it.
pub(crate) const ROOM: (usize, usize) = (HEAD + Pad::longest(511) + HELLO, TAG);

/// Reads and writes the first messages of one connection.
pub(crate) struct Sha1Head<'a> {
    pub(crate) kind: AdlerKind,
    pub(crate) name: &'static str,
    /// The port's key.
    pub(crate) key: &'a [u8],
    pub(crate) iv: &'a [u8],
}

impl Sha1Head<'_> {
    /// Draws the padding of a first message: none for bulk data.
    pub(crate) fn pad(&self, len: usize, noise: &mut Noise) -> Pad {
        Pad::random(match (self.kind, len + HELLO) {
            (AdlerKind::V1, _) => noise.up_to(126),
            (_, 1201..) => 0,
            (_, 401..) => noise.up_to(255),
            _ => noise.up_to(511),
        })
    }

    /// Writes the message around `record[payload]`.
    pub(crate) fn pack(
        &self,
        hello: &Hello,
        record: &mut [u8],
        payload: Range<usize>,
        pad: Pad,
        chance: &mut dyn Entropy,
    ) -> Result<Range<usize>, ProtocolError> {
        let range = around(record, &payload, HEAD + pad.len() + HELLO, TAG)?;
        let message = part(record, range.clone())?;
        let len = len_16(message.len())?.to_be_bytes();
        let sum = self.sum(len);
        let (first, second) = if self.kind == AdlerKind::V4 {
            (0, 2)
        } else {
            (4, 0)
        };
        put(message, first, &len)?;
        put(message, second, &sum)?;
        pad.write(message, HEAD, self.kind.style(), chance)?;
        let fields = if self.kind == AdlerKind::V2 {
            hello.bytes_v2()
        } else {
            hello.bytes()
        };
        put(message, HEAD + pad.len(), &fields)?;
        let end = message.len() - TAG;
        let tag = self.tag(view(message, 0..end)?);
        put(message, end, &tag)?;
        Ok(range)
    }

    pub(crate) fn read(&self, plain: &[u8]) -> Result<Step<Found>, ProtocolError> {
        if plain.len() < ENOUGH {
            return Ok(Step::NeedMore { total: ENOUGH });
        }
        let (len, sum): ([u8; 2], [u8; 4]) = if self.kind == AdlerKind::V4 {
            (get(plain, 0)?, get(plain, 2)?)
        } else {
            (get(plain, 4)?, get(plain, 0)?)
        };
        if !ct_eq(&sum, &self.sum(len)) {
            return Err(FORGED);
        }
        let limit = if self.kind == AdlerKind::V4 {
            usize::from(u16::MAX) + 1
        } else {
            MAX_OLD + 1
        };
        let low = HEAD + 1 + HELLO + TAG;
        let total = frame_len(u16::from_be_bytes(len), low, limit)?;
        let Some(message) = plain.get(..total) else {
            return Ok(Step::NeedMore { total });
        };
        let end = total - TAG;
        if !ct_eq(
            &self.tag(view(message, 0..end)?),
            view(message, end..total)?,
        ) {
            return Err(FORGED);
        }
        let at = HEAD + Pad::read(view(message, HEAD..end)?, self.kind.style())?;
        let start = at + HELLO;
        if start > end {
            return Err(ProtocolError::Malformed("first message: ids are missing"));
        }
        let fields = view(message, at..start)?;
        let hello = if self.kind == AdlerKind::V2 {
            Hello::read_v2(fields)?
        } else {
            Hello::read(fields)?
        };
        Ok(Step::Done(Found {
            hello,
            consumed: total,
            payload: start..end,
            proof: end..total,
        }))
    }

    /// Returns the checksum, which depends on protocol and key.
    fn sum(&self, len: [u8; 2]) -> [u8; 4] {
        let mut crc = crc32fast::Hasher::new();
        match self.kind {
            AdlerKind::V1 => {}
            AdlerKind::V2 => crc.update(self.name.as_bytes()),
            AdlerKind::V4 => {
                crc.update(&len);
                crc.update(self.name.as_bytes());
            }
        }
        crc.update(self.key);
        crc.finalize().to_le_bytes()
    }

    fn tag(&self, message: &[u8]) -> [u8; TAG] {
        let key = zeroize::Zeroizing::new([self.iv, self.key].concat());
        let [a, b, c, d, e, f, g, h, i, j, ..] = hmac_sha1(&key, &[message]);
        [a, b, c, d, e, f, g, h, i, j]
    }
}
