//! The sending side: payloads to packets.

use core::fmt;

use adit_wire::{narrow_int, subslice_mut};

use super::deflate::{CompressionSwitch, Deflater};
use super::packet_cipher::PacketCipher;
use super::packet_counters::PacketCounters;
use super::padding::PaddingSource;
use super::{DirectionKeys, HEAD_LEN, LENGTH_LEN, MAX_PAYLOAD, MIN_PADDING};
use crate::SshError;

/// Writes the packets of one direction.
///
/// [`Sealer::seal`] copies a payload; [`Sealer::begin_packet`] and [`Sealer::seal_begun`] let the caller write
/// it directly into the packet.
pub struct Sealer {
    cover: PacketCipher,
    padding: PaddingSource,
    switch: CompressionSwitch,
    deflater: Option<Deflater>,
    pub(super) count: PacketCounters,
}

impl Sealer {
    /// Creates an unencrypted sealer with sequence number 0.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            cover: PacketCipher::Clear,
            padding: PaddingSource::zeros(),
            switch: CompressionSwitch::disabled(),
            deflater: None,
            count: PacketCounters::new(),
        }
    }

    /// Switches to `keys` for the next packet; call it after NEWKEYS was sealed. `reset_sequence`
    /// is true with strict kex. Compression restarts; with
    /// [`Compression::Zlib`](crate::algorithm::Compression) it is active immediately.
    ///
    /// # Errors
    /// [`SshError::Crypto`] if a key has the wrong length, or a required MAC is missing. The old
    /// keys stay in use then.
    pub fn set_keys(&mut self, keys: DirectionKeys, reset_sequence: bool) -> Result<(), SshError> {
        let (cover, padding) = (PacketCipher::new(&keys)?, PaddingSource::new(&keys)?);
        (self.cover, self.padding) = (cover, padding);
        let compress = self.switch.set_method(keys.compression);
        self.deflater = compress.then(Deflater::new);
        self.count.reset_for_new_keys(reset_sequence);
        Ok(())
    }

    /// Starts `zlib@openssh.com`, if negotiated, with the next packet; call it when the user is
    /// authenticated. It stays enabled at every later [`Sealer::set_keys`].
    pub fn start_compression(&mut self) {
        if self.switch.set_authenticated() {
            self.deflater = Some(Deflater::new());
        }
    }

    /// Appends the packet with `payload` to `out`.
    ///
    /// # Errors
    /// The same as for [`Sealer::seal_begun`].
    pub fn seal(&mut self, payload: &[u8], out: &mut Vec<u8>) -> Result<(), SshError> {
        let start = self.begin_packet(out);
        out.extend_from_slice(payload);
        self.seal_begun(start, out)
    }

    /// Starts a packet at the end of `out` and returns its position. Append the payload, then pass
    /// the position to [`Sealer::seal_begun`]. Nothing is counted before that, so an unwanted packet
    /// can be truncated away.
    #[must_use]
    #[inline]
    pub fn begin_packet(&self, out: &mut Vec<u8>) -> usize {
        let start = out.len();
        out.extend_from_slice(&[0; HEAD_LEN]);
        start
    }

    /// Seals the packet that starts at `start` and extends to the end of `out`.
    ///
    /// # Errors
    /// [`SshError::TooMuch`] if the payload is longer than [`MAX_PAYLOAD`], [`SshError::Malformed`]
    /// if it is empty, [`SshError::Crypto`] when the keys are exhausted (2³² packets). The packet
    /// is removed from `out` then.
    pub fn seal_begun(&mut self, start: usize, out: &mut Vec<u8>) -> Result<(), SshError> {
        let done = self.seal_packet(start, out);
        if done.is_err() {
            out.truncate(start);
        }
        done
    }

    fn seal_packet(&mut self, start: usize, out: &mut Vec<u8>) -> Result<(), SshError> {
        self.count.check_has_next()?;
        let mut payload = payload_len(start, out)?;
        if let Some(deflater) = &mut self.deflater {
            deflater.compress_in_place(out, start + HEAD_LEN)?;
            payload = payload_len(start, out)?;
        }
        let block = self.cover.block_len();
        let mut padding = block - (HEAD_LEN + payload - self.cover.unpadded_len()) % block;
        if padding < MIN_PADDING {
            padding += block;
        }
        let length = HEAD_LEN - LENGTH_LEN + payload + padding;
        out.reserve(padding + self.cover.tag_len());
        self.padding.append_padding(padding, out);
        out.resize(out.len() + self.cover.tag_len(), 0);
        let packet = subslice_mut(out, start..);
        let (packet, tag) = packet.split_at_mut(LENGTH_LEN + length);
        if let [a, b, c, d, e, ..] = packet {
            [*a, *b, *c, *d] = narrow_int::<u32>(length).to_be_bytes();
            *e = narrow_int(padding);
        }
        self.cover.seal(self.count.sequence, packet, tag)?;
        self.count.count_packet(packet.len() + tag.len());
        Ok(())
    }

    /// Returns the sequence number of the next packet.
    #[must_use]
    pub const fn sequence(&self) -> u32 {
        self.count.sequence
    }

    /// Returns the number of packets since the last [`Sealer::set_keys`].
    #[must_use]
    pub const fn packets(&self) -> u64 {
        self.count.packets
    }

    /// Returns the number of bytes on the wire since the last [`Sealer::set_keys`].
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.count.bytes
    }
}

/// Returns the length of the payload of the packet that starts at `start`, in bytes.
fn payload_len(start: usize, out: &[u8]) -> Result<usize, SshError> {
    let len = out.len().saturating_sub(start).saturating_sub(HEAD_LEN);
    if len == 0 {
        return Err(SshError::Malformed("empty payload"));
    }
    if len > MAX_PAYLOAD {
        return Err(SshError::TooMuch {
            what: "payload to send",
            limit: MAX_PAYLOAD,
        });
    }
    Ok(len)
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Sealer({} at packet {})",
            self.cover.name(),
            self.count.sequence
        )
    }
}

impl Default for Sealer {
    fn default() -> Self {
        Self::new()
    }
}
