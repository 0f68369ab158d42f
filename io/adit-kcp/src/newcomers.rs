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
const MOST: usize = 256;
/// Maximum number of packets kept for each.
const EARLY: usize = 4;
/// Maximum time until a client has answered.
const PATIENCE: Duration = Duration::from_secs(10);

/// A packet without payload: an answer, or the answer to one.
pub(crate) type Nothing = [u8; SESSION_OVERHEAD.head + SESSION_OVERHEAD.tail];

/// The new clients.
#[derive(Debug)]
pub(crate) struct Newcomers {
    key: SessionKey,
    waiting: HashMap<SessionId, Newcomer>,
}

/// A new client.
#[derive(Debug)]
pub(crate) struct Newcomer {
    pub(crate) session: Box<PacketSession>,
    /// Its packets until now, opened.
    pub(crate) early: Vec<Vec<u8>>,
    since: Time,
}

/// Classification of a packet of an unknown session.
#[derive(Debug)]
pub(crate) enum Met {
    /// Not sealed with our key, or a repetition.
    Foreign,
    /// The start of a session: this answer is to be sent.
    Answer(Box<Nothing>),
    /// A client that has received our answer, and the position of the payload of its packet.
    Fresh(Newcomer, Range<usize>),
}

impl Newcomers {
    pub(crate) fn new(key: SessionKey) -> Self {
        Self {
            key,
            waiting: HashMap::new(),
        }
    }

    /// Handles a packet of a session that is not known otherwise.
    pub(crate) fn meet(&mut self, head: SessionHeader, packet: &mut [u8], now: Time) -> Met {
        let id = head.id();
        let Some(one) = self.waiting.get_mut(&id) else {
            return self.begin(head, packet, now);
        };
        let Ok(range) = one.session.open(head, packet) else {
            return Met::Foreign;
        };
        if one.session.is_confirmed() {
            let fresh = self.waiting.remove(&id);
            return fresh.map_or(Met::Foreign, |one| Met::Fresh(one, range));
        }
        let payload = subslice(packet, range);
        if one.early.len() < EARLY && !payload.is_empty() {
            one.early.push(payload.to_vec());
        }
        nothing(&mut one.session).map_or(Met::Foreign, Met::Answer)
    }

    /// Puts back a client that cannot be served yet.
    pub(crate) fn restore(&mut self, id: SessionId, one: Newcomer) {
        self.waiting.insert(id, one);
    }

    fn begin(&mut self, head: SessionHeader, packet: &mut [u8], now: Time) -> Met {
        let Ok((session, range)) = self.key.accept(head, packet, &mut ThreadRng) else {
            return Met::Foreign;
        };
        self.make_room(now);
        let mut one = Newcomer {
            session: Box::new(session),
            early: vec![subslice(packet, range).to_vec()],
            since: now,
        };
        let answer = nothing(&mut one.session);
        self.waiting.insert(head.id(), one);
        answer.map_or(Met::Foreign, Met::Answer)
    }

    fn make_room(&mut self, now: Time) {
        if self.waiting.len() < MOST {
            return;
        }
        self.waiting
            .retain(|_, one| now.duration_since(one.since) < PATIENCE);
        if self.waiting.len() >= MOST
            && let Some((id, _)) = self.waiting.iter().min_by_key(|(_, one)| one.since)
        {
            let id = *id;
            self.waiting.remove(&id);
        }
    }
}

/// Returns a sealed packet without payload, or `None` once the session has used up its numbers.
pub(crate) fn nothing(session: &mut PacketSession) -> Option<Box<Nothing>> {
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

    fn meet(at: &mut Newcomers, key: &SessionKey, packet: &[u8], now: u64) -> (Met, Vec<u8>) {
        let mut packet = packet.to_vec();
        let head = key.decrypt_header(Role::Client, &packet).unwrap();
        (at.meet(head, &mut packet, Time(now)), packet)
    }

    #[test]
    fn only_who_has_had_the_answer_is_served() {
        let key = SessionKey::new(&[7; 32]).unwrap();
        let mut at = Newcomers::new(key.clone());
        let mut ann = client(&key);
        let first = says(&mut ann, b"hello");
        let (Met::Answer(mut answer), _) = meet(&mut at, &key, &first, 0) else {
            panic!("no answer");
        };
        // The same packet again adds nothing.
        assert!(matches!(meet(&mut at, &key, &first, 1).0, Met::Foreign));
        let head = key.decrypt_header(Role::Server, &answer[..]).unwrap();
        assert_eq!(ann.open(head, &mut answer[..]).unwrap(), 16..16);
        let (Met::Fresh(one, range), packet) = meet(&mut at, &key, &says(&mut ann, b"it is me"), 2)
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
            assert!(matches!(met, Met::Answer(_) | Met::Foreign), "{met:?}");
        }
    }

    #[test]
    fn what_waits_is_bounded() {
        let key = SessionKey::new(&[7; 32]).unwrap();
        let mut at = Newcomers::new(key.clone());
        for now in 0..2 * MOST as u64 {
            let mut session = client(&key);
            for _ in 0..2 * EARLY {
                let packet = says(&mut session, b"x");
                assert!(matches!(
                    meet(&mut at, &key, &packet, now).0,
                    Met::Answer(_)
                ));
            }
        }
        assert_eq!(at.waiting.len(), MOST);
        assert!(at.waiting.values().all(|one| one.early.len() == EARLY));
        assert!(
            at.waiting
                .values()
                .all(|one| one.since >= Time(MOST as u64)),
            "the oldest were removed"
        );
        let stranger = SessionKey::new(&[8; 32]).unwrap();
        let packet = says(&mut client(&stranger), b"x");
        assert!(matches!(meet(&mut at, &key, &packet, 0).0, Met::Foreign));
    }
}
