//! Packets: `IV ‖ cipher(protocol(target header ‖ payload))`, with the cipher restarted for each
//! packet.

use core::fmt;
use core::ops::Range;
use std::sync::Arc;

use adit_crypto::{Direction, StreamKey};
use adit_wire::{Entropy, HandshakeProgress, ProtocolError, Target, encode_addr, subslice};

use super::{ServerStack, cipher_fault, header};
use crate::PacketAssociation;
use crate::field::{put_field, range_around, range_mut};

/// The packet codec of a client's association.
pub struct PacketClient {
    cipher: Arc<StreamKey>,
    association: PacketAssociation,
    header: Vec<u8>,
}

/// The sealing codec of a server's packets to one user.
pub struct PacketServer {
    stack: Arc<ServerStack>,
    uid: Option<u32>,
    header: Vec<u8>,
}

impl PacketClient {
    pub(super) const fn new(cipher: Arc<StreamKey>, association: PacketAssociation) -> Self {
        Self {
            cipher,
            association,
            header: Vec::new(),
        }
    }

    /// Seals `packet[payload]` for `target` and returns the range of the packet. The packet needs
    /// room for IV and header in front of the payload (283 bytes suffice for any) and
    /// [`crate::PACKET_TAIL`] bytes after it.
    ///
    /// # Errors
    ///
    /// Fails if there is too little room.
    pub fn seal_packet(
        &mut self,
        packet: &mut [u8],
        payload: Range<usize>,
        target: &Target,
        entropy: &mut dyn Entropy,
    ) -> Result<Range<usize>, ProtocolError> {
        let plain = put_target(packet, &payload, target, &mut self.header)?;
        let inner = self.association.seal_packet(packet, plain, entropy)?;
        encrypt_packet(&self.cipher, packet, &inner, entropy)
    }

    /// Opens a server's packet and returns the source and the range of its data.
    ///
    /// # Errors
    ///
    /// Fails if the packet is malformed or not authentic.
    pub fn open_packet(&self, packet: &mut [u8]) -> Result<(Target, Range<usize>), ProtocolError> {
        let start = decrypt_packet(&self.cipher, packet)?;
        let inner = range_mut(packet, start..packet.len())?;
        let data = self.association.open_packet(inner)?;
        take_target(inner, data, start)
    }
}

impl fmt::Debug for PacketClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PacketClient")
            .field("cipher", &self.cipher)
            .field("association", &self.association)
            .finish_non_exhaustive()
    }
}

impl ServerStack {
    /// Opens a client's packet and returns the user, if the port has users, the target, and the
    /// range of the payload.
    ///
    /// # Errors
    ///
    /// Fails if the packet is malformed or not authentic, or if the user is unknown.
    pub fn open_packet(
        &self,
        packet: &mut [u8],
    ) -> Result<(Option<u32>, Target, Range<usize>), ProtocolError> {
        let start = decrypt_packet(&self.cipher, packet)?;
        let inner = range_mut(packet, start..packet.len())?;
        let (uid, data) = self.server.open_packet(inner)?;
        let (target, payload) = take_target(inner, data, start)?;
        Ok((uid, target, payload))
    }

    /// Creates the codec of answers to a user, as returned by [`open_packet`](Self::open_packet).
    #[must_use]
    pub fn answer_codec(self: &Arc<Self>, uid: Option<u32>) -> PacketServer {
        PacketServer {
            stack: self.clone(),
            uid,
            header: Vec::new(),
        }
    }
}

impl PacketServer {
    /// Seals `packet[payload]`, received from `source`; room as for [`PacketClient::seal_packet`].
    ///
    /// # Errors
    ///
    /// Fails if there is too little room or if the user is unknown.
    pub fn seal_packet(
        &mut self,
        packet: &mut [u8],
        payload: Range<usize>,
        source: &Target,
        entropy: &mut dyn Entropy,
    ) -> Result<Range<usize>, ProtocolError> {
        let plain = put_target(packet, &payload, source, &mut self.header)?;
        let ServerStack { cipher, server } = &*self.stack;
        let inner = server.seal_packet(self.uid, packet, plain, entropy)?;
        encrypt_packet(cipher, packet, &inner, entropy)
    }
}

impl fmt::Debug for PacketServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PacketServer")
            .field("stack", &self.stack)
            .field("uid", &self.uid)
            .finish_non_exhaustive()
    }
}

fn put_target(
    packet: &mut [u8],
    payload: &Range<usize>,
    target: &Target,
    header: &mut Vec<u8>,
) -> Result<Range<usize>, ProtocolError> {
    header.clear();
    encode_addr(target, header);
    let range = range_around(packet, payload, header.len(), 0)?;
    put_field(packet, range.start, header)?;
    Ok(range)
}

/// Reads the header at the start of `inner[data]` and returns its target and the range after it,
/// counted from the packet's start.
fn take_target(
    inner: &[u8],
    data: Range<usize>,
    start: usize,
) -> Result<(Target, Range<usize>), ProtocolError> {
    let plain = subslice(inner, data.clone());
    match header::read_header(plain, false)? {
        HandshakeProgress::Done((header, _)) if header.datagrams => {
            Err(ProtocolError::Malformed("target header: nested datagrams"))
        }
        HandshakeProgress::Done((header, len)) => {
            Ok((header.target, start + data.start + len..start + data.end))
        }
        HandshakeProgress::NeedMore { .. } => {
            Err(ProtocolError::Truncated("a packet's target header"))
        }
    }
}

/// Encrypts `packet[inner]` and writes a new IV in front of it.
fn encrypt_packet(
    key: &StreamKey,
    packet: &mut [u8],
    inner: &Range<usize>,
    entropy: &mut dyn Entropy,
) -> Result<Range<usize>, ProtocolError> {
    let range = range_around(packet, inner, key.kind().iv_len(), 0)?;
    let place = range_mut(packet, range.start..inner.start)?;
    entropy.fill(place);
    let mut cipher = key
        .start_stream(place, Direction::Encrypt)
        .map_err(cipher_fault)?;
    cipher.apply(range_mut(packet, inner.clone())?);
    Ok(range)
}

/// Decrypts the bytes after the IV and returns their start.
fn decrypt_packet(key: &StreamKey, packet: &mut [u8]) -> Result<usize, ProtocolError> {
    let start = key.kind().iv_len();
    let short = ProtocolError::Truncated("a packet");
    let (iv, inner) = packet.split_at_mut_checked(start).ok_or(short)?;
    let mut cipher = key
        .start_stream(iv, Direction::Decrypt)
        .map_err(cipher_fault)?;
    cipher.apply(inner);
    Ok(start)
}
