//! Shadowsocks datagrams, client and server.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use adit_net::PacketBuf;
use adit_net::system::{self, ThreadRng};
use adit_shadowsocks::udp::{
    ClientSession, IncomingPacket, ServerOpener, ServerSealer, SessionRegistry,
};
use adit_shadowsocks::{Edition, KeyChain, Method, SaltPool, UserId, Users};
use adit_wire::{ProtocolError, Target, UnixTime};

use super::key_trials::TrialLimiter;
use super::{AssociationKey, BoxDatagramPath, DatagramPath, PacketCodec, ReplySeal, SessionClaims};
use crate::UserTable;
use crate::health::ServerHealth;
use crate::replay_claims::ClaimAnswer;
use crate::user_account::UserAccount;

/// Time in seconds after which an unresponsive server may be down, or have a different key.
const SILENCE_SECS: u64 = 5;

/// A client session with one server over any datagram path.
pub struct ShadowsocksUdp {
    client: Mutex<UdpClientState>,
    server: Target,
    below: BoxDatagramPath,
    health: Arc<ServerHealth>,
}

struct UdpClientState {
    session: ClientSession,
    waits: AnswerWait,
}

/// The state of the wait for an answer, with the time since which it lasts or was last reported.
enum AnswerWait {
    No,
    Since(UnixTime),
}

impl AnswerWait {
    /// Records a sent packet. Returns true if the wait should be reported: at its first packet, and whenever
    /// it has lasted for [`SILENCE_SECS`] again.
    fn record_sent(&mut self, now: UnixTime) -> bool {
        match self {
            Self::No => {
                *self = Self::Since(now);
                return true;
            }
            Self::Since(then) if now.0 >= then.0.saturating_add(SILENCE_SECS) => {
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
    pub fn new(
        keys: &KeyChain,
        server: Target,
        below: BoxDatagramPath,
        health: Arc<ServerHealth>,
    ) -> Self {
        let client = UdpClientState {
            session: ClientSession::new(keys, &mut ThreadRng),
            waits: AnswerWait::No,
        };
        Self {
            client: Mutex::new(client),
            server,
            below,
            health,
        }
    }

    fn lock_client(&self) -> MutexGuard<'_, UdpClientState> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DatagramPath for ShadowsocksUdp {
    fn send(&self, packet: &mut PacketBuf, to: &Target) -> io::Result<()> {
        let (bytes, payload) = packet.buffer_and_range();
        let now = system::unix_now();
        let mut client = self.lock_client();
        let sealed = client.session.seal(bytes, payload, to, now, &mut ThreadRng);
        let tell = client.waits.record_sent(now);
        drop(client);
        if tell {
            self.health.report_unanswered();
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
        let now = system::unix_now();
        self.below.poll_recv(cx, packet, &mut |packet, _| {
            let mut client = self.lock_client();
            // Packets that do not open are ignored (SEC-P5).
            if let Ok((source, part)) = client.session.open(packet.payload_mut(), now) {
                let waited = std::mem::replace(&mut client.waits, AnswerWait::No);
                drop(client);
                // Once per answer that was waited for.
                if !matches!(waited, AnswerWait::No) {
                    self.health.record_proof(None);
                }
                packet.narrow_to(part);
                each(packet, &source);
            }
        })
    }
}

/// The server's side.
pub struct ShadowsocksPackets {
    user_table: Arc<UserTable>,
    opener: ServerOpener,
    /// The change count of the users that the opener was created from.
    seen_changes: u64,
    /// The users of the last packets, for associations that are about to start and for trials.
    owners: HashMap<AssociationKey, UserId>,
    salts: PacketSalts,
    by_trial: bool,
    trials: TrialLimiter,
    /// The claims of its sessions at other nodes of a fleet.
    claims: Option<SessionClaims>,
    /// The time stamp of the last packet, if its session has to be claimed before it starts.
    unclaimed: Option<UnixTime>,
}

/// Returns true if several keys may have to be tried to find the user of a packet.
fn needs_key_trials(users: &Users) -> bool {
    users.method().edition() == Edition::Aead && users.len() > 1
}

impl ShadowsocksPackets {
    /// Creates a server for the current users of `user_table`. All sockets and listeners with the same key share
    /// `salts` and `sessions`.
    #[must_use]
    pub fn new(
        user_table: Arc<UserTable>,
        salts: Arc<SaltPool>,
        sessions: Arc<SessionRegistry>,
    ) -> Self {
        let users = user_table.users();
        Self {
            seen_changes: user_table.change_count(),
            opener: ServerOpener::with_registry(&users, sessions),
            user_table,
            owners: HashMap::new(),
            by_trial: needs_key_trials(&users),
            trials: TrialLimiter::default(),
            salts: PacketSalts::new(users.method(), salts),
            claims: None,
            unclaimed: None,
        }
    }

    /// Claims its sessions at other nodes of a fleet.
    pub(crate) fn with_claims(self, claims: Option<SessionClaims>) -> Self {
        Self { claims, ..self }
    }

    /// Updates the opener if the users have changed, which takes one comparison otherwise.
    fn refresh_users(&mut self) {
        let changes = self.user_table.change_count();
        if changes != self.seen_changes {
            self.seen_changes = changes;
            let users = self.user_table.users();
            self.by_trial = needs_key_trials(&users);
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
    ) -> Result<IncomingPacket, ProtocolError> {
        let now = system::monotonic_now();
        let hint = known.or_else(|| self.user_table.last_user_at(from.ip()));
        let bytes = packet.payload_mut();
        let opened = if self.trials.may_try_all(from.ip(), now) {
            let opened = self.opener.open_hinted(bytes, hint, system::unix_now());
            if matches!(opened, Err(ProtocolError::Unauthentic)) {
                self.trials.record_failure(from.ip(), now);
            }
            opened
        } else {
            self.opener.open_for_user(bytes, hint, system::unix_now())
        };
        if let (
            Ok(IncomingPacket {
                user: Some(user), ..
            }),
            true,
        ) = (&opened, known.is_none())
        {
            self.user_table.record_user_at(from.ip(), *user);
        }
        opened
    }
}

impl PacketCodec for ShadowsocksPackets {
    fn open(
        &mut self,
        packet: &mut PacketBuf,
        from: SocketAddr,
    ) -> Result<(AssociationKey, Target), ProtocolError> {
        self.refresh_users();
        let known = self.owners.get(&AssociationKey::Source(from)).copied();
        let opened = if self.by_trial {
            self.open_by_trial(packet, from, known)
        } else {
            let bytes = packet.payload_mut();
            self.opener.open_hinted(bytes, known, system::unix_now())
        };
        let IncomingPacket {
            session,
            user,
            target,
            payload,
            new,
            stamp,
            ..
        } = opened?;
        self.salts.record_salt(packet.payload_mut())?;
        self.unclaimed = None;
        if let (Some(claims), Some(session), Some(stamp)) = (&self.claims, session, stamp) {
            let name = || owner_name(self.opener.users(), user);
            let starts = claims.note_packet(session, new, stamp, name);
            self.unclaimed = starts.then_some(stamp);
        }
        packet.narrow_to(payload);
        let key = session.map_or(AssociationKey::Source(from), AssociationKey::Session);
        if let Some(user) = user
            && (new || (session.is_none() && known != Some(user)))
        {
            self.owners.insert(key, user);
        }
        Ok((key, target))
    }

    fn reply_seal(&mut self, key: AssociationKey) -> Option<Box<dyn ReplySeal>> {
        let sealer = match (key, self.owners.get(&key)) {
            (AssociationKey::Session(id), _) => {
                self.opener.create_sealer(Some(id), &mut ThreadRng)?
            }
            (AssociationKey::Source(_), Some(user)) => {
                self.opener.create_sealer_for(*user, &mut ThreadRng)?
            }
            (AssociationKey::Source(_), None) => self.opener.create_sealer(None, &mut ThreadRng)?,
        };
        let salts = self.salts.clone();
        Some(Box::new(ShadowsocksReplySeal { sealer, salts }))
    }

    fn account_of(&self, key: AssociationKey) -> Option<Arc<UserAccount>> {
        let user = self.owners.get(&key);
        let user = user.and_then(|id| self.opener.users().find_user(*id));
        Some(self.user_table.account_of(user.as_ref()))
    }

    fn claim_association(&mut self, key: AssociationKey) -> Option<ClaimAnswer> {
        let (AssociationKey::Session(session), Some(stamp)) = (key, self.unclaimed.take()) else {
            return None;
        };
        let name = owner_name(self.opener.users(), self.owners.get(&key).copied());
        let claims = self.claims.as_mut()?;
        claims.start_session(session, stamp, &name)
    }

    fn forget_association(&mut self, key: AssociationKey) {
        self.owners.remove(&key);
        if let AssociationKey::Session(id) = key {
            self.opener.forget_session(id, system::unix_now());
        }
    }

    fn refuses_replays(&self) -> bool {
        let edition = self.opener.users().method().edition();
        matches!(edition, Edition::Aead | Edition::Aead2022)
    }
}

/// Returns the name of a session's user, which is the same on all nodes; empty if there is a single key.
fn owner_name(users: &Users, user: Option<UserId>) -> String {
    let owner = user.and_then(|user| users.find_user(user));
    owner.map_or_else(String::new, |owner| owner.name().to_owned())
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
    fn record_salt(&self, packet: &[u8]) -> Result<(), ProtocolError> {
        let Some(pool) = &self.pool else {
            return Ok(());
        };
        let salt = packet.get(..self.len);
        let salt = salt.ok_or(ProtocolError::Truncated("a packet"))?;
        // The time is ignored for packets without a time stamp.
        pool.insert_salt(salt, None, UnixTime::default())
    }
}

struct ShadowsocksReplySeal {
    sealer: ServerSealer,
    salts: PacketSalts,
}

impl ReplySeal for ShadowsocksReplySeal {
    fn seal(&mut self, packet: &mut PacketBuf, source: &Target) -> Result<(), ProtocolError> {
        let (bytes, payload) = packet.buffer_and_range();
        let sealed =
            self.sealer
                .seal(bytes, payload, source, system::unix_now(), &mut ThreadRng)?;
        packet.set_payload(sealed);
        self.salts.record_salt(packet.payload_mut())
    }
}
