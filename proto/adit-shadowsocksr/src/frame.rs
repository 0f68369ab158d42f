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
mod chained;
mod crc;
mod deflate;
mod one_time;
mod pad;
mod tagged;

pub(crate) use adler::AdlerKind;
use bounds::BULK;
pub use bounds::Frame;
pub(crate) use chained::Chained;
use deflate::{Deflater, Inflater};
pub(crate) use one_time::{
    OneTimeOpen, OneTimeSeal, TAG as ONE_TIME_TAG, open_head as open_one_time,
};
pub(crate) use pad::Pad;
#[cfg(test)]
pub(crate) use pad::Style;
pub(crate) use tagged::Tagged;

use core::ops::Range;

use adit_wire::{Broken, Open, Opened, Room};

use crate::noise::Noise;

pub(crate) use crc::{pack as pack_crc, room as room_crc};

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
    Tagged(Tagged),
    Chained(Box<Chained>),
}

impl FrameSeal {
    pub(crate) fn room(&self) -> Room {
        match self {
            Self::Raw => Room {
                head: 0,
                tail: 0,
                max: MAX_RAW,
            },
            Self::Crc => crc::room(),
            Self::Deflate(_) => Deflater::ROOM,
            Self::OneTime(frames) => frames.room(),
            Self::Adler(kind) => kind.room(),
            Self::Tagged(_) => Tagged::ROOM,
            Self::Chained(frames) => frames.room(),
        }
    }

    /// Implements [`adit_wire::Seal::looks_ahead`].
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
    pub(crate) fn seal(
        &mut self,
        record: &mut [u8],
        payload: Range<usize>,
        noise: &mut Noise,
    ) -> Result<Range<usize>, Broken> {
        match self {
            Self::Raw => Ok(payload),
            Self::Crc => {
                let pad = small_pad(payload.len(), noise);
                crc::pack(record, payload, pad, noise)
            }
            Self::Deflate(frames) => {
                let frames = frames.get_or_insert_with(Deflater::new);
                frames.seal(record, payload)
            }
            Self::OneTime(frames) => frames.seal(record, payload),
            Self::Adler(kind) => {
                let pad = match kind {
                    AdlerKind::V1 => small_pad(payload.len(), noise),
                    _ => frame_pad(payload.len(), noise),
                };
                kind.pack(record, payload, pad, noise)
            }
            Self::Tagged(frames) => {
                let pad = frame_pad(payload.len(), noise);
                frames.pack(record, payload, pad, noise)
            }
            Self::Chained(frames) => frames.seal(record, payload, noise),
        }
    }
}

/// Draws a padding: small writes are padded, bulk data never.
fn frame_pad(len: usize, noise: &mut Noise) -> Pad {
    match len {
        BULK.. => Pad::NONE,
        401.. => Pad::random(noise.up_to(255)),
        _ => Pad::random(noise.up_to(511)),
    }
}

/// Draws a padding block of at most 16 bytes.
fn small_pad(len: usize, noise: &mut Noise) -> Pad {
    match len {
        BULK.. => Pad::NONE,
        _ => Pad::random(noise.up_to(15)),
    }
}

/// Opens the frames of one direction.
///
/// [`Open`] suffices for every protocol except `verify_deflate`, whose data may not fit in place:
/// use [`open_frame`](Self::open_frame) for it.
pub struct FrameOpen(pub(crate) Opener);

pub(crate) enum Opener {
    Raw,
    Crc,
    /// Created with the first frame, because it is large.
    Deflate(Option<Box<Inflater>>),
    OneTime(OneTimeOpen),
    Adler(AdlerKind),
    Tagged(Tagged),
    Chained(Box<Chained>),
}

impl FrameOpen {
    /// Opens the frame at the front of `plain`, the decrypted bytes of this direction. After
    /// [`Frame::NeedMore`] the next call must begin with the same bytes. After an error the
    /// direction has ended.
    ///
    /// # Errors
    ///
    /// Fails if the frame is malformed, too long or not authentic.
    pub fn open_frame(&mut self, plain: &mut [u8]) -> Result<Frame, Broken> {
        match &mut self.0 {
            Opener::Raw if plain.is_empty() => Ok(Frame::NeedMore { total: 1 }),
            Opener::Raw => Ok(Frame::Plain {
                consumed: plain.len(),
                payload: 0..plain.len(),
            }),
            Opener::Crc => crc::open(plain),
            Opener::Deflate(_) if plain.is_empty() => Ok(Frame::NeedMore { total: 1 }),
            Opener::Deflate(frames) => frames.get_or_insert_with(Inflater::new).open(plain),
            Opener::OneTime(frames) => frames.open(plain),
            Opener::Adler(kind) => kind.open(plain),
            Opener::Tagged(frames) => frames.open(plain),
            Opener::Chained(frames) => frames.open(plain),
        }
    }

    /// Returns the data of the last [`Frame::Inflated`], at most 32,768 bytes; empty before the
    /// first.
    #[must_use]
    pub fn inflated(&self) -> &[u8] {
        match &self.0 {
            Opener::Deflate(Some(frames)) => frames.data(),
            _ => &[],
        }
    }

    /// True if bytes are passed unchanged.
    pub(crate) const fn is_raw(&self) -> bool {
        matches!(self.0, Opener::Raw)
    }

    /// True if several frames are verified together when they are available.
    pub(crate) fn looks_ahead(&self) -> bool {
        matches!(&self.0, Opener::Tagged(frames) if frames.looks_ahead())
    }

    /// Returns the segment size reported by an `auth_chain` server, in bytes.
    #[must_use]
    pub fn mss(&self) -> Option<u16> {
        match &self.0 {
            Opener::Chained(frames) => frames.mss(),
            _ => None,
        }
    }
}

impl Open for FrameOpen {
    /// Opens a frame like [`open_frame`](FrameOpen::open_frame); inflated data is an error.
    fn open(&mut self, wire: &mut [u8]) -> Result<Opened, Broken> {
        match self.open_frame(wire)? {
            Frame::NeedMore { total } => Ok(Opened::NeedMore { total }),
            Frame::Plain { consumed, payload } => Ok(Opened::Record { consumed, payload }),
            Frame::Inflated { .. } => Err(Broken::NoRoom("inflated data")),
        }
    }
}

impl core::fmt::Debug for FrameOpen {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("FrameOpen").finish_non_exhaustive()
    }
}
