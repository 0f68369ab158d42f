//! The sealing side of both roles: with a session, or without one.

use core::ops::Range;

use adit_wire::{Entropy, ProtocolError, Target, UnixTime, encode_addr};

use super::packet::{
    BodyKey, CachedBodyKey, NONCE_LEN, OutgoingPacket, PacketIds, outer_len, put_head,
};
use super::sessionless;
use crate::key::PacketCipher;
use crate::padding::choose_datagram_padding;
use crate::{Edition, Key, KeyChain};

/// Seals packets with its own packet counter.
pub(super) struct PacketSender {
    chain: KeyChain,
    /// `None` in the editions without sessions.
    session: Option<SenderSession>,
    /// The plaintext before the data: the head of a body, or only an address.
    head: Vec<u8>,
    /// The inputs of `head`, unless it has padding. Most packets repeat them, so the head can be
    /// reused.
    head_inputs: Option<(Target, UnixTime)>,
}

struct SenderSession {
    id: u64,
    body_key: CachedBodyKey,
    next: u64,
    /// The client's session that a server answers.
    answers: Option<u64>,
}

impl PacketSender {
    /// Creates a session with a random id, which `answers` a client's session if it is a server's.
    pub(super) fn new(chain: KeyChain, answers: Option<u64>, entropy: &mut dyn Entropy) -> Self {
        let session = (chain.method().edition() == Edition::Aead2022).then(|| {
            let mut id = [0; 8];
            entropy.fill(&mut id);
            // 0 is never used: some peers take it for "none".
            let id = u64::from_be_bytes(id).max(1);
            SenderSession {
                id,
                body_key: CachedBodyKey::default(),
                next: 0,
                answers,
            }
        });
        Self {
            chain,
            session,
            head: Vec::new(),
            head_inputs: None,
        }
    }

    pub(super) const fn key(&self) -> &Key {
        self.chain.user_key()
    }

    /// Returns the session's id, in the edition that has sessions.
    pub(super) fn session_id(&self) -> Option<u64> {
        self.session.as_ref().map(|session| session.id)
    }

    /// Seals `packet[payload]` with the address of `peer`: a target or a source.
    pub(super) fn seal(
        &mut self,
        packet: &mut [u8],
        payload: Range<usize>,
        peer: &Target,
        now: UnixTime,
        entropy: &mut dyn Entropy,
    ) -> Result<Range<usize>, ProtocolError> {
        let Some(session) = &mut self.session else {
            self.head.clear();
            encode_addr(peer, &mut self.head);
            let key = self.chain.user_key();
            return sessionless::seal_packet(key, &self.head, packet, payload, entropy);
        };
        let repeats = self.head_inputs.as_ref();
        if !repeats.is_some_and(|(said, at)| *at == now && said == peer) {
            self.head.clear();
            put_head(&mut self.head, session.answers, now, &[], peer);
            self.head_inputs = Some((peer.clone(), now));
        }
        let before = outer_len(&self.chain) + self.head.len();
        let spare = payload.start.saturating_sub(before);
        let padding = choose_datagram_padding(peer.port, payload.len(), spare, entropy);
        if !padding.is_empty() {
            self.head.clear();
            put_head(&mut self.head, session.answers, now, padding, peer);
            self.head_inputs = None;
        }
        let mut out = session.next_packet(&self.head)?;
        if let PacketCipher::ChaCha(_) = self.chain.user_key().packet_cipher() {
            entropy.fill(&mut out.nonce);
        }
        let (chain, key) = (&self.chain, self.chain.user_key().material());
        let seal = |body_key: &BodyKey| out.seal_packet(chain, body_key, packet, payload);
        let derive = || Ok(BodyKey::derive(key, session.id));
        session.body_key.with_key(derive, seal)
    }
}

impl SenderSession {
    /// Returns the next packet's header. The last packet id is never used, so that the counter
    /// cannot wrap.
    fn next_packet<'a>(&mut self, head: &'a [u8]) -> Result<OutgoingPacket<'a>, ProtocolError> {
        let packet = self.next;
        self.next = packet
            .checked_add(1)
            .ok_or(ProtocolError::Exhausted("the packet counter"))?;
        Ok(OutgoingPacket {
            ids: PacketIds {
                session: self.id,
                packet,
            },
            head,
            nonce: [0; NONCE_LEN],
        })
    }
}

#[cfg(test)]
impl PacketSender {
    /// Sets the next packet id.
    pub(super) fn set_next(&mut self, next: u64) {
        self.session.as_mut().unwrap().next = next;
    }

    /// Seals with padding and nonce from a golden vector.
    pub(super) fn seal_as(
        &mut self,
        packet: &mut [u8],
        payload: Range<usize>,
        peer: &Target,
        stamp: UnixTime,
        (padding, nonce): (&[u8], [u8; NONCE_LEN]),
    ) -> Result<Range<usize>, ProtocolError> {
        let session = self.session.as_mut().unwrap();
        self.head.clear();
        self.head_inputs = None;
        put_head(&mut self.head, session.answers, stamp, padding, peer);
        let mut out = session.next_packet(&self.head)?;
        out.nonce = nonce;
        let (chain, key) = (&self.chain, self.chain.user_key().material());
        let seal = |body_key: &BodyKey| out.seal_packet(chain, body_key, packet, payload);
        let derive = || Ok(BodyKey::derive(key, session.id));
        session.body_key.with_key(derive, seal)
    }
}
