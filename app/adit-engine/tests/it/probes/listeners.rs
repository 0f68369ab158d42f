//! All kinds of keyed listeners. A new kind is a new line of [`KINDS`].

use std::sync::Arc;
use std::time::Duration;

use adit_config::RejectPolicy;
use adit_engine::acceptor::{
    InboundRequest, RejectHandler, RelayAcceptor, RequestAcceptor, ShadowsocksAcceptor,
};
use adit_engine::{ConnectionAddrs, HandshakeSlot, UserTable};
use adit_net::system::{self, SystemClock, ThreadRng};
use adit_shadowsocks::relay::RelayTable;
use adit_shadowsocks::{Key, KeyChain, Method, RestartPolicy, SaltPool, Users, tcp};
use adit_wire::{Clock, Entropy, Seal, Target, UnixTime};

use super::scripted::{Act, Script, Scripted, Seen};

/// Time limit for a request.
pub(crate) const DEADLINE: Duration = Duration::from_secs(10);

const AES: Method = Method::Blake3Aes128Gcm;
const AEAD: Method = Method::Aes128Gcm;
const IDENTITY: &str = "ICEiIyQlJicoKSorLC0uLw==";
const OWN: &str = "MDEyMzQ1Njc4OTo7PD0+Pw==";
const ALICE: &str = "AAECAwQFBgcICQoLDA0ODw==";
const NOBODY: &str = "EBESExQVFhcYGRobHB0eHw==";

/// A kind of listener.
pub(crate) struct ListenerCase {
    pub(crate) name: &'static str,
    /// Number of bytes that allows a decision.
    pub(crate) head: usize,
    method: Method,
    /// The key of a client.
    good: &'static [&'static str],
    /// The key of a client that is refused.
    unknown: &'static [&'static str],
    /// True if only the name of the next server is read of the first bytes.
    relays: bool,
    open: fn(Arc<RejectHandler>) -> Box<dyn RequestAcceptor>,
}

/// All kinds.
pub(crate) const KINDS: [ListenerCase; 5] = [
    ListenerCase {
        name: "2022, one key",
        head: 16 + 27,
        method: AES,
        good: &[ALICE],
        unknown: &[NOBODY],
        relays: false,
        open: |rejects| keyed(Users::with_single_key(key(AES, ALICE)), rejects),
    },
    ListenerCase {
        name: "2022, users",
        head: 16 + 16 + 27,
        method: AES,
        good: &[OWN, ALICE],
        unknown: &[OWN, NOBODY],
        relays: false,
        open: |rejects| {
            let users =
                Users::with_identity_key(&key(AES, OWN), [("alice", ALICE), ("bob", IDENTITY)]);
            keyed(users.unwrap(), rejects)
        },
    },
    ListenerCase {
        name: "2022, relay",
        head: 16 + 16 + 27,
        method: AES,
        good: &[IDENTITY, OWN, ALICE],
        unknown: &[IDENTITY, NOBODY, ALICE],
        relays: true,
        open: |rejects| {
            let table = RelayTable::new(&key(AES, IDENTITY), [key(AES, OWN)]).unwrap();
            Box::new(RelayAcceptor {
                table,
                next: [target()].into(),
                salts: Arc::new(salts()),
                claims: None,
                rejects,
                deadline: DEADLINE,
            })
        },
    },
    ListenerCase {
        name: "AEAD, one password",
        head: 16 + 18,
        method: AEAD,
        good: &["good"],
        unknown: &["wrong"],
        relays: false,
        open: |rejects| keyed(Users::with_single_key(key(AEAD, "good")), rejects),
    },
    ListenerCase {
        name: "AEAD, users",
        head: 16 + 18,
        method: AEAD,
        good: &["17"],
        unknown: &["wrong"],
        relays: false,
        open: |rejects| {
            let users = (0..20).map(|n| (format!("user-{n}"), n.to_string()));
            keyed(Users::with_trial_keys(AEAD, users).unwrap(), rejects)
        },
    },
];

fn key(method: Method, text: &str) -> Key {
    Key::parse(method, text).unwrap()
}

fn target() -> Target {
    Target::from(std::net::SocketAddr::from(([192, 0, 2, 1], 443)))
}

fn salts() -> SaltPool {
    SaltPool::new([7; 16], system::unix_now(), RestartPolicy::Lenient)
}

fn keyed(users: Arc<Users>, rejects: Arc<RejectHandler>) -> Box<dyn RequestAcceptor> {
    Box::new(ShadowsocksAcceptor {
        user_table: Arc::new(UserTable::new(users, None)),
        salts: Arc::new(salts()),
        claims: None,
        rejects,
        deadline: DEADLINE,
    })
}

/// A clock that is wrong by a number of seconds.
struct Wrong(i64);

impl Clock for Wrong {
    fn unix_time(&self) -> UnixTime {
        UnixTime(SystemClock.unix_time().0.saturating_add_signed(self.0))
    }
}

impl ListenerCase {
    /// The first flight of a client with these keys, whose clock is wrong by this number of seconds.
    fn flight(&self, keys: &[&str], clock: i64) -> Vec<u8> {
        let chain = KeyChain::parse(self.method, &keys.join(":")).unwrap();
        let clock = Arc::new(Wrong(clock));
        let (mut seal, _) = tcp::client_codecs(&chain, &target(), clock, &mut ThreadRng).unwrap();
        let room = seal.overhead();
        let mut record = vec![0; room.head + 200 + room.tail];
        let wire = seal.seal(&mut record, room.head..room.head + 200).unwrap();
        record[wire].to_vec()
    }

    /// Opens a listener with this policy, accepts a client, and records its first flight.
    pub(crate) async fn open(&'static self, policy: RejectPolicy) -> Arc<ProbedListener> {
        let listener = Arc::new(ProbedListener {
            acceptor: (self.open)(Arc::new(RejectHandler::new(policy))),
            kind: self,
            genuine: self.flight(self.good, 0),
        });
        let seen = listener
            .meet(vec![(Duration::ZERO, Act::Say(listener.genuine.clone()))])
            .await;
        assert!(seen.is_none(), "{}: a client was rejected", self.name);
        listener
    }
}

/// A running listener.
pub(crate) struct ProbedListener {
    acceptor: Box<dyn RequestAcceptor>,
    kind: &'static ListenerCase,
    /// The first flight of a client.
    genuine: Vec<u8>,
}

impl ProbedListener {
    /// Returns the observations of a peer up to the end; `None` if it was accepted.
    pub(crate) async fn meet(&self, script: Script) -> Option<Seen> {
        let at = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
        let (stream, seen) = Scripted::new(script);
        let peer = ConnectionAddrs {
            remote: at,
            local: at,
        };
        match self
            .acceptor
            .accept_request(Box::new(stream), peer, HandshakeSlot::default())
            .await
        {
            Ok(InboundRequest::Rejected(rejection)) => rejection.apply_policy().await,
            Ok(_) => return None,
            Err(why) => panic!("{}: {why}", self.kind.name),
        }
        let seen = seen.lock().unwrap().clone();
        Some(seen)
    }

    /// Random bytes.
    pub(crate) fn garbage(len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        ThreadRng.fill(&mut bytes);
        bytes
    }

    /// The input of a prober with a recording, or of a client that is not allowed: always enough for a
    /// decision, and each refused for a different cause.
    pub(crate) fn causes(&self) -> Vec<(String, Vec<u8>)> {
        let (kind, genuine) = (self.kind, &self.genuine);
        let mut causes = vec![
            ("garbage".to_owned(), Self::garbage(kind.head)),
            ("more garbage".to_owned(), Self::garbage(221)),
            ("a replay".to_owned(), genuine.clone()),
            ("two replays".to_owned(), genuine.repeat(2)),
            ("a stranger".to_owned(), kind.flight(kind.unknown, 0)),
        ];
        let mut changed = |what: &str, places: &[usize]| {
            let mut bytes = genuine.clone();
            for place in places {
                bytes[*place] ^= 0x41;
            }
            causes.push((format!("a replay with {what} changed"), bytes));
        };
        // The formats observed in the wild, followed by every part of a header.
        changed("byte 0", &[0]);
        changed("byte 16", &[16]);
        changed("bytes 0 to 7, 62 and 63", &[0, 1, 2, 3, 4, 5, 6, 7, 62, 63]);
        changed("bytes 6 and 16", &[6, 16]);
        changed("bytes 16 to 32", &(16..=32).collect::<Vec<_>>());
        changed("its last byte of a header", &[kind.head - 1]);
        changed("what follows a header", &[kind.head]);
        for cut in [kind.head, kind.head + 1, genuine.len() - 1] {
            let what = format!("a replay cut after {cut} bytes");
            causes.push((what, genuine[..cut].to_vec()));
        }
        if kind.method == AES && !kind.relays {
            for clock in [-3600, -31, 31] {
                let what = format!("a clock that is wrong by {clock} s");
                // One more second may pass before the decision.
                let clock = clock + if clock < 0 { -2 } else { 2 };
                causes.push((what, kind.flight(kind.good, clock)));
            }
        }
        causes
    }

    /// The same, too short for a decision.
    pub(crate) fn short_causes(&self) -> Vec<(String, Vec<u8>)> {
        let head = self.kind.head;
        let replay = |cut: usize| {
            (
                format!("{cut} bytes of a replay"),
                self.genuine[..cut].to_vec(),
            )
        };
        let garbage = |len: usize| (format!("{len} bytes of garbage"), Self::garbage(len));
        vec![
            ("nothing".to_owned(), Vec::new()),
            garbage(1),
            garbage(16),
            garbage(head - 1),
            replay(1),
            replay(16),
            replay(head - 1),
        ]
    }
}
