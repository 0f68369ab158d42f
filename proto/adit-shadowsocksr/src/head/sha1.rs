//! The first message of `auth_sha1`, `auth_sha1_v2` and `auth_sha1_v4`.

use core::ops::Range;

use adit_crypto::{ct_eq, hmac_sha1};
use adit_wire::{Entropy, HandshakeProgress, ProtocolError};

use super::{FORGED, VerifiedHead};
use crate::field::{
    check_frame_len, get_field, length_field, put_field, range_around, range_mut, range_ref,
};
use crate::frame::{AdlerKind, PaddingBlock};
use crate::hello::{HELLO_LEN, Hello};
use crate::noise::NoiseRng;

/// Length of checksum and length field, in either order.
const HEAD: usize = 6;

const TAG: usize = 10;

/// Number of bytes from which a server can recognize a client of this protocol.
const ENOUGH: usize = 7;

/// Maximum length of the first message in V1 and V2.
const MAX_OLD: usize = 2048;

/// Bytes in front of a payload, and after it.
pub(crate) const ROOM: (usize, usize) = (HEAD + PaddingBlock::max_len(511) + HELLO_LEN, TAG);

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
    pub(crate) fn draw_pad(&self, len: usize, noise: &mut NoiseRng) -> PaddingBlock {
        PaddingBlock::with_random(match (self.kind, len + HELLO_LEN) {
            (AdlerKind::V1, _) => noise.draw_up_to(126),
            (_, 1201..) => 0,
            (_, 401..) => noise.draw_up_to(255),
            _ => noise.draw_up_to(511),
        })
    }

    /// Writes the message around `record[payload]`.
    pub(crate) fn pack_message(
        &self,
        hello: &Hello,
        record: &mut [u8],
        payload: Range<usize>,
        pad: PaddingBlock,
        rng: &mut dyn Entropy,
    ) -> Result<Range<usize>, ProtocolError> {
        let range = range_around(record, &payload, HEAD + pad.len() + HELLO_LEN, TAG)?;
        let message = range_mut(record, range.clone())?;
        let len = length_field(message.len())?.to_be_bytes();
        let sum = self.key_checksum(len);
        let (first, second) = if self.kind == AdlerKind::V4 {
            (0, 2)
        } else {
            (4, 0)
        };
        put_field(message, first, &len)?;
        put_field(message, second, &sum)?;
        pad.write_block(message, HEAD, self.kind.pad_style(), rng)?;
        let fields = if self.kind == AdlerKind::V2 {
            hello.to_bytes_v2()
        } else {
            hello.to_bytes()
        };
        put_field(message, HEAD + pad.len(), &fields)?;
        let end = message.len() - TAG;
        let tag = self.message_tag(range_ref(message, 0..end)?);
        put_field(message, end, &tag)?;
        Ok(range)
    }

    pub(crate) fn read_message(
        &self,
        plain: &[u8],
    ) -> Result<HandshakeProgress<VerifiedHead>, ProtocolError> {
        if plain.len() < ENOUGH {
            return Ok(HandshakeProgress::NeedMore { total: ENOUGH });
        }
        let (len, sum): ([u8; 2], [u8; 4]) = if self.kind == AdlerKind::V4 {
            (get_field(plain, 0)?, get_field(plain, 2)?)
        } else {
            (get_field(plain, 4)?, get_field(plain, 0)?)
        };
        if !ct_eq(&sum, &self.key_checksum(len)) {
            return Err(FORGED);
        }
        let limit = if self.kind == AdlerKind::V4 {
            usize::from(u16::MAX) + 1
        } else {
            MAX_OLD + 1
        };
        let low = HEAD + 1 + HELLO_LEN + TAG;
        let total = check_frame_len(u16::from_be_bytes(len), low, limit)?;
        let Some(message) = plain.get(..total) else {
            return Ok(HandshakeProgress::NeedMore { total });
        };
        let end = total - TAG;
        if !ct_eq(
            &self.message_tag(range_ref(message, 0..end)?),
            range_ref(message, end..total)?,
        ) {
            return Err(FORGED);
        }
        let at =
            HEAD + PaddingBlock::read_len(range_ref(message, HEAD..end)?, self.kind.pad_style())?;
        let start = at + HELLO_LEN;
        if start > end {
            return Err(ProtocolError::Malformed("first message: ids are missing"));
        }
        let fields = range_ref(message, at..start)?;
        let hello = if self.kind == AdlerKind::V2 {
            Hello::from_bytes_v2(fields)?
        } else {
            Hello::from_bytes(fields)?
        };
        Ok(HandshakeProgress::Done(VerifiedHead {
            hello,
            consumed: total,
            payload: start..end,
            proof: end..total,
        }))
    }

    /// Returns the checksum, which depends on protocol and key.
    fn key_checksum(&self, len: [u8; 2]) -> [u8; 4] {
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

    fn message_tag(&self, message: &[u8]) -> [u8; TAG] {
        let key = zeroize::Zeroizing::new([self.iv, self.key].concat());
        let [a, b, c, d, e, f, g, h, i, j, ..] = hmac_sha1(&key, &[message]);
        [a, b, c, d, e, f, g, h, i, j]
    }
}
