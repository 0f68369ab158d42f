//! A server's packets of several users and sessions, compared with a model: which are opened, which
//! are replays, whose sessions end when users are added and removed, and who can open the answers.

#![no_main]

use std::collections::{BTreeMap, BTreeSet};

use adit_fuzz::user_fixture::{USER_NAMES, UserFixture, seal_packet, test_target};
use adit_fuzz::{ActionScript, NOW, SeededRng, alter_byte};
use adit_shadowsocks::udp::{
    ClientSession, HEADROOM, IncomingPacket, ServerOpener, ServerSealer, TAILROOM,
};
use adit_wire::ProtocolError;
use libfuzzer_sys::fuzz_target;

/// Client sessions; the user of session `n` is `n % 3`.
const SESSION_COUNT: usize = 6;
/// Number of old packets that can arrive again.
const HISTORY_LEN: usize = 16;

struct SentPacket {
    session: usize,
    /// Its index among the packets of its session.
    number: u64,
    wire: Vec<u8>,
    payload: Vec<u8>,
}

struct ServerModel {
    fixture: &'static UserFixture,
    opener: ServerOpener,
    clients: [ClientSession; SESSION_COUNT],
    /// Bit `n` is set if user `n` is served.
    served_mask: usize,
    /// Numbers and sealers of the sessions that the server must have.
    open_sessions: BTreeMap<usize, (Option<u64>, Option<ServerSealer>)>,
    /// Clients that received an answer: a second server session of theirs is not opened.
    answered: BTreeSet<usize>,
    /// Numbers of packets that each session has sent; up to the highest one that was opened; and up
    /// to the highest one when it ended: of the last, none is opened again.
    sent: [u64; SESSION_COUNT],
    opened: [u64; SESSION_COUNT],
    ended: [u64; SESSION_COUNT],
    history: Vec<SentPacket>,
    /// Packets of `history` that the session has seen.
    seen: Vec<bool>,
}

impl ServerModel {
    fn new(fixture: &'static UserFixture) -> Self {
        let client = |n: usize| {
            let mut rng = SeededRng(7 + u64::try_from(n).unwrap_or(0));
            ClientSession::new(&fixture.chains[n % 3], &mut rng)
        };
        Self {
            fixture,
            opener: ServerOpener::new(fixture.all_users()),
            clients: core::array::from_fn(client),
            served_mask: 7,
            open_sessions: BTreeMap::new(),
            answered: BTreeSet::new(),
            sent: [0; SESSION_COUNT],
            opened: [0; SESSION_COUNT],
            ended: [0; SESSION_COUNT],
            history: Vec::new(),
            seen: Vec::new(),
        }
    }

    fn has_sessions(&self) -> bool {
        self.fixture.identity.is_some()
    }

    fn open_packet(
        &mut self,
        wire: &[u8],
        script: &mut ActionScript<'_>,
    ) -> Result<(IncomingPacket, Vec<u8>), ProtocolError> {
        let hint = self.fixture.all_users().iter().nth(script.read_below(4));
        let mut packet = wire.to_vec();
        let hint = hint.map(|user| user.id());
        let incoming = self.opener.open_hinted(&mut packet, hint, NOW)?;
        let payload = packet[incoming.payload.clone()].to_vec();
        Ok((incoming, payload))
    }

    /// A packet of `history` arrives, possibly for the first time.
    fn deliver_packet(&mut self, at: usize, script: &mut ActionScript<'_>) {
        let (session, wire) = (self.history[at].session, self.history[at].wire.clone());
        let user = session % 3;
        let served = self.served_mask & (1 << user) != 0;
        let number = self.history[at].number;
        let replay = self.has_sessions() && (self.seen[at] || number < self.ended[session]);
        let outcome = self.open_packet(&wire, script);
        assert_eq!(outcome.is_ok(), served && !replay, "{outcome:?}");
        let Ok((incoming, payload)) = outcome else {
            return;
        };
        assert_eq!(payload, self.history[at].payload);
        assert_eq!(incoming.target, test_target());
        let name = incoming
            .user
            .and_then(|id| self.fixture.all_users().find_user(id));
        assert_eq!(name.expect("a user").name(), USER_NAMES[user]);
        assert_eq!(incoming.session.is_some(), self.has_sessions());
        let new = self.has_sessions() && !self.open_sessions.contains_key(&session);
        assert_eq!(incoming.new, new);
        let known = self
            .open_sessions
            .entry(session)
            .or_insert((incoming.session, None));
        assert_eq!(known.0, incoming.session);
        if known.1.is_none() && self.answered.insert(session) {
            let mut rng = SeededRng(50 + u64::try_from(session).unwrap_or(0));
            known.1 = match (incoming.session, incoming.user) {
                (None, Some(user)) => self.opener.create_sealer_for(user, &mut rng),
                (session, _) => self.opener.create_sealer(session, &mut rng),
            };
            assert!(known.1.is_some(), "an open session can be answered");
        }
        self.seen[at] = true;
        self.opened[session] = self.opened[session].max(number + 1);
    }

    /// Sends a client's next packet, which has not arrived yet.
    fn send_packet(&mut self, session: usize, payload: &[u8]) -> usize {
        if self.history.len() == HISTORY_LEN {
            self.history.remove(0);
            self.seen.remove(0);
        }
        let wire = seal_packet(&mut self.clients[session], payload);
        let payload = payload.to_vec();
        let number = self.sent[session];
        self.sent[session] += 1;
        self.history.push(SentPacket {
            session,
            number,
            wire,
            payload,
        });
        self.seen.push(false);
        self.history.len() - 1
    }

    /// Checks that only its client can open an answer.
    fn check_answer(&mut self, session: usize, payload: &[u8]) {
        let Some((_, Some(sealer))) = self.open_sessions.get_mut(&session) else {
            return;
        };
        let mut packet = vec![0; HEADROOM];
        packet.extend_from_slice(payload);
        packet.resize(HEADROOM + payload.len() + TAILROOM, 0);
        let body = HEADROOM..HEADROOM + payload.len();
        let mut rng = SeededRng(3);
        let range = sealer.seal(&mut packet, body, &test_target(), NOW, &mut rng);
        let wire = &packet[range.expect("sealed")];
        for (n, client) in self.clients.iter_mut().enumerate() {
            let mut packet = wire.to_vec();
            let opened = client.open(&mut packet, NOW);
            // Without sessions, a user's clients cannot tell whose answer it is.
            let twin = self.fixture.identity.is_none() && n % 3 == session % 3;
            assert_eq!(opened.is_ok(), n == session || twin, "{n} {opened:?}");
            if let Ok((from, range)) = opened {
                assert_eq!((from, &packet[range]), (test_target(), payload));
            }
        }
    }

    fn set_served_users(&mut self, mask: usize) {
        let gone = self.opener.set_users(self.fixture.lists[mask].clone());
        let leaves = |session: usize| mask & (1 << (session % 3)) == 0;
        let mut expected: Vec<u64> = Vec::new();
        self.open_sessions.retain(|session, (number, _)| {
            if leaves(*session) {
                expected.extend(*number);
            }
            !leaves(*session)
        });
        expected.sort_unstable();
        assert_eq!(gone, expected);
        for (sent, marked) in self.history.iter().zip(&mut self.seen) {
            // Windows end with their sessions; their highest packet numbers are stored.
            *marked &= !leaves(sent.session);
        }
        for session in (0..SESSION_COUNT).filter(|session| leaves(*session)) {
            self.ended[session] = self.opened[session];
        }
        self.served_mask = mask;
    }

    fn check_refused(&mut self, wire: &[u8], script: &mut ActionScript<'_>) {
        let outcome = self.open_packet(wire, script);
        assert!(outcome.is_err(), "{outcome:?}");
    }
}

fuzz_target!(|input: &[u8]| {
    let mut script = ActionScript::new(input);
    let mut model = ServerModel::new(UserFixture::from_lowest_bit(script.read_u8()));
    while !script.is_empty() {
        let act = script.read_u8();
        let session = usize::from(act >> 3) % SESSION_COUNT;
        match act % 7 {
            0 => {
                let at = model.send_packet(session, script.read_bytes());
                model.deliver_packet(at, &mut script);
            }
            1 if !model.history.is_empty() => {
                let at = script.read_below(model.history.len());
                model.deliver_packet(at, &mut script);
            }
            2 => {
                // First altered, then as it was sent: the former left no trace.
                let at = model.send_packet(session, script.read_bytes());
                let mut wire = model.history[at].wire.clone();
                alter_byte(&mut wire, script.read_u16(), script.read_u8());
                model.check_refused(&wire, &mut script);
                model.deliver_packet(at, &mut script);
            }
            3 => {
                let wire = script.read_bytes();
                model.check_refused(wire, &mut script);
            }
            4 => model.set_served_users(usize::from(act >> 3) % 8),
            5 if model.history.len() > 1 => {
                // The front of one packet and the rest of another.
                let len = model.history.len();
                let (a, b) = (script.read_below(len), script.read_below(len));
                let (a, b) = (&model.history[a].wire, &model.history[b].wire);
                let cut = usize::from(script.read_u8()).min(a.len()).min(b.len());
                let spliced = [&a[..cut], &b[cut..]].concat();
                if spliced != *a && spliced != *b {
                    model.check_refused(&spliced, &mut script);
                }
            }
            _ => model.check_answer(session, script.read_bytes()),
        }
        let sessions = if model.has_sessions() {
            model.open_sessions.len()
        } else {
            0
        };
        assert_eq!(
            model.opener.session_count(),
            sessions,
            "a refused packet left a trace"
        );
    }
});
