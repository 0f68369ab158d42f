//! The sealing side of both roles: with a session, or without one.

use core::ops::Range;

use adit_wire::{Broken, Entropy, Target, Unix, put_addr};

use super::packet::{BodyKey, Ids, NONCE_LEN, Outgoing, SessionKey, outside_len, put_head};
use super::{padding, single};
use crate::key::PacketCipher;
use crate::{Edition, Key, KeyChain};

/// Seals packets with its own packet counter.
pub(super) struct Sender {
    chain: KeyChain,
    /// `None` in the editions without sessions.
    session: Option<Session>,
    /// The plaintext before the data: the head of a body, or only an address.
    head: Vec<u8>,
    /// The inputs of `head`, unless it has padding. Most packets repeat them, so the head can be
    /// reused.
    says: Option<(Target, Unix)>,
}

struct Session {
    id: u64,
    body_key: SessionKey,
    next: u64,
    /// The client's session that a server answers.
    answers: Option<u64>,
}

impl Sender {
    /// Creates a session with a random id, which `answers` a client's session if it is a server's.
    pub(super) fn new(chain: KeyChain, answers: Option<u64>, entropy: &mut dyn Entropy) -> Self {
        let session = (chain.method().edition() == Edition::Aead2022).then(|| {
            let mut id = [0; 8];
            entropy.fill(&mut id);
            // 0 is never used: some peers take it for "none".
            let id = u64::from_be_bytes(id).max(1);
            Session {
                id,
                body_key: SessionKey::default(),
                next: 0,
                answers,
            }
        });
        Self {
            chain,
            session,
            head: Vec::new(),
            says: None,
        }
    }

    pub(super) const fn key(&self) -> &Key {
        self.chain.key()
    }

    /// Returns the session's id, in the edition that has sessions.
    pub(super) fn session(&self) -> Option<u64> {
        self.session.as_ref().map(|session| session.id)
    }

    /// Seals `packet[payload]` with the address of `peer`: a target or a source.
    pub(super) fn seal(
        &mut self,
        packet: &mut [u8],
        payload: Range<usize>,
        peer: &Target,
        now: Unix,
        entropy: &mut dyn Entropy,
    ) -> Result<Range<usize>, Broken> {
        let Some(session) = &mut self.session else {
            self.head.clear();
            put_addr(peer, &mut self.head);
            let key = self.chain.key();
            return single::seal(key, &self.head, packet, payload, entropy);
        };
        let repeats = self.says.as_ref();
        if !repeats.is_some_and(|(said, at)| *at == now && said == peer) {
            self.head.clear();
            put_head(&mut self.head, session.answers, now, &[], peer);
            self.says = Some((peer.clone(), now));
        }
        let before = outside_len(&self.chain) + self.head.len();
        let spare = payload.start.saturating_sub(before);
        let padding = padding::draw(peer.port, payload.len(), spare, entropy);
        if !padding.is_empty() {
            self.head.clear();
            put_head(&mut self.head, session.answers, now, padding, peer);
            self.says = None;
        }
        let mut out = session.outgoing(&self.head)?;
        if let PacketCipher::ChaCha(_) = self.chain.key().packets() {
            entropy.fill(&mut out.nonce);
        }
        let (chain, key) = (&self.chain, self.chain.key().material());
        let seal = |body_key: &BodyKey| out.seal(chain, body_key, packet, payload);
        session.body_key.with(key, session.id, seal)
    }
}

impl Session {
    /// Returns the next packet's header. The last packet id is never used, so that the counter
    /// cannot wrap.
    fn outgoing<'a>(&mut self, head: &'a [u8]) -> Result<Outgoing<'a>, Broken> {
        let packet = self.next;
        self.next = packet
            .checked_add(1)
            .ok_or(Broken::Exhausted("the packet counter"))?;
        Ok(Outgoing {
            ids: Ids {
                session: self.id,
                packet,
            },
            head,
            nonce: [0; NONCE_LEN],
        })
    }
}

#[cfg(test)]
impl Sender {
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
        stamp: Unix,
        (padding, nonce): (&[u8], [u8; NONCE_LEN]),
    ) -> Result<Range<usize>, Broken> {
        let session = self.session.as_mut().unwrap();
        self.head.clear();
        self.says = None;
        put_head(&mut self.head, session.answers, stamp, padding, peer);
        let mut out = session.outgoing(&self.head)?;
        out.nonce = nonce;
        let (chain, key) = (&self.chain, self.chain.key().material());
        let seal = |body_key: &BodyKey| out.seal(chain, body_key, packet, payload);
        session.body_key.with(key, session.id, seal)
    }
}
