//! A server's packets of several users and sessions, compared with a model: which are opened, which
//! are replays, whose sessions end when users are added and removed, and who can open the answers.

#![no_main]

use std::collections::{BTreeMap, BTreeSet};

use adit_fuzz::users::{NAMES, World, sealed, target};
use adit_fuzz::{Chance, NOW, Script, alter};
use adit_shadowsocks::udp::{
    ClientSession, HEADROOM, IncomingPacket, ServerOpener, ServerSealer, TAILROOM,
};
use adit_wire::ProtocolError;
use libfuzzer_sys::fuzz_target;

/// Client sessions; the user of session `n` is `n % 3`.
const SESSIONS: usize = 6;
/// Number of old packets that can arrive again.
const KEPT: usize = 16;

struct Sent {
    session: usize,
    /// Its index among the packets of its session.
    number: u64,
    wire: Vec<u8>,
    payload: Vec<u8>,
}

struct Scene {
    world: &'static World,
    opener: ServerOpener,
    clients: [ClientSession; SESSIONS],
    /// Bit `n` is set if user `n` is served.
    mask: usize,
    /// Numbers and sealers of the sessions that the server must have.
    known: BTreeMap<usize, (Option<u64>, Option<ServerSealer>)>,
    /// Clients that received an answer: a second server session of theirs is not opened.
    answered: BTreeSet<usize>,
    /// Numbers of packets that each session has sent; up to the highest one that was opened; and up
    /// to the highest one when it ended: of the last, none is opened again.
    sent: [u64; SESSIONS],
    opened: [u64; SESSIONS],
    ended: [u64; SESSIONS],
    history: Vec<Sent>,
    /// Packets of `history` that the session has seen.
    marked: Vec<bool>,
}

impl Scene {
    fn new(world: &'static World) -> Self {
        let client = |n: usize| {
            let mut chance = Chance(7 + u64::try_from(n).unwrap_or(0));
            ClientSession::new(&world.chains[n % 3], &mut chance)
        };
        Self {
            world,
            opener: ServerOpener::new(world.users()),
            clients: core::array::from_fn(client),
            mask: 7,
            known: BTreeMap::new(),
            answered: BTreeSet::new(),
            sent: [0; SESSIONS],
            opened: [0; SESSIONS],
            ended: [0; SESSIONS],
            history: Vec::new(),
            marked: Vec::new(),
        }
    }

    fn has_sessions(&self) -> bool {
        self.world.identity.is_some()
    }

    fn open(
        &mut self,
        wire: &[u8],
        script: &mut Script<'_>,
    ) -> Result<(IncomingPacket, Vec<u8>), ProtocolError> {
        let hint = self.world.users().iter().nth(script.below(4));
        let mut packet = wire.to_vec();
        let hint = hint.map(|user| user.id());
        let incoming = self.opener.open_hinted(&mut packet, hint, NOW)?;
        let payload = packet[incoming.payload.clone()].to_vec();
        Ok((incoming, payload))
    }

    /// A packet of `history` arrives, possibly for the first time.
    fn arrives(&mut self, at: usize, script: &mut Script<'_>) {
        let (session, wire) = (self.history[at].session, self.history[at].wire.clone());
        let user = session % 3;
        let served = self.mask & (1 << user) != 0;
        let number = self.history[at].number;
        let replay = self.has_sessions() && (self.marked[at] || number < self.ended[session]);
        let outcome = self.open(&wire, script);
        assert_eq!(outcome.is_ok(), served && !replay, "{outcome:?}");
        let Ok((incoming, payload)) = outcome else {
            return;
        };
        assert_eq!(payload, self.history[at].payload);
        assert_eq!(incoming.target, target());
        let name = incoming
            .user
            .and_then(|id| self.world.users().find_user(id));
        assert_eq!(name.expect("a user").name(), NAMES[user]);
        assert_eq!(incoming.session.is_some(), self.has_sessions());
        let new = self.has_sessions() && !self.known.contains_key(&session);
        assert_eq!(incoming.new, new);
        let known = self
            .known
            .entry(session)
            .or_insert((incoming.session, None));
        assert_eq!(known.0, incoming.session);
        if known.1.is_none() && self.answered.insert(session) {
            let mut chance = Chance(50 + u64::try_from(session).unwrap_or(0));
            known.1 = match (incoming.session, incoming.user) {
                (None, Some(user)) => self.opener.create_sealer_for(user, &mut chance),
                (session, _) => self.opener.create_sealer(session, &mut chance),
            };
            assert!(known.1.is_some(), "an open session can be answered");
        }
        self.marked[at] = true;
        self.opened[session] = self.opened[session].max(number + 1);
    }

    /// Sends a client's next packet, which has not arrived yet.
    fn send(&mut self, session: usize, payload: &[u8]) -> usize {
        if self.history.len() == KEPT {
            self.history.remove(0);
            self.marked.remove(0);
        }
        let wire = sealed(&mut self.clients[session], payload);
        let payload = payload.to_vec();
        let number = self.sent[session];
        self.sent[session] += 1;
        self.history.push(Sent {
            session,
            number,
            wire,
            payload,
        });
        self.marked.push(false);
        self.history.len() - 1
    }

    /// Checks that only its client can open an answer.
    fn answer(&mut self, session: usize, payload: &[u8]) {
        let Some((_, Some(sealer))) = self.known.get_mut(&session) else {
            return;
        };
        let mut packet = vec![0; HEADROOM];
        packet.extend_from_slice(payload);
        packet.resize(HEADROOM + payload.len() + TAILROOM, 0);
        let body = HEADROOM..HEADROOM + payload.len();
        let mut chance = Chance(3);
        let range = sealer.seal(&mut packet, body, &target(), NOW, &mut chance);
        let wire = &packet[range.expect("sealed")];
        for (n, client) in self.clients.iter_mut().enumerate() {
            let mut packet = wire.to_vec();
            let opened = client.open(&mut packet, NOW);
            // Without sessions, a user's clients cannot tell whose answer it is.
            let twin = self.world.identity.is_none() && n % 3 == session % 3;
            assert_eq!(opened.is_ok(), n == session || twin, "{n} {opened:?}");
            if let Ok((from, range)) = opened {
                assert_eq!((from, &packet[range]), (target(), payload));
            }
        }
    }

    fn serve_only(&mut self, mask: usize) {
        let gone = self.opener.set_users(self.world.lists[mask].clone());
        let leaves = |session: usize| mask & (1 << (session % 3)) == 0;
        let mut expected: Vec<u64> = Vec::new();
        self.known.retain(|session, (number, _)| {
            if leaves(*session) {
                expected.extend(*number);
            }
            !leaves(*session)
        });
        expected.sort_unstable();
        assert_eq!(gone, expected);
        for (sent, marked) in self.history.iter().zip(&mut self.marked) {
            // Windows end with their sessions; their highest packet numbers are stored.
            *marked &= !leaves(sent.session);
        }
        for session in (0..SESSIONS).filter(|session| leaves(*session)) {
            self.ended[session] = self.opened[session];
        }
        self.mask = mask;
    }

    fn refused(&mut self, wire: &[u8], script: &mut Script<'_>) {
        let outcome = self.open(wire, script);
        assert!(outcome.is_err(), "{outcome:?}");
    }
}

fuzz_target!(|input: &[u8]| {
    let mut script = Script::new(input);
    let mut scene = Scene::new(World::of(script.byte()));
    while !script.is_over() {
        let act = script.byte();
        let session = usize::from(act >> 3) % SESSIONS;
        match act % 7 {
            0 => {
                let at = scene.send(session, script.bytes());
                scene.arrives(at, &mut script);
            }
            1 if !scene.history.is_empty() => {
                let at = script.below(scene.history.len());
                scene.arrives(at, &mut script);
            }
            2 => {
                // First altered, then as it was sent: the former left no trace.
                let at = scene.send(session, script.bytes());
                let mut wire = scene.history[at].wire.clone();
                alter(&mut wire, script.short(), script.byte());
                scene.refused(&wire, &mut script);
                scene.arrives(at, &mut script);
            }
            3 => {
                let wire = script.bytes();
                scene.refused(wire, &mut script);
            }
            4 => scene.serve_only(usize::from(act >> 3) % 8),
            5 if scene.history.len() > 1 => {
                // The front of one packet and the rest of another.
                let len = scene.history.len();
                let (a, b) = (script.below(len), script.below(len));
                let (a, b) = (&scene.history[a].wire, &scene.history[b].wire);
                let cut = usize::from(script.byte()).min(a.len()).min(b.len());
                let spliced = [&a[..cut], &b[cut..]].concat();
                if spliced != *a && spliced != *b {
                    scene.refused(&spliced, &mut script);
                }
            }
            _ => scene.answer(session, script.bytes()),
        }
        let sessions = if scene.has_sessions() {
            scene.known.len()
        } else {
            0
        };
        assert_eq!(
            scene.opener.session_count(),
            sessions,
            "a refused packet left a trace"
        );
    }
});
