//! The receiving side: packets become payloads.

use core::ops::Range;

use super::{
    DirectionKeys, HEAD_LEN, LENGTH_LEN, MAX_PACKET_LENGTH, MIN_PADDING, MOST_PACKETS, cover::Cover,
};
use crate::SshError;

/// What [`Opener::open`] found at the front of the bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opened {
    /// Nothing yet: call again with the same bytes and more behind them, `total` or more octets.
    /// What was there must not be changed, nor moved away from the front.
    NeedMore {
        /// Octets that are needed in all, never above [`MAX_PACKET_LENGTH`] and 100.
        total: usize,
    },
    /// A packet.
    Packet {
        /// Its octets; the next one begins behind them.
        consumed: usize,
        /// Where its payload is; see [`Opener::payload`].
        payload: Payload,
    },
}

/// Where a payload is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payload {
    /// In the bytes given, decrypted in place.
    Wire(Range<usize>),
    /// In the opener, inflated; there until the next call of [`Opener::open`].
    Inflated,
}

/// Reads the packets of one direction.
///
/// After an error every further call gives the same error.
pub struct Opener {
    cover: Cover,
    sequence: u32,
    packets: u64,
    bytes: u64,
    failed: Option<SshError>,
}

impl Opener {
    /// In the clear, with sequence number 0.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            cover: Cover::Clear,
            sequence: 0,
            packets: 0,
            bytes: 0,
            failed: None,
        }
    }

    /// The next packet was sealed with `keys`: to be called when NEWKEYS came, before any byte
    /// behind it is given to [`Opener::open`]. Otherwise as
    /// [`Sealer::set_keys`](super::Sealer::set_keys).
    ///
    /// # Errors
    /// As [`Sealer::set_keys`](super::Sealer::set_keys).
    pub fn set_keys(&mut self, keys: DirectionKeys, reset_sequence: bool) -> Result<(), SshError> {
        self.cover = Cover::new(&keys)?;
        if reset_sequence {
            self.sequence = 0;
        }
        (self.packets, self.bytes) = (0, 0);
        Ok(())
    }

    /// As [`Sealer::start_compression`](super::Sealer::start_compression).
    pub fn start_compression(&mut self) {}

    /// Opens the packet at the front of `wire`, in place. Bytes behind it are not touched.
    ///
    /// # Errors
    /// [`SshError::BadTag`] for altered bytes, [`SshError::TooMuch`] and [`SshError::Malformed`]
    /// for lengths out of bounds, [`SshError::Crypto`] when the keys are used up (2³² packets).
    pub fn open(&mut self, wire: &mut [u8]) -> Result<Opened, SshError> {
        if let Some(why) = &self.failed {
            return Err(why.clone());
        }
        let opened = self.unwrap(wire);
        if let Err(why) = &opened {
            self.failed = Some(why.clone());
        }
        opened
    }

    fn unwrap(&mut self, wire: &mut [u8]) -> Result<Opened, SshError> {
        let Some(length) = wire.first_chunk::<LENGTH_LEN>() else {
            return Ok(Opened::NeedMore { total: LENGTH_LEN });
        };
        let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
        if length > MAX_PACKET_LENGTH {
            return Err(SshError::TooMuch {
                what: "packet length",
                limit: MAX_PACKET_LENGTH,
            });
        }
        let total = LENGTH_LEN + length + self.cover.tag_len();
        let Some(packet) = wire.get_mut(..total) else {
            return Ok(Opened::NeedMore { total });
        };
        if self.packets >= MOST_PACKETS {
            return Err(SshError::Crypto("keys are used up"));
        }
        let padding = usize::from(packet.get(LENGTH_LEN).copied().unwrap_or(0));
        let end = (LENGTH_LEN + length).saturating_sub(padding);
        if padding < MIN_PADDING || end <= HEAD_LEN {
            return Err(SshError::Malformed("padding"));
        }
        self.sequence = self.sequence.wrapping_add(1);
        self.packets += 1;
        self.bytes += total as u64;
        Ok(Opened::Packet {
            consumed: total,
            payload: Payload::Wire(HEAD_LEN..end),
        })
    }

    /// The payload of the last packet, of the same `wire` that it was opened in.
    #[must_use]
    pub fn payload<'a>(&'a self, wire: &'a [u8], payload: &Payload) -> &'a [u8] {
        match payload {
            Payload::Wire(range) => wire.get(range.clone()).unwrap_or_default(),
            Payload::Inflated => &[],
        }
    }

    /// The number of the next packet.
    #[must_use]
    pub const fn sequence(&self) -> u32 {
        self.sequence
    }

    /// Packets since the last [`Opener::set_keys`].
    #[must_use]
    pub const fn packets(&self) -> u64 {
        self.packets
    }

    /// Octets on the wire since the last [`Opener::set_keys`].
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Default for Opener {
    fn default() -> Self {
        Self::new()
    }
}
