//! A server's sessions: packets are routed by their session, not by where they come from.

use core::fmt;
use core::ops::Range;
use std::collections::BTreeMap;

use adit_wire::{Broken, Entropy, SlidingWindow, Target, Unix};

use super::packet::{BodyKey, open_body, unveil};
use super::sender::Sender;
use super::single;
use crate::{Edition, Key};

/// Sessions one [`ServerOpener`] keeps; the packets of further ones are refused.
pub const MAX_SESSIONS: usize = 65_536;

/// Opens the packets of all clients of one key.
///
/// The caller owns the lifetimes: keep a session for 60 s at least after its last packet, since
/// its replay window goes with it, then [`forget`](Self::forget) it.
pub struct ServerOpener {
    key: Key,
    sessions: BTreeMap<u64, Box<Session>>,
}

struct Session {
    body_key: BodyKey,
    window: SlidingWindow,
}

/// An opened packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incoming {
    /// The client's session; `None` in the editions without, where the source address takes
    /// its place.
    pub session: Option<u64>,
    /// Whether this is the first packet of its session; false where there are none.
    pub new: bool,
    /// Where the data is to go.
    pub target: Target,
    /// Where the data lies in the packet; may be empty.
    pub payload: Range<usize>,
}

impl ServerOpener {
    /// No sessions yet.
    #[must_use]
    pub fn new(key: &Key) -> Self {
        Self {
            key: key.clone(),
            sessions: BTreeMap::new(),
        }
    }

    /// Opens a packet in place. State changes only after everything in it was found right, so
    /// forged packets cost no memory; set a session's return address only after a success.
    pub fn open(&mut self, packet: &mut [u8], now: Unix) -> Result<Incoming, Broken> {
        if self.key.method().edition() != Edition::Aead2022 {
            let (target, payload) = single::open(&self.key, packet)?;
            return Ok(Incoming {
                session: None,
                new: false,
                target,
                payload,
            });
        }
        let ids = unveil(&self.key, packet)?;
        let known = self.sessions.get_mut(&ids.session);
        let new = known.is_none();
        let body = if let Some(session) = known {
            if !session.window.check(ids.packet) {
                return Err(Broken::Replayed);
            }
            let body = open_body(&self.key, &session.body_key, packet, None, now)?;
            session.window.mark(ids.packet);
            body
        } else {
            let body_key = BodyKey::derive(&self.key, ids.session);
            let body = open_body(&self.key, &body_key, packet, None, now)?;
            if self.sessions.len() >= MAX_SESSIONS {
                return Err(Broken::Exhausted("the table of UDP sessions"));
            }
            let mut window = SlidingWindow::default();
            window.mark(ids.packet);
            let session = Box::new(Session { body_key, window });
            self.sessions.insert(ids.session, session);
            body
        };
        Ok(Incoming {
            session: Some(ids.session),
            new,
            target: body.target,
            payload: body.payload,
        })
    }

    /// The sealing side of a session, with a server session id and a counter of its own. Call it
    /// once per session: a client takes a second id for a restarted server, and a third for an
    /// attack. `None` if the session is unknown, or is given in an edition without sessions.
    #[allow(clippy::needless_pass_by_ref_mut)] // one call per session: not for shared use
    pub fn sealer(
        &mut self,
        session: Option<u64>,
        entropy: &mut dyn Entropy,
    ) -> Option<ServerSealer> {
        let is_2022 = self.key.method().edition() == Edition::Aead2022;
        let known = match session {
            Some(client) => is_2022 && self.sessions.contains_key(&client),
            None => !is_2022,
        };
        known.then(|| ServerSealer(Sender::new(&self.key, session, entropy)))
    }

    /// Drops a session and its replay window. Its [`ServerSealer`] goes on working.
    pub fn forget(&mut self, session: u64) {
        self.sessions.remove(&session);
    }

    /// Number of sessions kept.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }
}

impl fmt::Debug for ServerOpener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerOpener")
            .field("key", &self.key)
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
        now: Unix,
        entropy: &mut dyn Entropy,
    ) -> Result<Range<usize>, Broken> {
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
