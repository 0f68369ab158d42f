//! Shadowsocks datagrams, client and server.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use adit_net::PacketBuf;
use adit_net::ambient::{self, Chance};
use adit_shadowsocks::udp::{ClientSession, Incoming, ServerOpener, ServerSealer, SessionBook};
use adit_shadowsocks::{Edition, KeyChain, Method, SaltPool, UserId, Users};
use adit_wire::{Broken, Target, Unix};

use super::trials::Trials;
use super::{BoxDatagrams, Datagrams, Key, PacketCodec, ReplySeal};
use crate::Roster;
use crate::account::Account;
use crate::health::Health;

/// Time in seconds after which an unresponsive server may be down, or have a different key.
const SILENCE: u64 = 5;

/// A client session with one server over any datagram path.
pub struct ShadowsocksUdp {
    client: Mutex<Client>,
    server: Target,
    below: BoxDatagrams,
    health: Arc<Health>,
}

struct Client {
    session: ClientSession,
    waits: Waits,
}

/// The state of the wait for an answer, with the time since which it lasts or was last reported.
enum Waits {
    No,
    Since(Unix),
}

impl Waits {
    /// Records a sent packet. Returns true if the wait should be reported: at its first packet, and whenever
    /// it has lasted for [`SILENCE`] again.
    fn sent(&mut self, now: Unix) -> bool {
        match self {
            Self::No => {
                *self = Self::Since(now);
                return true;
            }
            Self::Since(then) if now.0 >= then.0.saturating_add(SILENCE) => {
                *self = Self::Since(now);
                return true;
            }
            Self::Since(_) => {}
        }
        false
    }
}

impl ShadowsocksUdp {
    /// Starts a session.
    #[must_use]
    pub fn new(keys: &KeyChain, server: Target, below: BoxDatagrams, health: Arc<Health>) -> Self {
        let client = Client {
            session: ClientSession::new(keys, &mut Chance),
            waits: Waits::No,
        };
        Self {
            client: Mutex::new(client),
            server,
            below,
            health,
        }
    }

    fn client(&self) -> MutexGuard<'_, Client> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Datagrams for ShadowsocksUdp {
    fn send(&self, packet: &mut PacketBuf, to: &Target) -> io::Result<()> {
        let (bytes, payload) = packet.parts();
        let now = ambient::unix();
        let mut client = self.client();
        let sealed = client.session.seal(bytes, payload, to, now, &mut Chance);
        let tell = client.waits.sent(now);
        drop(client);
        if tell {
            self.health.unanswered();
        }
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
            let mut client = self.client();
            // Packets that do not open are ignored (SEC-P5).
            if let Ok((source, part)) = client.session.open(packet.payload_mut(), now) {
                let waited = std::mem::replace(&mut client.waits, Waits::No);
                drop(client);
                // Once per answer that was waited for.
                if !matches!(waited, Waits::No) {
                    self.health.proof(None);
                }
                packet.narrow(part);
                each(packet, &source);
            }
        })
    }
}

/// The server's side.
pub struct KeyedPackets {
    roster: Arc<Roster>,
    opener: ServerOpener,
    /// The change count of the users that the opener was created from.
    known: u64,
    /// The users of the last packets, for associations that are about to start and for trials.
    owners: HashMap<Key, UserId>,
    salts: PacketSalts,
    by_trial: bool,
    trials: Trials,
}

/// Returns true if several keys may have to be tried to find the user of a packet.
fn is_by_trial(users: &Users) -> bool {
    users.method().edition() == Edition::Aead && users.len() > 1
}

impl KeyedPackets {
    /// Creates a server for the current users of `roster`. All sockets and listeners with the same key share
    /// `salts` and `sessions`.
    #[must_use]
    pub fn new(roster: Arc<Roster>, salts: Arc<SaltPool>, sessions: Arc<SessionBook>) -> Self {
        let users = roster.users();
        Self {
            known: roster.changes(),
            opener: ServerOpener::with_book(&users, sessions),
            roster,
            owners: HashMap::new(),
            by_trial: is_by_trial(&users),
            trials: Trials::default(),
            salts: PacketSalts::new(users.method(), salts),
        }
    }

    /// Updates the opener if the users have changed, which takes one comparison otherwise.
    fn follow(&mut self) {
        let changes = self.roster.changes();
        if changes != self.known {
            self.known = changes;
            let users = self.roster.users();
            self.by_trial = is_by_trial(&users);
            self.opener.set_users(users);
        }
    }

    /// Opens a packet whose user is found by trial: first the user known at this address and port, then the
    /// one last seen at the IP address, then all users, as long as the source has trials left.
    fn open_by_trial(
        &mut self,
        packet: &mut PacketBuf,
        from: SocketAddr,
        known: Option<UserId>,
    ) -> Result<Incoming, Broken> {
        let now = ambient::now();
        let hint = known.or_else(|| self.roster.hint(from.ip()));
        let bytes = packet.payload_mut();
        let opened = if self.trials.may_try_all(from.ip(), now) {
            let opened = self.opener.open_hinted(bytes, hint, ambient::unix());
            if matches!(opened, Err(Broken::Unauthentic)) {
                self.trials.failed(from.ip(), now);
            }
            opened
        } else {
            self.opener.open_of(bytes, hint, ambient::unix())
        };
        if let (
            Ok(Incoming {
                user: Some(user), ..
            }),
            true,
        ) = (&opened, known.is_none())
        {
            self.roster.seen(from.ip(), *user);
        }
        opened
    }
}

impl PacketCodec for KeyedPackets {
    fn open(&mut self, packet: &mut PacketBuf, from: SocketAddr) -> Result<(Key, Target), Broken> {
        self.follow();
        let known = self.owners.get(&Key::Source(from)).copied();
        let opened = if self.by_trial {
            self.open_by_trial(packet, from, known)
        } else {
            let bytes = packet.payload_mut();
            self.opener.open_hinted(bytes, known, ambient::unix())
        };
        let Incoming {
            session,
            user,
            target,
            payload,
            new,
        } = opened?;
        self.salts.take(packet.payload_mut())?;
        packet.narrow(payload);
        let key = session.map_or(Key::Source(from), Key::Session);
        if let Some(user) = user
            && (new || (session.is_none() && known != Some(user)))
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

/// The salts of packets in the AEAD edition, which has no other protection against replays: those received,
/// and those of our own replies, which would open if they were reflected to us (SEC-R6).
///
/// They are kept up to a number, and separately from those of connections: a flood of packets must not
/// evict the latter.
#[derive(Clone)]
struct PacketSalts {
    pool: Option<Arc<SaltPool>>,
    len: usize,
}

impl PacketSalts {
    fn new(method: Method, pool: Arc<SaltPool>) -> Self {
        let pool = (method.edition() == Edition::Aead).then_some(pool);
        let len = method.key_len();
        Self { pool, len }
    }

    /// Records the salt of an opened packet, or of one about to be sent. Fails if it is not new.
    fn take(&self, packet: &[u8]) -> Result<(), Broken> {
        let Some(pool) = &self.pool else {
            return Ok(());
        };
        let salt = packet.get(..self.len);
        let salt = salt.ok_or(Broken::Truncated("a packet"))?;
        // The time is ignored for packets without a time stamp.
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
