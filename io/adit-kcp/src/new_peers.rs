//! Clients of sealed sessions that have not yet shown that they are not a recording.
//!
//! The first packets of a client can be sealed for any server that has its key, so anyone who has
//! recorded them can send them again. A new client gets an empty answer under new keys; its packets
//! are kept until it sends one that is sealed with these keys.

use std::collections::HashMap;
use std::ops::Range;
use std::time::Duration;

use adit_crypto::packet::session::{
    PacketSession, SESSION_OVERHEAD, SessionHeader, SessionId, SessionKey,
};
use adit_net::system::ThreadRng;
use adit_wire::{Time, subslice};

/// Maximum number of new clients at a time; the oldest are removed.
const MAX_WAITING: usize = 256;
/// Maximum number of packets kept for each.
const MAX_EARLY_PACKETS: usize = 4;
/// Maximum time until a client has answered.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// A packet without payload: an answer, or the answer to one.
pub(crate) type EmptyPacket = [u8; SESSION_OVERHEAD.head + SESSION_OVERHEAD.tail];

/// The new clients.
#[derive(Debug)]
pub(crate) struct NewPeers {
    key: SessionKey,
    waiting: HashMap<SessionId, NewPeer>,
}

/// A new client.
#[derive(Debug)]
pub(crate) struct NewPeer {
    pub(crate) session: Box<PacketSession>,
    /// Its packets until now, opened.
    pub(crate) early: Vec<Vec<u8>>,
    since: Time,
}

/// Classification of a packet of an unknown session.
#[derive(Debug)]
pub(crate) enum NewPeerPacket {
    /// Not sealed with our key, or a repetition.
    Foreign,
    /// The start of a session: this answer is to be sent.
    Answer(Box<EmptyPacket>),
    /// A client that has received our answer, and the position of the payload of its packet.
    Fresh(NewPeer, Range<usize>),
}

impl NewPeers {
    pub(crate) fn new(key: SessionKey) -> Self {
        Self {
            key,
            waiting: HashMap::new(),
        }
    }

    /// Handles a packet of a session that is not known otherwise.
    pub(crate) fn handle_packet(
        &mut self,
        head: SessionHeader,
        packet: &mut [u8],
        now: Time,
    ) -> NewPeerPacket {
        let id = head.id();
        let Some(one) = self.waiting.get_mut(&id) else {
            return self.add_peer(head, packet, now);
        };
        let Ok(range) = one.session.open(head, packet) else {
            return NewPeerPacket::Foreign;
        };
        if one.session.is_confirmed() {
            let fresh = self.waiting.remove(&id);
            return fresh.map_or(NewPeerPacket::Foreign, |one| {
                NewPeerPacket::Fresh(one, range)
            });
        }
        let payload = subslice(packet, range);
        if one.early.len() < MAX_EARLY_PACKETS && !payload.is_empty() {
            one.early.push(payload.to_vec());
        }
        seal_empty(&mut one.session).map_or(NewPeerPacket::Foreign, NewPeerPacket::Answer)
    }

    /// Puts back a client that cannot be served yet.
    pub(crate) fn put_back(&mut self, id: SessionId, one: NewPeer) {
        self.waiting.insert(id, one);
    }

    fn add_peer(&mut self, head: SessionHeader, packet: &mut [u8], now: Time) -> NewPeerPacket {
        let Ok((session, range)) = self.key.accept(head, packet, &mut ThreadRng) else {
            return NewPeerPacket::Foreign;
        };
        self.evict_oldest(now);
        let mut one = NewPeer {
            session: Box::new(session),
            early: vec![subslice(packet, range).to_vec()],
            since: now,
        };
        let answer = seal_empty(&mut one.session);
        self.waiting.insert(head.id(), one);
        answer.map_or(NewPeerPacket::Foreign, NewPeerPacket::Answer)
    }

    fn evict_oldest(&mut self, now: Time) {
        if self.waiting.len() < MAX_WAITING {
            return;
        }
        self.waiting
            .retain(|_, one| now.duration_since(one.since) < MAX_WAIT);
        if self.waiting.len() >= MAX_WAITING
            && let Some((id, _)) = self.waiting.iter().min_by_key(|(_, one)| one.since)
        {
            let id = *id;
            self.waiting.remove(&id);
        }
    }
}

/// Returns a sealed packet without payload, or `None` once the session has used up its numbers.
pub(crate) fn seal_empty(session: &mut PacketSession) -> Option<Box<EmptyPacket>> {
    let mut packet = Box::new([0; SESSION_OVERHEAD.head + SESSION_OVERHEAD.tail]);
    session.seal(&mut packet[..]).ok()?;
    Some(packet)
}

#[cfg(test)]
mod tests {
    use adit_crypto::packet::session::{Role, SessionCipher};

    use super::*;

    fn client(key: &SessionKey) -> PacketSession {
        key.connect(SessionCipher::Aes128Gcm, &mut ThreadRng)
            .unwrap()
    }

    fn says(session: &mut PacketSession, text: &[u8]) -> Vec<u8> {
        let mut packet = [&[0; 16], text, &[0; 16]].concat();
        session.seal(&mut packet).unwrap();
        packet
    }

    fn meet(
        at: &mut NewPeers,
        key: &SessionKey,
        packet: &[u8],
        now: u64,
    ) -> (NewPeerPacket, Vec<u8>) {
        let mut packet = packet.to_vec();
        let head = key.decrypt_header(Role::Client, &packet).unwrap();
        (at.handle_packet(head, &mut packet, Time(now)), packet)
    }

    #[test]
    fn only_who_has_had_the_answer_is_served() {
        let key = SessionKey::new(&[7; 32]).unwrap();
        let mut at = NewPeers::new(key.clone());
        let mut ann = client(&key);
        let first = says(&mut ann, b"hello");
        let (NewPeerPacket::Answer(mut answer), _) = meet(&mut at, &key, &first, 0) else {
            panic!("no answer");
        };
        // The same packet again adds nothing.
        assert!(matches!(
            meet(&mut at, &key, &first, 1).0,
            NewPeerPacket::Foreign
        ));
        let head = key.decrypt_header(Role::Server, &answer[..]).unwrap();
        assert_eq!(ann.open(head, &mut answer[..]).unwrap(), 16..16);
        let (NewPeerPacket::Fresh(one, range), packet) =
            meet(&mut at, &key, &says(&mut ann, b"it is me"), 2)
        else {
            panic!("not served");
        };
        assert_eq!(
            (&packet[range], &one.early[..]),
            (&b"it is me"[..], &[b"hello".to_vec()][..])
        );
        // A recording of the start starts anew, and gets no further.
        for text in [&first, &says(&mut ann, b"later")] {
            let met = meet(&mut at, &key, text, 3).0;
            assert!(
                matches!(met, NewPeerPacket::Answer(_) | NewPeerPacket::Foreign),
                "{met:?}"
            );
        }
    }

    #[test]
    fn what_waits_is_bounded() {
        let key = SessionKey::new(&[7; 32]).unwrap();
        let mut at = NewPeers::new(key.clone());
        for now in 0..2 * MAX_WAITING as u64 {
            let mut session = client(&key);
            for _ in 0..2 * MAX_EARLY_PACKETS {
                let packet = says(&mut session, b"x");
                assert!(matches!(
                    meet(&mut at, &key, &packet, now).0,
                    NewPeerPacket::Answer(_)
                ));
            }
        }
        assert_eq!(at.waiting.len(), MAX_WAITING);
        assert!(
            at.waiting
                .values()
                .all(|one| one.early.len() == MAX_EARLY_PACKETS)
        );
        assert!(
            at.waiting
                .values()
                .all(|one| one.since >= Time(MAX_WAITING as u64)),
            "the oldest were removed"
        );
        let stranger = SessionKey::new(&[8; 32]).unwrap();
        let packet = says(&mut client(&stranger), b"x");
        assert!(matches!(
            meet(&mut at, &key, &packet, 0).0,
            NewPeerPacket::Foreign
        ));
    }
}
