//! The frames after the first message, with one codec per direction.
//!
//! ```text
//! origin                data
//! verify_simple         BE16 length ‖ pad ‖ data ‖ CRC-32
//! verify_deflate        BE16 length ‖ zlib stream without its header
//! verify_sha1           BE16 data length ‖ HMAC(10) ‖ data
//! auth_sha1             BE16 length ‖ pad ‖ data ‖ Adler-32
//! auth_sha1_v4          BE16 length ‖ CRC(2) ‖ pad ‖ data ‖ Adler-32
//! auth_aes128_*         LE16 length ‖ MAC(2) ‖ pad ‖ data ‖ MAC(4)
//! auth_chain_*          masked LE16 data length ‖ noise, RC4(data), noise ‖ MAC(2)
//! ```

mod adler;
mod bounds;
mod chain_frame;
mod crc;
mod deflate;
mod one_time_auth;
mod padding;
mod tagged_frame;

pub(crate) use adler::AdlerKind;
use bounds::MIN_BULK_LEN;
pub use bounds::OpenedFrame;
pub(crate) use chain_frame::ChainCodec;
use deflate::{Deflater, Inflater};
pub(crate) use one_time_auth::{
    OneTimeOpen, OneTimeSeal, TAG as ONE_TIME_TAG, open_head as open_one_time,
};
#[cfg(test)]
pub(crate) use padding::LengthEncoding;
pub(crate) use padding::PaddingBlock;
pub(crate) use tagged_frame::TaggedCodec;

use core::ops::Range;

use adit_wire::{Open, Opened, Overhead, ProtocolError};

use crate::noise::NoiseRng;

pub(crate) use crc::{pack_frame as pack_crc, seal_overhead as room_crc};

/// Maximum payload of one call for `origin`, in bytes. It bounds buffers; the wire format has no
/// such limit.
const MAX_RAW: usize = 1 << 20;

/// The sealing side of one direction, after the first message.
pub(crate) enum FrameSeal {
    Raw,
    Crc,
    /// Created with the first frame, because it is large.
    Deflate(Option<Box<Deflater>>),
    OneTime(OneTimeSeal),
    Adler(AdlerKind),
    Tagged(TaggedCodec),
    Chained(Box<ChainCodec>),
}

impl FrameSeal {
    pub(crate) fn seal_overhead(&self) -> Overhead {
        match self {
            Self::Raw => Overhead {
                head: 0,
                tail: 0,
                max_payload: MAX_RAW,
            },
            Self::Crc => crc::seal_overhead(),
            Self::Deflate(_) => Deflater::ROOM,
            Self::OneTime(frames) => frames.seal_overhead(),
            Self::Adler(kind) => kind.seal_overhead(),
            Self::Tagged(_) => TaggedCodec::ROOM,
            Self::Chained(frames) => frames.seal_overhead(),
        }
    }

    /// Implements [`adit_wire::Seal::wants_seal_ahead`].
    pub(crate) fn looks_ahead(&self) -> bool {
        matches!(self, Self::Tagged(frames) if frames.looks_ahead())
    }

    /// Implements [`adit_wire::Seal::seal_ahead`].
    pub(crate) fn seal_ahead(&mut self, slot: &mut [u8], payloads: &[Range<usize>]) {
        if let Self::Tagged(frames) = self {
            frames.pack_ahead(slot, payloads);
        }
    }

    /// Seals one frame; the caller has checked the overhead.
    pub(crate) fn seal_frame(
        &mut self,
        record: &mut [u8],
        payload: Range<usize>,
        noise: &mut NoiseRng,
    ) -> Result<Range<usize>, ProtocolError> {
        match self {
            Self::Raw => Ok(payload),
            Self::Crc => {
                let pad = draw_small_pad(payload.len(), noise);
                crc::pack_frame(record, payload, pad, noise)
            }
            Self::Deflate(frames) => {
                let frames = frames.get_or_insert_with(Deflater::new);
                frames.seal_frame(record, payload)
            }
            Self::OneTime(frames) => frames.seal_data(record, payload),
            Self::Adler(kind) => {
                let pad = match kind {
                    AdlerKind::V1 => draw_small_pad(payload.len(), noise),
                    _ => draw_frame_pad(payload.len(), noise),
                };
                kind.pack_frame(record, payload, pad, noise)
            }
            Self::Tagged(frames) => {
                let pad = draw_frame_pad(payload.len(), noise);
                frames.pack_frame(record, payload, pad, noise)
            }
            Self::Chained(frames) => frames.seal_data(record, payload, noise),
        }
    }
}

/// Draws a padding: small writes are padded, bulk data never.
fn draw_frame_pad(len: usize, noise: &mut NoiseRng) -> PaddingBlock {
    match len {
        MIN_BULK_LEN.. => PaddingBlock::NONE,
        401.. => PaddingBlock::with_random(noise.draw_up_to(255)),
        _ => PaddingBlock::with_random(noise.draw_up_to(511)),
    }
}

/// Draws a padding block of at most 16 bytes.
fn draw_small_pad(len: usize, noise: &mut NoiseRng) -> PaddingBlock {
    match len {
        MIN_BULK_LEN.. => PaddingBlock::NONE,
        _ => PaddingBlock::with_random(noise.draw_up_to(15)),
    }
}

/// Opens the frames of one direction.
///
/// [`Open`] suffices for every protocol except `verify_deflate`, whose data may not fit in place:
/// use [`open_frame`](Self::open_frame) for it.
pub struct FrameOpen(pub(crate) FrameOpener);

pub(crate) enum FrameOpener {
    Raw,
    Crc,
    /// Created with the first frame, because it is large.
    Deflate(Option<Box<Inflater>>),
    OneTime(OneTimeOpen),
    Adler(AdlerKind),
    Tagged(TaggedCodec),
    Chained(Box<ChainCodec>),
}

impl FrameOpen {
    /// Opens the frame at the front of `plain`, the decrypted bytes of this direction. After
    /// [`OpenedFrame::NeedMore`] the next call must begin with the same bytes. After an error the
    /// direction has ended.
    ///
    /// # Errors
    ///
    /// Fails if the frame is malformed, too long or not authentic.
    pub fn open_frame(&mut self, plain: &mut [u8]) -> Result<OpenedFrame, ProtocolError> {
        match &mut self.0 {
            FrameOpener::Raw if plain.is_empty() => Ok(OpenedFrame::NeedMore { total: 1 }),
            FrameOpener::Raw => Ok(OpenedFrame::Plain {
                consumed: plain.len(),
                payload: 0..plain.len(),
            }),
            FrameOpener::Crc => crc::open_frame(plain),
            FrameOpener::Deflate(_) if plain.is_empty() => Ok(OpenedFrame::NeedMore { total: 1 }),
            FrameOpener::Deflate(frames) => {
                frames.get_or_insert_with(Inflater::new).open_frame(plain)
            }
            FrameOpener::OneTime(frames) => frames.open_frame(plain),
            FrameOpener::Adler(kind) => kind.open_frame(plain),
            FrameOpener::Tagged(frames) => frames.open_frame(plain),
            FrameOpener::Chained(frames) => frames.open_frame(plain),
        }
    }

    /// Returns the data of the last [`OpenedFrame::Inflated`], at most 32,768 bytes; empty before the
    /// first.
    #[must_use]
    pub fn inflated(&self) -> &[u8] {
        match &self.0 {
            FrameOpener::Deflate(Some(frames)) => frames.inflated_data(),
            _ => &[],
        }
    }

    /// True if bytes are passed unchanged.
    pub(crate) const fn is_raw(&self) -> bool {
        matches!(self.0, FrameOpener::Raw)
    }

    /// True if several frames are verified together when they are available.
    pub(crate) fn looks_ahead(&self) -> bool {
        matches!(&self.0, FrameOpener::Tagged(frames) if frames.looks_ahead())
    }

    /// Returns the segment size reported by an `auth_chain` server, in bytes.
    #[must_use]
    pub fn segment_size(&self) -> Option<u16> {
        match &self.0 {
            FrameOpener::Chained(frames) => frames.segment_size(),
            _ => None,
        }
    }
}

impl Open for FrameOpen {
    /// Opens a frame like [`open_frame`](FrameOpen::open_frame); inflated data is an error.
    fn open(&mut self, wire: &mut [u8]) -> Result<Opened, ProtocolError> {
        match self.open_frame(wire)? {
            OpenedFrame::NeedMore { total } => Ok(Opened::NeedMore { total }),
            OpenedFrame::Plain { consumed, payload } => Ok(Opened::Record { consumed, payload }),
            OpenedFrame::Inflated { .. } => Err(ProtocolError::NoRoom("inflated data")),
        }
    }
}

impl core::fmt::Debug for FrameOpen {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("FrameOpen").finish_non_exhaustive()
    }
}
