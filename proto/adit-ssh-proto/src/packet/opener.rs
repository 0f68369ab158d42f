//! The receiving side: packets to payloads.

use core::fmt;
use core::ops::Range;

use adit_wire::{subslice, usize_from};

use super::deflate::{CompressionSwitch, Inflater};
use super::packet_cipher::{AES_BLOCK, PacketCipher};
use super::packet_counters::PacketCounters;
use super::{DirectionKeys, HEAD_LEN, LENGTH_LEN, MAX_PACKET_LENGTH, MIN_PADDING};
use crate::SshError;

/// Result of [`Opener::open`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opened {
    /// More bytes are needed: call again with the same bytes and more after them, at least `total`.
    /// The bytes already there must stay unchanged and at the front.
    NeedMore {
        /// Number of bytes needed in total, at most [`MAX_PACKET_LENGTH`] + 68.
        total: usize,
    },
    /// A packet was opened.
    Packet {
        /// Length of the packet in bytes; the next one starts after it.
        consumed: usize,
        /// Position of its payload; see [`Opener::payload`].
        payload: PayloadPosition,
    },
}

/// Position of a payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PayloadPosition {
    /// Range in the caller's bytes, decrypted in place.
    Wire(Range<usize>),
    /// Decompressed in the opener; valid until the next call of [`Opener::open`].
    Inflated,
}

/// Reads the packets of one direction.
///
/// After an error, every further call returns the same error.
///
/// With a MAC that does not cover the ciphertext, an error must not reveal which part of the packet
/// was bad (in RFC 4253 section 6.3, the length is decrypted before it is authenticated). For such
/// MACs, a bad length and a wrong tag are reported in the same way, after as many bytes as the
/// longest packet has.
pub struct Opener {
    cover: PacketCipher,
    switch: CompressionSwitch,
    inflater: Option<Inflater>,
    pending: PendingPacket,
    pub(super) count: PacketCounters,
    failed: Option<SshError>,
}

/// State of the packet at the front.
#[derive(Clone, Copy)]
enum PendingPacket {
    /// Nothing is known yet.
    Nothing,
    /// The length is known: `total` bytes including the tag.
    Length { total: usize },
    /// The length is known, and the first block is decrypted.
    Block {
        total: usize,
        first: [u8; AES_BLOCK],
    },
    /// The packet is bad, which is reported later; the MAC has processed `checked` bytes.
    Bad { checked: usize },
}

impl Opener {
    /// Creates an unencrypted opener with sequence number 0.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            cover: PacketCipher::Clear,
            switch: CompressionSwitch::disabled(),
            inflater: None,
            pending: PendingPacket::Nothing,
            count: PacketCounters::new(),
            failed: None,
        }
    }

    /// Switches to `keys` for the next packet. Call it after NEWKEYS was received, before any byte
    /// after it is passed to [`Opener::open`]. Otherwise like
    /// [`Sealer::set_keys`](super::Sealer::set_keys).
    ///
    /// # Errors
    /// The same as for [`Sealer::set_keys`](super::Sealer::set_keys).
    pub fn set_keys(&mut self, keys: DirectionKeys, reset_sequence: bool) -> Result<(), SshError> {
        self.cover = PacketCipher::new(&keys)?;
        self.pending = PendingPacket::Nothing;
        let inflate = self.switch.set_method(keys.compression);
        self.inflater = inflate.then(Inflater::new);
        self.count.reset_for_new_keys(reset_sequence);
        Ok(())
    }

    /// Starts delayed decompression, see
    /// [`Sealer::start_compression`](super::Sealer::start_compression).
    pub fn start_compression(&mut self) {
        if self.switch.set_authenticated() {
            self.inflater = Some(Inflater::new());
        }
    }

    /// Opens the packet at the front of `wire`, in place. Bytes after it are not changed.
    ///
    /// # Errors
    /// [`SshError::BadTag`] if bytes were altered, [`SshError::TooMuch`] and
    /// [`SshError::Malformed`] if a length is out of bounds or a compressed payload is not valid,
    /// [`SshError::Crypto`] when the keys are exhausted (2³² packets).
    pub fn open(&mut self, wire: &mut [u8]) -> Result<Opened, SshError> {
        if let Some(why) = &self.failed {
            return Err(why.clone());
        }
        let opened = self.open_packet(wire);
        if let Err(why) = &opened {
            self.failed = Some(why.clone());
        }
        opened
    }

    fn open_packet(&mut self, wire: &mut [u8]) -> Result<Opened, SshError> {
        if let PendingPacket::Nothing = self.pending {
            self.count.check_has_next()?;
            match self.read_length(wire)? {
                Some(pending) => self.pending = pending,
                None => {
                    let total = self.cover.first_len();
                    return Ok(Opened::NeedMore { total });
                }
            }
        }
        let (total, first) = match self.pending {
            PendingPacket::Length { total } => (total, None),
            PendingPacket::Block { total, first } => (total, Some(first)),
            PendingPacket::Bad { .. } | PendingPacket::Nothing => {
                return self.read_to_bad_tag(wire);
            }
        };
        let Some(packet) = wire.get_mut(..total) else {
            return Ok(Opened::NeedMore { total });
        };
        let (packet, tag) = packet.split_at_mut(total - self.cover.tag_len());
        if let (Some(plain), Some(place)) = (first, packet.first_chunk_mut()) {
            *place = plain;
        }
        match self.cover.open(self.count.sequence, packet, tag) {
            Ok(()) => self.pending = PendingPacket::Nothing,
            Err(_) if first.is_some() => {
                self.pending = PendingPacket::Bad { checked: total };
                return self.read_to_bad_tag(wire);
            }
            Err(why) => return Err(why),
        }
        let payload = payload_range(packet)?;
        self.count.count_packet(total);
        let payload = match &mut self.inflater {
            None => PayloadPosition::Wire(payload),
            Some(inflater) => {
                inflater.inflate(subslice(packet, payload))?;
                PayloadPosition::Inflated
            }
        };
        Ok(Opened::Packet {
            consumed: total,
            payload,
        })
    }

    /// Reads the length of the packet at the front; `None` if more bytes are needed.
    fn read_length(&mut self, wire: &[u8]) -> Result<Option<PendingPacket>, SshError> {
        let Some(&length) = wire.first_chunk::<LENGTH_LEN>() else {
            return Ok(None);
        };
        let length = match &mut self.cover {
            PacketCipher::Clear | PacketCipher::Gcm(_) | PacketCipher::Etm(_) => length,
            PacketCipher::ChaCha(chacha) => chacha.decrypt_length(self.count.sequence, length),
            PacketCipher::EncryptAndMac(counter) => {
                let Some(&first) = wire.first_chunk() else {
                    return Ok(None);
                };
                let mut first: [u8; AES_BLOCK] = first;
                counter.cipher.apply(&mut first);
                let [a, b, c, d, ..] = first;
                return Ok(Some(match self.total_len([a, b, c, d]) {
                    Ok(total) => PendingPacket::Block { total, first },
                    Err(_) => PendingPacket::Bad { checked: 0 },
                }));
            }
        };
        self.total_len(length)
            .map(|total| Some(PendingPacket::Length { total }))
    }

    /// Returns the total length of a packet with this `packet_length`, in bytes.
    fn total_len(&self, length: [u8; LENGTH_LEN]) -> Result<usize, SshError> {
        let length = usize_from(u32::from_be_bytes(length));
        if length > MAX_PACKET_LENGTH {
            return Err(SshError::TooMuch {
                what: "packet length",
                limit: MAX_PACKET_LENGTH,
            });
        }
        let padded = LENGTH_LEN + length - self.cover.unpadded_len();
        // At least one byte of padding_length and one of payload.
        if length < 2 + MIN_PADDING || !padded.is_multiple_of(self.cover.block_len()) {
            return Err(SshError::Malformed("packet length"));
        }
        Ok(LENGTH_LEN + length + self.cover.tag_len())
    }

    /// Waits for as many bytes as the longest packet has, then reports a bad tag. The MAC is
    /// computed over all of them in any case, so that timing does not reveal more than the error.
    fn read_to_bad_tag(&mut self, wire: &[u8]) -> Result<Opened, SshError> {
        let total = LENGTH_LEN + MAX_PACKET_LENGTH + self.cover.tag_len();
        let Some(all) = wire.get(..total) else {
            return Ok(Opened::NeedMore { total });
        };
        if let (PendingPacket::Bad { checked }, PacketCipher::EncryptAndMac(counter)) =
            (self.pending, &mut self.cover)
        {
            let rest = subslice(all, checked..);
            let _ = counter.mac.verify_tag(self.count.sequence, rest, &[]);
        }
        Err(SshError::BadTag)
    }

    /// Returns the payload of the last packet, from the same `wire` in which it was opened.
    #[must_use]
    pub fn payload<'a>(&'a self, wire: &'a [u8], payload: &PayloadPosition) -> &'a [u8] {
        match payload {
            PayloadPosition::Wire(range) => subslice(wire, range.clone()),
            PayloadPosition::Inflated => self
                .inflater
                .as_ref()
                .map(Inflater::payload)
                .unwrap_or_default(),
        }
    }

    /// Returns the sequence number of the next packet.
    #[must_use]
    pub const fn sequence(&self) -> u32 {
        self.count.sequence
    }

    /// Returns the number of packets since the last [`Opener::set_keys`].
    #[must_use]
    pub const fn packets(&self) -> u64 {
        self.count.packets
    }

    /// Returns the number of bytes on the wire since the last [`Opener::set_keys`].
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.count.bytes
    }
}

/// Returns the position of the payload in a decrypted packet.
fn payload_range(packet: &[u8]) -> Result<Range<usize>, SshError> {
    let padding = packet.get(LENGTH_LEN).map_or(0, |len| usize::from(*len));
    let end = packet.len().saturating_sub(padding);
    if padding < MIN_PADDING || end <= HEAD_LEN {
        return Err(SshError::Malformed("padding"));
    }
    Ok(HEAD_LEN..end)
}

impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Opener({} at packet {})",
            self.cover.name(),
            self.count.sequence
        )
    }
}

impl Default for Opener {
    fn default() -> Self {
        Self::new()
    }
}
