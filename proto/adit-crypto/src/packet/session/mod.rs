//! Opt-in packet encryption between two instances of adit: keys for each session and direction, counted
//! nonces, a replay window, and a server that can verify that its client is live.
//!
//! ```text
//! header 16 | AEAD(payload) | tag 16                         32 bytes more than the payload
//!
//! header = AES-256(id 8 | number u64 little-endian)           one block, ECB
//! number = counter, bits 0 to 55 | bound, bit 56 | ChaCha20-Poly1305, bit 57 | zero, bits 58 to 63
//! nonce  = zero 4 | number, little-endian 8                   no associated data
//! ```
//!
//! `id` is the sender's: each end draws a random one for a session. The counter starts at 0, increases by
//! one for each packet of that end, and ends at 2⁴⁰. The AEAD is AES-128-GCM or, with bit 57,
//! ChaCha20-Poly1305: the client chooses the faster one on its CPU and the server uses the same.
//!
//! Keys are derived from the 32 bytes that both ends share (for example those of
//! [`super::key_from_password`]) with BLAKE3's derive_key, under contexts that depend on the sender's role,
//! so that packets cannot be reflected:
//!
//! ```text
//! header key, 32     context "adit packet session v1 header, from the client" (or "… server")
//!                    material: the shared key
//! packet key, 16/32  context "adit packet session v1 packets, from the client" (or "… server")
//!                    material: the shared key | number's last byte | sender's id | receiver's id
//! ```
//!
//! A client that has not received a packet yet does not know the server's id: it uses zeros for it and
//! leaves bit 56 clear. All other packets are *bound* to both ids. What a client opens is therefore fresh.
//! What a server opens before the first bound packet may be a replay of the first packets of an earlier
//! session: [`PacketSession::is_confirmed`] returns true when it is not, and actions that must not be
//! repeated have to wait for that. A replay cannot go beyond these first packets, since it does not contain
//! the server's new id.
//!
//! The header looks random, and so does the rest: without the key, packets cannot be distinguished from
//! noise, nor two packets of one session from those of two. Ids of 8 bytes collide by chance after about
//! 2³² sessions under one key; after 2²⁰, which is many, the probability is 2⁻²⁵.
//!
//! If a client opens no packet for a long time, the server has removed its session: it starts a new one.

mod head;
mod key;

use core::fmt;
use core::ops::Range;

use adit_wire::{Overhead, ProtocolError, SlidingWindow};

use self::key::DirectionKey;
use crate::{CryptoError, TAG_LEN};

pub use adit_wire::Role;
pub use head::{SessionCipher, SessionHeader, SessionId};
pub use key::SessionKey;

const HEADER: usize = 16;
const COUNTER_BITS: u32 = 56;
const BOUND: u64 = 1 << COUNTER_BITS;
const CHACHA: u64 = 1 << 57;
/// Maximum number of packets of one end of a session: far below where GCM's limits matter.
const MAX_PACKETS: u64 = 1 << 40;

/// The space around a payload.
pub const SESSION_OVERHEAD: Overhead = Overhead {
    head: HEADER,
    tail: TAG_LEN,
    max_payload: usize::MAX,
};

/// One end of a session, both directions.
pub struct PacketSession {
    shared: SessionKey,
    role: Role,
    cipher: SessionCipher,
    own: SessionId,
    /// Unknown to a client until it has opened a packet.
    peer: Option<SessionId>,
    sealing: DirectionKey,
    sent: u64,
    /// The key of a client's first packets.
    early: Option<DirectionKey>,
    bound: Option<DirectionKey>,
    window: SlidingWindow,
    confirmed: bool,
}

impl PacketSession {
    /// Returns this end's identifier of the session.
    #[must_use]
    pub const fn id(&self) -> SessionId {
        self.own
    }

    /// Returns the peer's identifier of the session: on a server, the result of [`SessionHeader::id`] for all its
    /// packets.
    #[must_use]
    pub const fn peer_id(&self) -> Option<SessionId> {
        self.peer
    }

    /// Returns true if the peer has answered, so that the session is not a replay.
    #[must_use]
    pub const fn is_confirmed(&self) -> bool {
        self.confirmed
    }

    /// Seals `packet` in place; all of it is the datagram afterwards. The payload is between 16 bytes at
    /// the front and 16 at the end, which are overwritten ([`SESSION_OVERHEAD`]).
    ///
    /// # Errors
    /// [`CryptoError::Exhausted`] after 2⁴⁰ packets: the session has to be replaced.
    /// [`CryptoError::NoRoom`] if the packet is too short.
    pub fn seal(&mut self, packet: &mut [u8]) -> Result<(), CryptoError> {
        let (header, rest) = packet
            .split_first_chunk_mut::<HEADER>()
            .ok_or(CryptoError::NoRoom)?;
        let (payload, tag) = rest
            .split_last_chunk_mut::<TAG_LEN>()
            .ok_or(CryptoError::NoRoom)?;
        if self.sent >= MAX_PACKETS {
            return Err(CryptoError::Exhausted);
        }
        let number = self.sent | self.sealing.flags;
        self.sent += 1;
        *tag = self.sealing.seal_payload(number, payload)?;
        let (id, place) = header.split_at_mut(self.own.0.len());
        id.copy_from_slice(&self.own.0);
        place.copy_from_slice(&number.to_le_bytes());
        self.shared
            .0
            .contexts_of(self.role)
            .header
            .encrypt_block(header);
        Ok(())
    }

    /// Opens a packet whose header was decrypted by [`SessionKey::decrypt_header`], and returns the range of its
    /// payload.
    ///
    /// # Errors
    /// [`ProtocolError::Replayed`] if it was opened before or is too far behind the newest packet
    /// ([`SlidingWindow`]), [`ProtocolError::Unauthentic`] if it does not belong to this session or is damaged.
    /// Neither changes the session.
    pub fn open(
        &mut self,
        head: SessionHeader,
        packet: &mut [u8],
    ) -> Result<Range<usize>, ProtocolError> {
        if head.cipher() != Some(self.cipher) || self.peer.is_some_and(|peer| peer != head.id) {
            return Err(ProtocolError::Unauthentic);
        }
        if !self.window.would_accept(head.counter()) {
            return Err(ProtocolError::Replayed);
        }
        let payload = match (head.is_bound(), &self.bound, &self.early) {
            (true, Some(key), _) | (false, _, Some(key)) => key.open(head, packet)?,
            (true, None, _) => self.open_answer(head, packet)?,
            (false, _, None) => return Err(ProtocolError::Unauthentic),
        };
        self.window.accept(head.counter());
        self.confirmed |= head.is_bound();
        Ok(payload)
    }

    /// Opens the first packet from the server, whose id is known from now on.
    fn open_answer(
        &mut self,
        head: SessionHeader,
        packet: &mut [u8],
    ) -> Result<Range<usize>, ProtocolError> {
        let keys = &self.shared.0;
        let from = self.role.peer();
        let bound = keys.packet_key(from, self.cipher, head.id, Some(self.own))?;
        let payload = bound.open(head, packet)?;
        let peer = Some(head.id);
        self.sealing = keys.packet_key(self.role, self.cipher, self.own, peer)?;
        self.peer = peer;
        self.bound = Some(bound);
        Ok(payload)
    }
}

impl fmt::Debug for PacketSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PacketSession")
            .field("role", &self.role)
            .field("cipher", &self.cipher)
            .field("confirmed", &self.confirmed)
            .finish_non_exhaustive()
    }
}
