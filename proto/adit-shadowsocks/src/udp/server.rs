//! A server's sessions: packets are routed by their session, not by where they come from.

use core::fmt;
use core::ops::Range;
use std::collections::BTreeMap;
use std::sync::Arc;

use adit_wire::{Entropy, ProtocolError, SlidingWindow, Target, UnixTime};

use super::SessionBook;
use super::packet::{BodyKey, SessionKey, open_body, unveil, unveil_identity};
use super::sender::Sender;
use super::single;
use crate::identity::{IDENTITY_LEN, IdentityHash};
use crate::{Edition, Restart, Start, UserId, Users};

/// Sessions one [`ServerOpener`] keeps; the packets of further ones are refused.
pub const MAX_SESSIONS: usize = 65_536;

/// Opens the packets of all clients of one server.
///
/// The caller owns the lifetimes: [`forget`](Self::forget) a session whenever it is no longer
/// needed. The [`SessionBook`] remembers how far it had come, for as long as its packets are valid.
pub struct ServerOpener {
    users: Arc<Users>,
    book: Arc<SessionBook>,
    /// What the book calls this opener.
    number: u64,
    /// The latest time that was seen.
    latest: UnixTime,
    sessions: BTreeMap<u64, Box<Session>>,
    /// A packet as it came, while keys are tried on it; kept for its memory.
    sealed: Vec<u8>,
}

struct Session {
    /// Whose session it is. Nobody else's packets reach it.
    owner: UserId,
    /// What its packets' identity headers say, where there are such.
    named: Option<IdentityHash>,
    body_key: SessionKey,
    window: SlidingWindow,
}

/// An opened packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incoming {
    /// The client's session; `None` in the editions without, where the source address takes
    /// its place.
    pub session: Option<u64>,
    /// Who sent it, with a name in [`Users::user`]; `None` where there is but one key.
    pub user: Option<UserId>,
    /// Whether this is the first packet of its session; false where there are none.
    pub new: bool,
    /// Where the data is to go.
    pub target: Target,
    /// Where the data lies in the packet; may be empty.
    pub payload: Range<usize>,
}

impl ServerOpener {
    /// No sessions yet, and no other opener for the same key.
    #[must_use]
    pub fn new(users: &Arc<Users>) -> Self {
        let start = Start::new(UnixTime::default(), Restart::Lenient);
        Self::with_book(users, Arc::new(SessionBook::new(start)))
    }

    /// No sessions yet. All openers for one key share a `book`, so that a packet which one of them
    /// has accepted opens no session at another.
    #[must_use]
    pub fn with_book(users: &Arc<Users>, book: Arc<SessionBook>) -> Self {
        Self {
            users: users.clone(),
            number: book.opener(),
            book,
            latest: UnixTime::default(),
            sessions: BTreeMap::new(),
            sealed: Vec::new(),
        }
    }

    /// The users that are served.
    #[must_use]
    pub const fn users(&self) -> &Arc<Users> {
        &self.users
    }

    /// Serves other users from now on. Drops the sessions of those who are gone or have another
    /// key, and gives their numbers; their [`ServerSealer`]s are the caller's to drop. The sessions
    /// of all others go on.
    pub fn set_users(&mut self, users: Arc<Users>) -> Vec<u64> {
        let mut gone = Vec::new();
        self.sessions.retain(|id, session| {
            let stays = users.still_has(session.owner);
            if !stays {
                gone.push(*id);
                self.book.close(
                    (*id, whose(session.named)),
                    session.window.highest(),
                    self.latest,
                );
            }
            stays
        });
        self.users = users;
        gone
    }

    /// Opens a packet in place. State changes only after everything in it was found right, so
    /// forged packets cost no memory; set a session's return address only after a success.
    pub fn open(&mut self, packet: &mut [u8], now: UnixTime) -> Result<Incoming, ProtocolError> {
        self.open_hinted(packet, None, now)
    }

    /// [`open`](Self::open) with the user last seen at the packet's source. Where users are found
    /// by trial ([`Users::trial`]) this one is tried first; elsewhere it changes nothing.
    pub fn open_hinted(
        &mut self,
        packet: &mut [u8],
        hint: Option<UserId>,
        now: UnixTime,
    ) -> Result<Incoming, ProtocolError> {
        match self.users.method().edition() {
            Edition::Aead2022 => self.open_session(packet, now),
            Edition::Stream => self.open_stream(packet),
            Edition::Aead | Edition::None => self.try_all(packet, hint, usize::MAX),
        }
    }

    /// [`open_hinted`](Self::open_hinted), but where users are found by trial nobody else's key is
    /// tried.
    pub fn open_of(
        &mut self,
        packet: &mut [u8],
        user: Option<UserId>,
        now: UnixTime,
    ) -> Result<Incoming, ProtocolError> {
        match self.users.method().edition() {
            Edition::Aead if self.users.len() > 1 => {
                self.try_all(packet, user, usize::from(user.is_some()))
            }
            _ => self.open_hinted(packet, user, now),
        }
    }

    /// 2022: the session's key, or that of the user whom the identity header names.
    fn open_session(
        &mut self,
        packet: &mut [u8],
        now: UnixTime,
    ) -> Result<Incoming, ProtocolError> {
        self.latest = now;
        let users = &*self.users;
        let outer = users.outer().ok_or(ProtocolError::Unauthentic)?;
        let ids = unveil(outer, packet)?;
        let (named, skip) = match users.identity() {
            Some(identity) => (Some(unveil_identity(identity, packet)?), IDENTITY_LEN),
            None => (None, 0),
        };
        let known = self.sessions.get_mut(&ids.session);
        let new = known.is_none();
        let (body, owner) = if let Some(session) = known {
            if session.named != named {
                return Err(ProtocolError::Malformed(
                    "packet: its session is another user's",
                ));
            }
            if !session.window.would_accept(ids.packet) {
                return Err(ProtocolError::Replayed);
            }
            let place = users
                .place(session.owner)
                .ok_or(ProtocolError::Unauthentic)?;
            let open = |key: &BodyKey| open_body(outer, key, packet, skip, None, now);
            let key = &mut session.body_key;
            let body = key.with(users.material(place)?, ids.session, open)?;
            session.window.accept(ids.packet);
            (body, session.owner)
        } else {
            let place = named.map_or(Some(0), |named| users.find(named));
            // Nobody's: no different from a wrong key.
            let place = place.ok_or(ProtocolError::Unauthentic)?;
            let owner = users.id_at(place).ok_or(ProtocolError::Unauthentic)?;
            let mut body_key = SessionKey::default();
            let open = |key: &BodyKey| open_body(outer, key, packet, skip, None, now);
            let body = body_key.with(users.material(place)?, ids.session, open)?;
            if self.sessions.len() >= MAX_SESSIONS {
                return Err(ProtocolError::Exhausted("the table of UDP sessions"));
            }
            let (name, packet) = ((ids.session, whose(named)), ids.packet);
            let before = self
                .book
                .begin(name, self.number, packet, body.stamp, now)?;
            let mut window =
                before.map_or_else(SlidingWindow::default, SlidingWindow::starting_after);
            window.accept(packet);
            let session = Session {
                owner,
                named,
                body_key,
                window,
            };
            self.sessions.insert(ids.session, Box::new(session));
            (body, owner)
        };
        Ok(Incoming {
            session: Some(ids.session),
            user: named.map(|_| owner),
            new,
            target: body.target,
            payload: body.payload,
        })
    }

    /// Legacy: what has an address is a packet, since nothing more can be known.
    fn open_stream(&self, packet: &mut [u8]) -> Result<Incoming, ProtocolError> {
        let key = self.users.outer().ok_or(ProtocolError::Unauthentic)?;
        let (target, payload) = single::open(key, packet)?;
        Ok(Incoming {
            session: None,
            user: None,
            new: false,
            target,
            payload,
        })
    }

    /// AEAD and `none`: whoever's key opens it. Each is tried once, the hinted one first, and `most`
    /// of all.
    fn try_all(
        &mut self,
        packet: &mut [u8],
        hint: Option<UserId>,
        most: usize,
    ) -> Result<Incoming, ProtocolError> {
        let users = &*self.users;
        let several = users.len() > 1;
        if several {
            self.sealed.clear();
            self.sealed.extend_from_slice(packet);
        }
        let mut tried = false;
        for place in users.candidates(hint).take(most) {
            if core::mem::replace(&mut tried, true) {
                // A wrong key has destroyed the packet.
                packet.copy_from_slice(&self.sealed);
            }
            match single::open_material(users.material(place)?, packet) {
                Ok((target, payload)) => {
                    return Ok(Incoming {
                        session: None,
                        user: users.id_at(place).filter(|_| users.have_names()),
                        new: false,
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

    /// The sealing side of a session, with a server session id and a counter of its own. Call it
    /// once per session: a client takes a second id for a restarted server, and a third for an
    /// attack. `None` if the session is unknown, or is given in an edition without sessions; with
    /// several users such an edition needs [`sealer_for`](Self::sealer_for).
    #[allow(clippy::needless_pass_by_ref_mut)] // one call per session: not for shared use
    pub fn sealer(
        &mut self,
        session: Option<u64>,
        entropy: &mut dyn Entropy,
    ) -> Option<ServerSealer> {
        let is_2022 = self.users.method().edition() == Edition::Aead2022;
        let key = match session {
            Some(client) if is_2022 => {
                let owner = self.sessions.get(&client)?.owner;
                self.users.key(self.users.place(owner)?)?
            }
            None if !is_2022 => self.users.outer()?.clone(),
            _ => return None,
        };
        Some(ServerSealer(Sender::new(key.into(), session, entropy)))
    }

    /// The sealing side of the answers to `user`, in an edition without sessions. `None` in the
    /// other, and if there is no such user.
    #[must_use]
    pub fn sealer_for(&self, user: UserId, entropy: &mut dyn Entropy) -> Option<ServerSealer> {
        if self.users.method().edition() == Edition::Aead2022 {
            return None;
        }
        let key = self.users.key(self.users.place(user)?)?;
        Some(ServerSealer(Sender::new(key.into(), None, entropy)))
    }

    /// Drops a session and its replay window at `now`. Its [`ServerSealer`] goes on working. If the
    /// client goes on, the session begins anew behind its highest packet.
    pub fn forget(&mut self, session: u64, now: UnixTime) {
        if let Some(dropped) = self.sessions.remove(&session) {
            self.book.close(
                (session, whose(dropped.named)),
                dropped.window.highest(),
                now,
            );
        }
    }

    /// Number of sessions kept.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }
}

/// Whose a session is, for the book.
fn whose(named: Option<IdentityHash>) -> u64 {
    named.map_or(0, IdentityHash::half)
}

impl Drop for ServerOpener {
    fn drop(&mut self) {
        for (session, dropped) in &self.sessions {
            self.book.close(
                (*session, whose(dropped.named)),
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
pub struct ServerSealer(pub(super) Sender);

impl ServerSealer {
    /// Seals `packet[payload]`, which came from `source`, in place, with [`super::HEAD_ROOM`]
    /// bytes in front and [`super::TAIL_ROOM`] behind; gives the range to send.
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
