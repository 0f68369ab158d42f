//! The receiving side: packets become payloads.

use core::fmt;
use core::ops::Range;

use adit_wire::{subslice, usize_from};

use super::count::Count;
use super::cover::{AES_BLOCK, Cover};
use super::deflate::{Inflater, Switch};
use super::{DirectionKeys, HEAD_LEN, LENGTH_LEN, MAX_PACKET_LENGTH, MIN_PADDING};
use crate::SshError;

/// What [`Opener::open`] found at the front of the bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opened {
    /// Nothing yet: call again with the same bytes and more behind them, `total` or more octets.
    /// What was there must not be changed, nor moved away from the front.
    NeedMore {
        /// Octets that are needed in all, never above [`MAX_PACKET_LENGTH`] + 68.
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
///
/// With a MAC that is not over the ciphertext, what a peer learns from an error must not tell which
/// part of the packet was bad (RFC 4253 section 6.3 makes the length the first thing decrypted).
/// There a bad length and a wrong tag are told alike, when as much has come as the longest packet
/// would have.
pub struct Opener {
    cover: Cover,
    switch: Switch,
    inflater: Option<Inflater>,
    pending: Pending,
    pub(super) count: Count,
    failed: Option<SshError>,
}

/// What is known of the packet at the front.
#[derive(Clone, Copy)]
enum Pending {
    /// Nothing.
    Nothing,
    /// Its length: `total` octets with everything.
    Length { total: usize },
    /// The same, and its first block, decrypted.
    Block {
        total: usize,
        first: [u8; AES_BLOCK],
    },
    /// It is bad, which is told later; the MAC went over `checked` octets.
    Bad { checked: usize },
}

impl Opener {
    /// In the clear, with sequence number 0.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            cover: Cover::Clear,
            switch: Switch::off(),
            inflater: None,
            pending: Pending::Nothing,
            count: Count::new(),
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
        self.pending = Pending::Nothing;
        let inflate = self.switch.negotiated(keys.compression);
        self.inflater = inflate.then(Inflater::new);
        self.count.new_keys(reset_sequence);
        Ok(())
    }

    /// As [`Sealer::start_compression`](super::Sealer::start_compression).
    pub fn start_compression(&mut self) {
        if self.switch.authenticated() {
            self.inflater = Some(Inflater::new());
        }
    }

    /// Opens the packet at the front of `wire`, in place. Bytes behind it are not touched.
    ///
    /// # Errors
    /// [`SshError::BadTag`] for altered bytes; [`SshError::TooMuch`] and [`SshError::Malformed`]
    /// for lengths out of bounds and for compressed payloads that are none;
    /// [`SshError::Crypto`] when the keys are used up (2³² packets).
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
        if let Pending::Nothing = self.pending {
            self.count.has_next()?;
            match self.look(wire)? {
                Some(pending) => self.pending = pending,
                None => {
                    let total = self.cover.first_len();
                    return Ok(Opened::NeedMore { total });
                }
            }
        }
        let (total, first) = match self.pending {
            Pending::Length { total } => (total, None),
            Pending::Block { total, first } => (total, Some(first)),
            Pending::Bad { .. } | Pending::Nothing => return self.read_on(wire),
        };
        let Some(packet) = wire.get_mut(..total) else {
            return Ok(Opened::NeedMore { total });
        };
        let (packet, tag) = packet.split_at_mut(total - self.cover.tag_len());
        if let (Some(plain), Some(place)) = (first, packet.first_chunk_mut()) {
            *place = plain;
        }
        match self.cover.open(self.count.sequence, packet, tag) {
            Ok(()) => self.pending = Pending::Nothing,
            Err(_) if first.is_some() => {
                self.pending = Pending::Bad { checked: total };
                return self.read_on(wire);
            }
            Err(why) => return Err(why),
        }
        let payload = payload(packet)?;
        self.count.packet(total);
        let payload = match &mut self.inflater {
            None => Payload::Wire(payload),
            Some(inflater) => {
                inflater.inflate(subslice(packet, payload))?;
                Payload::Inflated
            }
        };
        Ok(Opened::Packet {
            consumed: total,
            payload,
        })
    }

    /// Reads the length of the packet at the front; `None` if too few octets are there.
    fn look(&mut self, wire: &[u8]) -> Result<Option<Pending>, SshError> {
        let Some(&length) = wire.first_chunk::<LENGTH_LEN>() else {
            return Ok(None);
        };
        let length = match &mut self.cover {
            Cover::Clear | Cover::Gcm(_) | Cover::Etm(_) => length,
            Cover::ChaCha(chacha) => chacha.decrypt_length(self.count.sequence, length),
            Cover::Plain(counter) => {
                let Some(&first) = wire.first_chunk() else {
                    return Ok(None);
                };
                let mut first: [u8; AES_BLOCK] = first;
                counter.cipher.apply(&mut first);
                let [a, b, c, d, ..] = first;
                return Ok(Some(match self.total([a, b, c, d]) {
                    Ok(total) => Pending::Block { total, first },
                    Err(_) => Pending::Bad { checked: 0 },
                }));
            }
        };
        self.total(length)
            .map(|total| Some(Pending::Length { total }))
    }

    /// The octets of a packet that says it has this `packet_length`.
    fn total(&self, length: [u8; LENGTH_LEN]) -> Result<usize, SshError> {
        let length = usize_from(u32::from_be_bytes(length));
        if length > MAX_PACKET_LENGTH {
            return Err(SshError::TooMuch {
                what: "packet length",
                limit: MAX_PACKET_LENGTH,
            });
        }
        let padded = LENGTH_LEN + length - self.cover.apart();
        // One octet of padding_length and one of payload at least.
        if length < 2 + MIN_PADDING || !padded.is_multiple_of(self.cover.block()) {
            return Err(SshError::Malformed("packet length"));
        }
        Ok(LENGTH_LEN + length + self.cover.tag_len())
    }

    /// Waits for the rest of the longest packet, then tells that this one is bad. The MAC goes over
    /// all of it in any case, so that the time does not tell more than the answer.
    fn read_on(&mut self, wire: &[u8]) -> Result<Opened, SshError> {
        let total = LENGTH_LEN + MAX_PACKET_LENGTH + self.cover.tag_len();
        let Some(all) = wire.get(..total) else {
            return Ok(Opened::NeedMore { total });
        };
        if let (Pending::Bad { checked }, Cover::Plain(counter)) = (self.pending, &mut self.cover) {
            let rest = subslice(all, checked..);
            let _ = counter.mac.fits(self.count.sequence, rest, &[]);
        }
        Err(SshError::BadTag)
    }

    /// The payload of the last packet, of the same `wire` that it was opened in.
    #[must_use]
    pub fn payload<'a>(&'a self, wire: &'a [u8], payload: &Payload) -> &'a [u8] {
        match payload {
            Payload::Wire(range) => subslice(wire, range.clone()),
            Payload::Inflated => self
                .inflater
                .as_ref()
                .map(Inflater::payload)
                .unwrap_or_default(),
        }
    }

    /// The number of the next packet.
    #[must_use]
    pub const fn sequence(&self) -> u32 {
        self.count.sequence
    }

    /// Packets since the last [`Opener::set_keys`].
    #[must_use]
    pub const fn packets(&self) -> u64 {
        self.count.packets
    }

    /// Octets on the wire since the last [`Opener::set_keys`].
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.count.bytes
    }
}

/// Where the payload of a decrypted packet is.
fn payload(packet: &[u8]) -> Result<Range<usize>, SshError> {
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
