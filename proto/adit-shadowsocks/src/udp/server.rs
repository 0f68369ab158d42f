//! A server's sessions. Packets are assigned by session id, not by source address.

use core::fmt;
use core::ops::Range;
use std::collections::BTreeMap;
use std::sync::Arc;

use adit_wire::{Entropy, ProtocolError, SlidingWindow, Target, UnixTime};

use super::SessionRegistry;
use super::packet::{BodyKey, CachedBodyKey, open_body, open_identity, open_ids};
use super::sender::PacketSender;
use super::sessionless;
use crate::identity::{IDENTITY_LEN, IdentityHash};
use crate::{Edition, ProcessStart, RestartPolicy, UserId, Users};

/// Maximum number of sessions of a [`ServerOpener`]; packets of further ones are refused.
pub const MAX_SESSIONS: usize = 65_536;

/// Opens the packets of all clients of one server.
///
/// The caller manages the lifetimes: call [`forget_session`](Self::forget_session) when a session is no longer
/// needed. The [`SessionRegistry`] remembers the session's highest packet for as long as its packets
/// are valid.
pub struct ServerOpener {
    users: Arc<Users>,
    registry: Arc<SessionRegistry>,
    /// This opener's number in the book.
    number: u64,
    /// The latest time passed to `open`.
    latest: UnixTime,
    sessions: BTreeMap<u64, Box<ClientState>>,
    /// A copy of the received packet while keys are tried on it; a field to reuse its allocation.
    sealed: Vec<u8>,
}

struct ClientState {
    /// The user that owns the session. Packets of other users do not reach it.
    owner: UserId,
    /// The hash in its packets' identity headers, if the users have those.
    identity_hash: Option<IdentityHash>,
    body_key: CachedBodyKey,
    window: SlidingWindow,
}

/// An opened packet.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct IncomingPacket {
    /// The client's session id; `None` in editions without sessions, in which the source address
    /// identifies the client.
    pub session: Option<u64>,
    /// The sender, whose name [`Users::find_user`] returns; `None` if there is a single key.
    pub user: Option<UserId>,
    /// True if this is the first packet of its session; false in editions without sessions.
    pub new: bool,
    /// The client's time stamp; `None` in editions without one.
    pub stamp: Option<UnixTime>,
    /// The destination of the data.
    pub target: Target,
    /// The range of the data in the packet; may be empty.
    pub payload: Range<usize>,
}

impl ServerOpener {
    /// Creates an opener without sessions that shares its key with no other opener.
    #[must_use]
    pub fn new(users: &Arc<Users>) -> Self {
        let start = ProcessStart::new(UnixTime::default(), RestartPolicy::Lenient);
        Self::with_registry(users, Arc::new(SessionRegistry::new(start)))
    }

    /// Creates an opener without sessions. All openers for one key must share a `book`, so that a
    /// packet which one of them has accepted cannot open a session at another.
    #[must_use]
    pub fn with_registry(users: &Arc<Users>, registry: Arc<SessionRegistry>) -> Self {
        Self {
            users: users.clone(),
            number: registry.register_opener(),
            registry,
            latest: UnixTime::default(),
            sessions: BTreeMap::new(),
            sealed: Vec::new(),
        }
    }

    /// Returns the users.
    #[must_use]
    pub const fn users(&self) -> &Arc<Users> {
        &self.users
    }

    /// Replaces the users. Drops the sessions of users who are gone or have another key, and
    /// returns the ids of these sessions; the caller must drop their [`ServerSealer`]s. All other
    /// sessions continue.
    pub fn set_users(&mut self, users: Arc<Users>) -> Vec<u64> {
        let mut gone = Vec::new();
        self.sessions.retain(|id, session| {
            let stays = users.still_has(session.owner);
            if !stays {
                gone.push(*id);
                self.registry.close_session(
                    (*id, owner_tag(session.identity_hash)),
                    session.window.highest(),
                    self.latest,
                );
            }
            stays
        });
        self.users = users;
        gone
    }

    /// Opens a packet in place. State changes only after the whole packet has been verified, so
    /// forged packets cost no memory. Set a session's return address only after success.
    ///
    /// # Errors
    ///
    /// Fails if the packet is malformed, forged, replayed or too old, or if there are
    /// [`MAX_SESSIONS`] already; with [`ProtocolError::Elsewhere`] if the process that this one succeeds serves the
    /// session.
    pub fn open_packet(
        &mut self,
        packet: &mut [u8],
        now: UnixTime,
    ) -> Result<IncomingPacket, ProtocolError> {
        self.open_hinted(packet, None, now)
    }

    /// Opens a packet like `open`, with the user last seen at the packet's source as
    /// a hint. If users are found by trial ([`Users::with_trial_keys`]), this user is tried first; otherwise
    /// the hint has no effect.
    ///
    /// # Errors
    ///
    /// Fails in the same cases as `open`.
    pub fn open_hinted(
        &mut self,
        packet: &mut [u8],
        hint: Option<UserId>,
        now: UnixTime,
    ) -> Result<IncomingPacket, ProtocolError> {
        match self.users.method().edition() {
            Edition::Aead2022 => self.open_session_packet(packet, now),
            Edition::Stream => self.open_stream_packet(packet),
            Edition::Aead | Edition::None => self.try_all_keys(packet, hint, usize::MAX),
        }
    }

    /// Opens a packet like [`open_hinted`](Self::open_hinted), but if users are found by trial it
    /// tries only this user's key.
    ///
    /// # Errors
    ///
    /// Fails in the same cases as `open`.
    pub fn open_for_user(
        &mut self,
        packet: &mut [u8],
        user: Option<UserId>,
        now: UnixTime,
    ) -> Result<IncomingPacket, ProtocolError> {
        match self.users.method().edition() {
            Edition::Aead if self.users.len() > 1 => {
                self.try_all_keys(packet, user, usize::from(user.is_some()))
            }
            _ => self.open_hinted(packet, user, now),
        }
    }

    /// 2022: opens a packet with the key of its session, or of the user that the identity header
    /// names.
    fn open_session_packet(
        &mut self,
        packet: &mut [u8],
        now: UnixTime,
    ) -> Result<IncomingPacket, ProtocolError> {
        self.latest = now;
        let users = &*self.users;
        let outer = users.outer_key().ok_or(ProtocolError::Unauthentic)?;
        let ids = open_ids(outer, packet)?;
        let (named, skip) = match users.identity_key() {
            Some(identity) => (Some(open_identity(identity, packet)?), IDENTITY_LEN),
            None => (None, 0),
        };
        let known = self.sessions.get_mut(&ids.session);
        let new = known.is_none();
        let (body, owner) = if let Some(session) = known {
            if session.identity_hash != named {
                return Err(ProtocolError::Malformed(
                    "packet: session belongs to another user",
                ));
            }
            if !session.window.would_accept(ids.packet) {
                return Err(ProtocolError::Replayed);
            }
            let place = users
                .index_of(session.owner)
                .ok_or(ProtocolError::Unauthentic)?;
            let open = |key: &BodyKey| open_body(outer, key, packet, skip, None, now);
            let key = &mut session.body_key;
            let derive = || {
                users
                    .material_at(place)
                    .map(|key| BodyKey::derive(&key, ids.session))
            };
            let body = key.with_key(derive, open)?;
            session.window.accept(ids.packet);
            (body, session.owner)
        } else {
            let place = named.map_or(Some(0), |named| users.find_by_hash(named));
            // An unknown user is treated like a wrong key.
            let place = place.ok_or(ProtocolError::Unauthentic)?;
            let owner = users.id_at(place).ok_or(ProtocolError::Unauthentic)?;
            let mut body_key = CachedBodyKey::default();
            let open = |key: &BodyKey| open_body(outer, key, packet, skip, None, now);
            let derive = || {
                users
                    .material_at(place)
                    .map(|key| BodyKey::derive(&key, ids.session))
            };
            let body = body_key.with_key(derive, open)?;
            if self.sessions.len() >= MAX_SESSIONS {
                return Err(ProtocolError::Exhausted("the table of UDP sessions"));
            }
            let (name, packet) = ((ids.session, owner_tag(named)), ids.packet);
            let before = self
                .registry
                .begin_session(name, self.number, packet, body.stamp, now)?;
            let mut window =
                before.map_or_else(SlidingWindow::default, SlidingWindow::starting_after);
            window.accept(packet);
            let session = ClientState {
                owner,
                identity_hash: named,
                body_key,
                window,
            };
            self.sessions.insert(ids.session, Box::new(session));
            (body, owner)
        };
        Ok(IncomingPacket {
            session: Some(ids.session),
            user: named.map(|_| owner),
            new,
            stamp: Some(body.stamp),
            target: body.target,
            payload: body.payload,
        })
    }

    /// Legacy: opens a packet. Anything with a valid address is one, since nothing more can be
    /// verified.
    fn open_stream_packet(&self, packet: &mut [u8]) -> Result<IncomingPacket, ProtocolError> {
        let key = self.users.outer_key().ok_or(ProtocolError::Unauthentic)?;
        let (target, payload) = sessionless::open_packet(key, packet)?;
        Ok(IncomingPacket {
            session: None,
            user: None,
            new: false,
            stamp: None,
            target,
            payload,
        })
    }

    /// AEAD and `none`: finds the key that opens the packet. Tries each user once, the hinted one
    /// first, and at most `most` of them.
    fn try_all_keys(
        &mut self,
        packet: &mut [u8],
        hint: Option<UserId>,
        most: usize,
    ) -> Result<IncomingPacket, ProtocolError> {
        let users = &*self.users;
        let several = users.len() > 1;
        if several {
            self.sealed.clear();
            self.sealed.extend_from_slice(packet);
        }
        let mut tried = false;
        for place in users.trial_order(hint).take(most) {
            if core::mem::replace(&mut tried, true) {
                // A wrong key has destroyed the packet.
                packet.copy_from_slice(&self.sealed);
            }
            match sessionless::open_with_material(&users.material_at(place)?, packet) {
                Ok((target, payload)) => {
                    return Ok(IncomingPacket {
                        session: None,
                        user: users.id_at(place).filter(|_| users.has_names()),
                        new: false,
                        stamp: None,
                        target,
                        payload,
                    });
                }
                Err(ProtocolError::Unauthentic) => {}
                Err(why) => return Err(why),
            }
        }
        Err(ProtocolError::Unauthentic)
    }

    /// Creates the sealing side of a session, with its own server session id and packet counter.
    /// Call it once per session: a client takes a second id for a restarted server, and a third for
    /// an attack.
    ///
    /// Returns `None` if the session is unknown, or if a session is passed in an edition without
    /// sessions; such an edition with several users needs [`create_sealer_for`](Self::create_sealer_for).
    #[allow(clippy::needless_pass_by_ref_mut)] // one call per session: not for shared use
    pub fn create_sealer(
        &mut self,
        session: Option<u64>,
        entropy: &mut dyn Entropy,
    ) -> Option<ServerSealer> {
        let is_2022 = self.users.method().edition() == Edition::Aead2022;
        let key = match session {
            Some(client) if is_2022 => {
                let owner = self.sessions.get(&client)?.owner;
                self.users.key_at(self.users.index_of(owner)?)?
            }
            None if !is_2022 => self.users.outer_key()?.clone(),
            _ => return None,
        };
        Some(ServerSealer(PacketSender::new(
            key.into(),
            session,
            entropy,
        )))
    }

    /// Creates the sealing side of answers to `user`, in an edition without sessions. Returns
    /// `None` in the 2022 edition, and if the user is unknown.
    #[must_use]
    pub fn create_sealer_for(
        &self,
        user: UserId,
        entropy: &mut dyn Entropy,
    ) -> Option<ServerSealer> {
        if self.users.method().edition() == Edition::Aead2022 {
            return None;
        }
        let key = self.users.key_at(self.users.index_of(user)?)?;
        Some(ServerSealer(PacketSender::new(key.into(), None, entropy)))
    }

    /// Drops a session and its replay window at `now`. Its [`ServerSealer`] stays usable. If the
    /// client sends more packets, the session starts again after its highest packet.
    pub fn forget_session(&mut self, session: u64, now: UnixTime) {
        if let Some(dropped) = self.sessions.remove(&session) {
            self.registry.close_session(
                (session, owner_tag(dropped.identity_hash)),
                dropped.window.highest(),
                now,
            );
        }
    }

    /// Returns the number of sessions.
    #[must_use]
    pub fn session_count(&self) -> usize {
        self.sessions.len()
    }
}

/// Returns the owner part of a session's [`OwnedSessionId`](super::session_registry::OwnedSessionId).
fn owner_tag(named: Option<IdentityHash>) -> u64 {
    named.map_or(0, IdentityHash::first_half)
}

impl Drop for ServerOpener {
    fn drop(&mut self) {
        for (session, dropped) in &self.sessions {
            self.registry.close_session(
                (*session, owner_tag(dropped.identity_hash)),
                dropped.window.highest(),
                self.latest,
            );
        }
    }
}

impl fmt::Debug for ServerOpener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerOpener")
            .field("users", &self.users)
            .field("sessions", &self.sessions.len())
            .finish()
    }
}

/// Seals the answers to one client.
pub struct ServerSealer(pub(super) PacketSender);

impl ServerSealer {
    /// Seals `packet[payload]`, received from `source`, in place and returns the range to send. The
    /// packet needs [`super::HEADROOM`] bytes in front of the payload and [`super::TAILROOM`]
    /// after it.
    ///
    /// # Errors
    ///
    /// Fails if there is too little room or if the packet counter is exhausted.
    pub fn seal(
        &mut self,
        packet: &mut [u8],
        payload: Range<usize>,
        source: &Target,
        now: UnixTime,
        entropy: &mut dyn Entropy,
    ) -> Result<Range<usize>, ProtocolError> {
        self.0.seal(packet, payload, source, now, entropy)
    }
}

impl fmt::Debug for ServerSealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerSealer")
            .field("key", self.0.key())
            .finish_non_exhaustive()
    }
}
