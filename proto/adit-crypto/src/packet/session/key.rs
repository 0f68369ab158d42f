//! The shared key, and the keys derived from it.

use core::fmt;
use core::ops::Range;
use std::sync::Arc;

use adit_wire::{Entropy, ProtocolError, SlidingWindow};

use super::{
    BOUND, COUNTER_BITS, HEADER, PacketSession, Role, SessionCipher, SessionHeader, SessionId,
};
use crate::{AeadKey, CryptoError, HeaderCipher, KdfContext, Secret, TAG_LEN};

/// The secret that both ends share, for all sessions; cheap to clone, cleared with the last clone.
#[derive(Clone)]
pub struct SessionKey(pub(super) Arc<SharedKeys>);

pub(super) struct SharedKeys {
    key: Secret<[u8; 32]>,
    client: RoleContexts,
    server: RoleContexts,
}

/// The key derivation contexts for the packets of one role.
pub(super) struct RoleContexts {
    pub(super) header: HeaderCipher,
    packets: KdfContext,
}

impl RoleContexts {
    fn new(key: &[u8; 32], role: &str) -> Result<Self, CryptoError> {
        let context =
            |what| KdfContext::new(&format!("adit packet session v1 {what}, from the {role}"));
        let mut header = Secret::new([0; 32]);
        context("header").derive_key(&[key], header.expose_mut());
        Ok(Self {
            header: HeaderCipher::new(header.expose())?,
            packets: context("packets"),
        })
    }
}

impl SharedKeys {
    pub(super) const fn contexts_of(&self, role: Role) -> &RoleContexts {
        match role {
            Role::Client => &self.client,
            Role::Server => &self.server,
        }
    }

    /// Derives the key of a sender's packets, bound to both ends if its peer is known.
    pub(super) fn packet_key(
        &self,
        from: Role,
        cipher: SessionCipher,
        sender: SessionId,
        receiver: Option<SessionId>,
    ) -> Result<DirectionKey, CryptoError> {
        let flags = cipher.flag_bit() | if receiver.is_some() { BOUND } else { 0 };
        let last = (flags >> COUNTER_BITS).to_le_bytes()[0];
        let receiver = receiver.map_or([0; 8], |id| id.0);
        let material = [self.key.expose(), &[last][..], &sender.0, &receiver];
        let mut key = Secret::new([0; 32]);
        let (key, _) = key.expose_mut().split_at_mut(cipher.aead_kind().key_len());
        self.contexts_of(from).packets.derive_key(&material, key);
        let aead = AeadKey::new(cipher.aead_kind(), key)?;
        Ok(DirectionKey { aead, flags })
    }
}

impl SessionKey {
    /// Creates a session key from the shared key.
    ///
    /// # Errors
    /// The error of a cipher that refuses its key. The lengths are correct by construction, so none is expected.
    pub fn new(key: &[u8; 32]) -> Result<Self, CryptoError> {
        Ok(Self(Arc::new(SharedKeys {
            key: Secret::new(*key),
            client: RoleContexts::new(key, "client")?,
            server: RoleContexts::new(key, "server")?,
        })))
    }

    /// Starts a session as the client.
    ///
    /// # Errors
    /// See [`new`](Self::new).
    pub fn connect(
        &self,
        cipher: SessionCipher,
        rng: &mut dyn Entropy,
    ) -> Result<PacketSession, CryptoError> {
        let own = SessionId::random(rng);
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

    /// Decrypts the header of a packet from that end; returns `None` if the packet is too short.
    #[must_use]
    pub fn decrypt_header(&self, from: Role, packet: &[u8]) -> Option<SessionHeader> {
        let (header, rest) = packet.split_first_chunk::<HEADER>()?;
        if rest.len() < TAG_LEN {
            return None;
        }
        let mut header = *header;
        self.0.contexts_of(from).header.decrypt_block(&mut header);
        let (id, number) = header.split_first_chunk()?;
        Some(SessionHeader {
            id: SessionId(*id),
            number: u64::from_le_bytes(number.try_into().ok()?),
        })
    }

    /// Opens the first packet of a session that the server does not have, and creates the session.
    ///
    /// # Errors
    /// [`ProtocolError::Unauthentic`] for any other packet, including later packets of a session that was removed.
    /// Finding this out costs about a microsecond.
    pub fn accept(
        &self,
        head: SessionHeader,
        packet: &mut [u8],
        rng: &mut dyn Entropy,
    ) -> Result<(PacketSession, Range<usize>), ProtocolError> {
        let (Some(cipher), false) = (head.cipher(), head.is_bound()) else {
            return Err(ProtocolError::Unauthentic);
        };
        let early = self.0.packet_key(Role::Client, cipher, head.id, None)?;
        let payload = early.open(head, packet)?;
        let mut window = SlidingWindow::default();
        window.accept(head.counter());
        let (own, peer) = (SessionId::random(rng), Some(head.id));
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

/// The key of one direction, or of its unbound first packets.
pub(super) struct DirectionKey {
    aead: AeadKey,
    /// The bits of the number beside the counter.
    pub(super) flags: u64,
}

impl DirectionKey {
    pub(super) fn seal_payload(
        &self,
        number: u64,
        payload: &mut [u8],
    ) -> Result<[u8; TAG_LEN], CryptoError> {
        self.aead.seal_in_place(&packet_nonce(number), payload)
    }

    pub(super) fn open(
        &self,
        head: SessionHeader,
        packet: &mut [u8],
    ) -> Result<Range<usize>, ProtocolError> {
        let end = packet.len().saturating_sub(TAG_LEN);
        let sealed = packet.get_mut(HEADER..).ok_or(ProtocolError::Unauthentic)?;
        let (ciphertext, tag) = sealed
            .split_last_chunk_mut::<TAG_LEN>()
            .ok_or(ProtocolError::Unauthentic)?;
        self.aead
            .open_in_place(&packet_nonce(head.number), ciphertext, tag)?;
        Ok(HEADER..end)
    }
}

fn packet_nonce(number: u64) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&number.to_le_bytes());
    nonce
}
