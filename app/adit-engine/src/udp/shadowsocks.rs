//! Shadowsocks datagrams, both ends.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use adit_net::PacketBuf;
use adit_net::ambient::{self, Chance, SystemChance};
use adit_shadowsocks::udp::{ClientSession, Incoming, ServerOpener, ServerSealer};
use adit_shadowsocks::{Edition, KeyChain, Method, Restart, SaltPool, UserId};
use adit_wire::{Broken, Entropy, Target, Unix};

use super::{BoxDatagrams, Datagrams, Key, PacketCodec, ReplySeal};
use crate::Roster;
use crate::account::Account;

/// A client session with one server, over whatever leads to it.
pub struct ShadowsocksUdp {
    session: Mutex<ClientSession>,
    server: Target,
    below: BoxDatagrams,
}

impl ShadowsocksUdp {
    /// A new session.
    #[must_use]
    pub fn new(keys: &KeyChain, server: Target, below: BoxDatagrams) -> Self {
        Self {
            session: Mutex::new(ClientSession::new(keys, &mut Chance)),
            server,
            below,
        }
    }

    fn session(&self) -> std::sync::MutexGuard<'_, ClientSession> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Datagrams for ShadowsocksUdp {
    fn send(&self, packet: &mut PacketBuf, to: &Target) -> io::Result<()> {
        let (bytes, payload) = packet.parts();
        let sealed = self
            .session()
            .seal(bytes, payload, to, ambient::unix(), &mut Chance);
        packet.set_payload(sealed.map_err(io::Error::other)?);
        self.below.send(packet, &self.server)
    }

    fn flush(&self) -> io::Result<()> {
        self.below.flush()
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        packet: &mut PacketBuf,
        each: &mut dyn FnMut(&mut PacketBuf, &Target),
    ) -> Poll<io::Result<()>> {
        let now = ambient::unix();
        self.below.poll_recv(cx, packet, &mut |packet, _| {
            let opened = self.session().open(packet.payload_mut(), now);
            // What does not open is not for us (SEC-P5).
            if let Ok((source, part)) = opened {
                packet.narrow(part);
                each(packet, &source);
            }
        })
    }
}

/// The server's end.
pub struct KeyedPackets {
    roster: Arc<Roster>,
    opener: ServerOpener,
    /// The change of the roster that the opener knows.
    known: u64,
    /// Whose the last packets were, for associations about to begin and for trials.
    owners: HashMap<Key, UserId>,
    salts: PacketSalts,
}

impl KeyedPackets {
    /// A server for the users of `roster`, whoever they are at the time.
    #[must_use]
    pub fn new(roster: Arc<Roster>) -> Self {
        let users = roster.users();
        Self {
            known: roster.changes(),
            opener: ServerOpener::new(&users),
            roster,
            owners: HashMap::new(),
            salts: PacketSalts::new(users.method()),
        }
    }

    /// Follows the roster: a look at one number unless something has changed.
    fn follow(&mut self) {
        let changes = self.roster.changes();
        if changes != self.known {
            self.known = changes;
            self.opener.set_users(self.roster.users());
        }
    }
}

impl PacketCodec for KeyedPackets {
    fn open(&mut self, packet: &mut PacketBuf, from: SocketAddr) -> Result<(Key, Target), Broken> {
        self.follow();
        let hint = self.owners.get(&Key::Source(from)).copied();
        let Incoming {
            session,
            user,
            target,
            payload,
            new,
        } = self
            .opener
            .open_hinted(packet.payload_mut(), hint, ambient::unix())?;
        self.salts.take(packet.payload_mut())?;
        packet.narrow(payload);
        let key = session.map_or(Key::Source(from), Key::Session);
        if let Some(user) = user
            && (new || (session.is_none() && hint != Some(user)))
        {
            self.owners.insert(key, user);
        }
        Ok((key, target))
    }

    fn sealer(&mut self, key: Key) -> Option<Box<dyn ReplySeal>> {
        let sealer = match (key, self.owners.get(&key)) {
            (Key::Session(id), _) => self.opener.sealer(Some(id), &mut Chance)?,
            (Key::Source(_), Some(user)) => self.opener.sealer_for(*user, &mut Chance)?,
            (Key::Source(_), None) => self.opener.sealer(None, &mut Chance)?,
        };
        let salts = self.salts.clone();
        Some(Box::new(Back { sealer, salts }))
    }

    fn account(&self, key: Key) -> Option<Arc<Account>> {
        let user = self.owners.get(&key);
        let user = user.and_then(|id| self.opener.users().user(*id));
        Some(self.roster.account(user.as_ref()))
    }

    fn forget(&mut self, key: Key) {
        self.owners.remove(&key);
        if let Key::Session(id) = key {
            self.opener.forget(id, ambient::unix());
        }
    }
}

/// The salts of packets in the AEAD edition, where nothing else tells a replay: those that came,
/// and those of our answers, which would open if they were sent back to us (SEC-R6).
///
/// They are kept by their number, and apart from those of connections: a flood of packets must not
/// push these out.
#[derive(Clone)]
struct PacketSalts {
    pool: Option<Arc<SaltPool>>,
    len: usize,
}

impl PacketSalts {
    fn new(method: Method) -> Self {
        let pool = (method.edition() == Edition::Aead).then(|| {
            let mut seed = [0; 16];
            SystemChance.fill(&mut seed);
            Arc::new(SaltPool::new(seed, ambient::unix(), Restart::Lenient))
        });
        let len = method.key_len();
        Self { pool, len }
    }

    /// Takes the salt of a packet that has opened, or is about to leave; it must be new.
    fn take(&self, packet: &[u8]) -> Result<(), Broken> {
        let Some(pool) = &self.pool else {
            return Ok(());
        };
        let salt = packet.get(..self.len);
        let salt = salt.ok_or(Broken::Truncated("a packet"))?;
        // Without a stamp the time is not looked at.
        pool.insert(salt, None, Unix::default())
    }
}

struct Back {
    sealer: ServerSealer,
    salts: PacketSalts,
}

impl ReplySeal for Back {
    fn seal(&mut self, packet: &mut PacketBuf, source: &Target) -> Result<(), Broken> {
        let (bytes, payload) = packet.parts();
        let sealed = self
            .sealer
            .seal(bytes, payload, source, ambient::unix(), &mut Chance)?;
        packet.set_payload(sealed);
        self.salts.take(packet.payload_mut())
    }
}
