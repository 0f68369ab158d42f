//! Packet encryption between two adits, opt-in: keys for each session and direction, counted
//! nonces, a replay window, and a server that knows when its client is alive.
//!
//! ```text
//! header 16 | AEAD(payload) | tag 16                         32 bytes more than the payload
//!
//! header = AES-256(id 8 | number u64 little-endian)           one block, ECB
//! number = counter, bits 0 to 55 | bound, bit 56 | ChaCha20-Poly1305, bit 57 | zero, bits 58 to 63
//! nonce  = zero 4 | number, little-endian 8                   no associated data
//! ```
//!
//! `id` is the sender's: each end draws one at random for a session. The counter starts at 0, is
//! one more for each packet of that end, and ends at 2⁴⁰. The AEAD is AES-128-GCM or, with bit 57,
//! ChaCha20-Poly1305: the client takes what its CPU is faster at and the server does the same.
//!
//! Keys come from the 32 bytes that both ends share (say those of [`super::key_from_password`]), by
//! BLAKE3's derive_key, under contexts that differ for the sender's role, so that nothing can be
//! reflected:
//!
//! ```text
//! header key, 32     context "adit packet session v1 header, from the client" (or "… server")
//!                    material: the shared key
//! packet key, 16/32  context "adit packet session v1 packets, from the client" (or "… server")
//!                    material: the shared key | number's last byte | sender's id | receiver's id
//! ```
//!
//! A client that has heard nothing yet does not know the server's id: it puts zeros there and leaves
//! bit 56 clear. All other packets are *bound* to both ids. What a client opens is therefore fresh.
//! What a server opens before the first bound packet may be a recording of an earlier session's
//! beginning: [`PacketSession::is_confirmed`] says when it is not, and whatever must not happen twice
//! has to wait for that. No recording goes on behind its beginning, since the server's new id is
//! not in it.
//!
//! The header looks random, and so does the rest: without the key no packet can be told from noise,
//! nor two packets of one session from those of two. Ids of 8 bytes collide by chance after about
//! 2³² sessions under one key; after 2²⁰, which is many, the odds are 2⁻²⁵.
//!
//! A client that opens nothing for long has a server that forgot it: it starts a new session.

use core::fmt;
use core::ops::Range;
use std::sync::Arc;

use adit_wire::{Broken, Entropy, Room, SlidingWindow};

use crate::{AeadKey, AeadKind, CryptoError, HeaderCipher, KdfContext, Secret, TAG_LEN};

const HEADER: usize = 16;
const COUNTER_BITS: u32 = 56;
const BOUND: u64 = 1 << COUNTER_BITS;
const CHACHA: u64 = 1 << 57;
/// Packets of one end of a session: far below where GCM's bounds matter.
const PACKETS: u64 = 1 << 40;

/// Room around a payload.
pub const ROOM: Room = Room {
    head: HEADER,
    tail: TAG_LEN,
    max: usize::MAX,
};

/// Which end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The end that starts sessions
    Client,
    /// The end that accepts them
    Server,
}

impl Role {
    const fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// What a session is sealed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SessionCipher {
    /// AES-128-GCM
    Aes128Gcm,
    /// ChaCha20-Poly1305
    ChaCha20Poly1305,
}

impl SessionCipher {
    /// AES where the CPU has instructions for it and for GCM's multiplication.
    #[must_use]
    pub fn of_this_cpu() -> Self {
        #[cfg(target_arch = "x86_64")]
        let aes = is_x86_feature_detected!("aes") && is_x86_feature_detected!("pclmulqdq");
        #[cfg(target_arch = "aarch64")]
        let aes = std::arch::is_aarch64_feature_detected!("aes")
            && std::arch::is_aarch64_feature_detected!("pmull");
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let aes = false;
        if aes {
            Self::Aes128Gcm
        } else {
            Self::ChaCha20Poly1305
        }
    }

    const fn kind(self) -> AeadKind {
        match self {
            Self::Aes128Gcm => AeadKind::Aes128Gcm,
            Self::ChaCha20Poly1305 => AeadKind::ChaCha20Poly1305,
        }
    }

    const fn bit(self) -> u64 {
        match self {
            Self::Aes128Gcm => 0,
            Self::ChaCha20Poly1305 => CHACHA,
        }
    }
}

/// An end's name for a session; a server finds the session by it, wherever the packet came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionId([u8; 8]);

impl SessionId {
    fn draw(chance: &mut dyn Entropy) -> Self {
        let mut id = [0; 8];
        chance.fill(&mut id);
        Self(id)
    }
}

/// A packet's header in the clear. It is authentic only once the packet has been opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    id: SessionId,
    number: u64,
}

impl Head {
    /// The sender's name for the session.
    #[must_use]
    pub const fn id(&self) -> SessionId {
        self.id
    }

    const fn counter(&self) -> u64 {
        self.number & (BOUND - 1)
    }

    /// None: bits that mean nothing.
    const fn cipher(&self) -> Option<SessionCipher> {
        if self.number >> 58 != 0 {
            None
        } else if self.number & CHACHA == 0 {
            Some(SessionCipher::Aes128Gcm)
        } else {
            Some(SessionCipher::ChaCha20Poly1305)
        }
    }

    const fn is_bound(&self) -> bool {
        self.number & BOUND != 0
    }
}

/// What both ends share, for all sessions; cheap to clone, cleared with the last of them.
#[derive(Clone)]
pub struct SessionKey(Arc<Shared>);

struct Shared {
    key: Secret<[u8; 32]>,
    client: Contexts,
    server: Contexts,
}

/// What the packets of one role are made with.
struct Contexts {
    header: HeaderCipher,
    packets: KdfContext,
}

impl Contexts {
    fn new(key: &[u8; 32], role: &str) -> Result<Self, CryptoError> {
        let context =
            |what| KdfContext::new(&format!("adit packet session v1 {what}, from the {role}"));
        let mut header = Secret::new([0; 32]);
        context("header").derive(&[key], header.expose_mut());
        Ok(Self {
            header: HeaderCipher::new(header.expose())?,
            packets: context("packets"),
        })
    }
}

impl Shared {
    const fn of(&self, role: Role) -> &Contexts {
        match role {
            Role::Client => &self.client,
            Role::Server => &self.server,
        }
    }

    /// The key of a sender's packets, bound if its peer is known.
    fn packet_key(
        &self,
        from: Role,
        cipher: SessionCipher,
        sender: SessionId,
        receiver: Option<SessionId>,
    ) -> Result<PacketsKey, CryptoError> {
        let flags = cipher.bit() | if receiver.is_some() { BOUND } else { 0 };
        let last = (flags >> COUNTER_BITS).to_le_bytes()[0];
        let receiver = receiver.map_or([0; 8], |id| id.0);
        let material = [self.key.expose(), &[last][..], &sender.0, &receiver];
        let mut key = Secret::new([0; 32]);
        let (key, _) = key.expose_mut().split_at_mut(cipher.kind().key_len());
        self.of(from).packets.derive(&material, key);
        let aead = AeadKey::new(cipher.kind(), key)?;
        Ok(PacketsKey { aead, flags })
    }
}

impl SessionKey {
    /// From the shared key.
    pub fn new(key: &[u8; 32]) -> Result<Self, CryptoError> {
        Ok(Self(Arc::new(Shared {
            key: Secret::new(*key),
            client: Contexts::new(key, "client")?,
            server: Contexts::new(key, "server")?,
        })))
    }

    /// Starts a session, as its client.
    pub fn connect(
        &self,
        cipher: SessionCipher,
        chance: &mut dyn Entropy,
    ) -> Result<PacketSession, CryptoError> {
        let own = SessionId::draw(chance);
        Ok(PacketSession {
            shared: Self::clone(self),
            role: Role::Client,
            cipher,
            own,
            peer: None,
            sealing: self.0.packet_key(Role::Client, cipher, own, None)?,
            sent: 0,
            early: None,
            bound: None,
            window: SlidingWindow::default(),
            confirmed: false,
        })
    }

    /// The header of a packet from that end; None if the packet is too short for one.
    #[must_use]
    pub fn head(&self, from: Role, packet: &[u8]) -> Option<Head> {
        let (header, rest) = packet.split_first_chunk::<HEADER>()?;
        if rest.len() < TAG_LEN {
            return None;
        }
        let mut header = *header;
        self.0.of(from).header.decrypt(&mut header);
        let (id, number) = header.split_first_chunk()?;
        Some(Head {
            id: SessionId(*id),
            number: u64::from_le_bytes(number.try_into().ok()?),
        })
    }

    /// Opens the first packet of a session that the server does not have, and makes the session.
    ///
    /// [`Broken::Unauthentic`] for anything else, so also for later packets of a session that was
    /// forgotten. Costs about a microsecond before that is known.
    pub fn accept(
        &self,
        head: Head,
        packet: &mut [u8],
        chance: &mut dyn Entropy,
    ) -> Result<(PacketSession, Range<usize>), Broken> {
        let (Some(cipher), false) = (head.cipher(), head.is_bound()) else {
            return Err(Broken::Unauthentic);
        };
        let early = self.0.packet_key(Role::Client, cipher, head.id, None)?;
        let payload = early.open(head, packet)?;
        let mut window = SlidingWindow::default();
        window.mark(head.counter());
        let (own, peer) = (SessionId::draw(chance), Some(head.id));
        let session = PacketSession {
            shared: Self::clone(self),
            role: Role::Server,
            cipher,
            own,
            peer,
            sealing: self.0.packet_key(Role::Server, cipher, own, peer)?,
            sent: 0,
            early: Some(early),
            bound: Some(
                self.0
                    .packet_key(Role::Client, cipher, head.id, Some(own))?,
            ),
            window,
            confirmed: false,
        };
        Ok((session, payload))
    }
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionKey(***)")
    }
}

/// The key of one direction, or of its beginning.
struct PacketsKey {
    aead: AeadKey,
    /// The bits of the number that are not the counter.
    flags: u64,
}

impl PacketsKey {
    fn seal(&self, number: u64, payload: &mut [u8]) -> Result<[u8; TAG_LEN], CryptoError> {
        self.aead.seal_in_place(&nonce(number), payload)
    }

    fn open(&self, head: Head, packet: &mut [u8]) -> Result<Range<usize>, Broken> {
        let end = packet.len().saturating_sub(TAG_LEN);
        let sealed = packet.get_mut(HEADER..).ok_or(Broken::Unauthentic)?;
        let (ciphertext, tag) = sealed
            .split_last_chunk_mut::<TAG_LEN>()
            .ok_or(Broken::Unauthentic)?;
        self.aead
            .open_in_place(&nonce(head.number), ciphertext, tag)?;
        Ok(HEADER..end)
    }
}

fn nonce(number: u64) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&number.to_le_bytes());
    nonce
}

/// One end of a session, both directions.
pub struct PacketSession {
    shared: SessionKey,
    role: Role,
    cipher: SessionCipher,
    own: SessionId,
    /// Unknown to a client until it has opened a packet.
    peer: Option<SessionId>,
    sealing: PacketsKey,
    sent: u64,
    /// For the beginning of a client's packets.
    early: Option<PacketsKey>,
    bound: Option<PacketsKey>,
    window: SlidingWindow,
    confirmed: bool,
}

impl PacketSession {
    /// This end's name for the session.
    #[must_use]
    pub const fn id(&self) -> SessionId {
        self.own
    }

    /// The peer's name for it: on a server what [`Head::id`] says for all its packets.
    #[must_use]
    pub const fn peer_id(&self) -> Option<SessionId> {
        self.peer
    }

    /// Whether the peer has answered, so that it is no recording.
    #[must_use]
    pub const fn is_confirmed(&self) -> bool {
        self.confirmed
    }

    /// Seals `packet` in place: all of it is the datagram then. The payload stands between the 16
    /// bytes at the front and the 16 at the end that are written over ([`ROOM`]).
    ///
    /// [`CryptoError::Exhausted`] after 2⁴⁰ packets: the session has to be replaced.
    pub fn seal(&mut self, packet: &mut [u8]) -> Result<(), CryptoError> {
        let (header, rest) = packet
            .split_first_chunk_mut::<HEADER>()
            .ok_or(CryptoError::NoRoom)?;
        let (payload, tag) = rest
            .split_last_chunk_mut::<TAG_LEN>()
            .ok_or(CryptoError::NoRoom)?;
        if self.sent >= PACKETS {
            return Err(CryptoError::Exhausted);
        }
        let number = self.sent | self.sealing.flags;
        self.sent += 1;
        *tag = self.sealing.seal(number, payload)?;
        let (id, place) = header.split_at_mut(self.own.0.len());
        id.copy_from_slice(&self.own.0);
        place.copy_from_slice(&number.to_le_bytes());
        self.shared.0.of(self.role).header.encrypt(header);
        Ok(())
    }

    /// Opens a packet, whose header [`SessionKey::head`] has read, and says where its payload lies.
    ///
    /// [`Broken::Replayed`]: opened before, or too far behind the newest ([`SlidingWindow`]).
    /// [`Broken::Unauthentic`]: not of this session, or damaged. Neither changes the session.
    pub fn open(&mut self, head: Head, packet: &mut [u8]) -> Result<Range<usize>, Broken> {
        if head.cipher() != Some(self.cipher) || self.peer.is_some_and(|peer| peer != head.id) {
            return Err(Broken::Unauthentic);
        }
        if !self.window.check(head.counter()) {
            return Err(Broken::Replayed);
        }
        let payload = match (head.is_bound(), &self.bound, &self.early) {
            (true, Some(key), _) | (false, _, Some(key)) => key.open(head, packet)?,
            (true, None, _) => self.open_answer(head, packet)?,
            (false, _, None) => return Err(Broken::Unauthentic),
        };
        self.window.mark(head.counter());
        self.confirmed |= head.is_bound();
        Ok(payload)
    }

    /// The first packet from the server: from now on its id is known.
    fn open_answer(&mut self, head: Head, packet: &mut [u8]) -> Result<Range<usize>, Broken> {
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
