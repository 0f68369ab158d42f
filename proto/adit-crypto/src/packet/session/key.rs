//! The shared key, and the keys derived from it.

use core::fmt;
use core::ops::Range;
use std::sync::Arc;

use adit_wire::{Broken, Entropy, SlidingWindow};

use super::{BOUND, COUNTER_BITS, HEADER, Head, PacketSession, Role, SessionCipher, SessionId};
use crate::{AeadKey, CryptoError, HeaderCipher, KdfContext, Secret, TAG_LEN};

/// The secret that both ends share, for all sessions; cheap to clone, cleared with the last clone.
#[derive(Clone)]
pub struct SessionKey(pub(super) Arc<Shared>);

pub(super) struct Shared {
    key: Secret<[u8; 32]>,
    client: Contexts,
    server: Contexts,
}

/// The key derivation contexts for the packets of one role.
pub(super) struct Contexts {
    pub(super) header: HeaderCipher,
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
    pub(super) const fn of(&self, role: Role) -> &Contexts {
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
    /// Creates a session key from the shared key.
    pub fn new(key: &[u8; 32]) -> Result<Self, CryptoError> {
        Ok(Self(Arc::new(Shared {
            key: Secret::new(*key),
            client: Contexts::new(key, "client")?,
            server: Contexts::new(key, "server")?,
        })))
    }

    /// Starts a session as the client.
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

    /// Decrypts the header of a packet from that end; returns `None` if the packet is too short.
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

    /// Opens the first packet of a session that the server does not have, and creates the session.
    ///
    /// # Errors
    /// [`Broken::Unauthentic`] for any other packet, including later packets of a session that was removed.
    /// Finding this out costs about a microsecond.
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

/// The key of one direction, or of its unbound first packets.
pub(super) struct PacketsKey {
    aead: AeadKey,
    /// The bits of the number beside the counter.
    pub(super) flags: u64,
}

impl PacketsKey {
    pub(super) fn seal(
        &self,
        number: u64,
        payload: &mut [u8],
    ) -> Result<[u8; TAG_LEN], CryptoError> {
        self.aead.seal_in_place(&nonce(number), payload)
    }

    pub(super) fn open(&self, head: Head, packet: &mut [u8]) -> Result<Range<usize>, Broken> {
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
