//! A client's session: one per application socket.

use core::fmt;
use core::ops::Range;

use adit_wire::{Entropy, ProtocolError, SlidingWindow, Target, UnixTime};

use super::packet::{BodyKey, open_body, open_ids};
use super::sender::PacketSender;
use super::sessionless;
use crate::KeyChain;

/// Minimum age of a server session change, in seconds, before another change is accepted.
const MIN_CHANGE_INTERVAL: u64 = 60;

/// Seals a client's packets and opens the server's.
pub struct ClientSession {
    pub(super) sender: PacketSender,
    servers: ServerSessions,
}

/// The server sessions that answer this client: a server chooses a new one after it has restarted
/// or has forgotten the client.
#[derive(Default)]
struct ServerSessions {
    current: Option<Box<ServerSession>>,
    previous: Option<Box<ServerSession>>,
    /// The time at which `current` replaced `previous`.
    changed: Option<UnixTime>,
}

struct ServerSession {
    id: u64,
    body_key: BodyKey,
    window: SlidingWindow,
}

impl ClientSession {
    /// Creates a session with a random id. Packets have one identity header for each identity key
    /// of the `chain`.
    pub fn new(chain: &KeyChain, entropy: &mut dyn Entropy) -> Self {
        Self {
            sender: PacketSender::new(chain.clone(), None, entropy),
            servers: ServerSessions::default(),
        }
    }

    /// Seals `packet[payload]` for `target` in place and returns the range to send. The packet
    /// needs [`super::HEADROOM`] bytes in front of the payload and [`super::TAILROOM`] after it.
    /// The payload may be empty.
    ///
    /// # Errors
    ///
    /// Fails if there is too little room or if the packet counter is exhausted.
    pub fn seal(
        &mut self,
        packet: &mut [u8],
        payload: Range<usize>,
        target: &Target,
        now: UnixTime,
        entropy: &mut dyn Entropy,
    ) -> Result<Range<usize>, ProtocolError> {
        self.sender.seal(packet, payload, target, now, entropy)
    }

    /// Opens a packet from the server in place and returns its source and the range of its data.
    ///
    /// # Errors
    ///
    /// Fails if the packet is malformed, forged, replayed or too old, answers another session, or
    /// changes the server session too soon after the last change.
    pub fn open(
        &mut self,
        packet: &mut [u8],
        now: UnixTime,
    ) -> Result<(Target, Range<usize>), ProtocolError> {
        let key = self.sender.key();
        let answers = self.sender.session_id();
        if answers.is_none() {
            return sessionless::open_packet(key, packet);
        }
        let ids = open_ids(key, packet)?;
        if let Some(server) = self.servers.find_session(ids.session) {
            if !server.window.would_accept(ids.packet) {
                return Err(ProtocolError::Replayed);
            }
            let body = open_body(key, &server.body_key, packet, 0, answers, now)?;
            server.window.accept(ids.packet);
            return Ok((body.target, body.payload));
        }
        let mut server = ServerSession {
            id: ids.session,
            body_key: BodyKey::derive(key.material(), ids.session),
            window: SlidingWindow::default(),
        };
        let body = open_body(key, &server.body_key, packet, 0, answers, now)?;
        server.window.accept(ids.packet);
        self.servers.adopt_session(server, now)?;
        Ok((body.target, body.payload))
    }
}

impl ServerSessions {
    fn find_session(&mut self, id: u64) -> Option<&mut ServerSession> {
        let both = [&mut self.current, &mut self.previous];
        let mut both = both.into_iter().filter_map(|s| s.as_deref_mut());
        both.find(|server| server.id == id)
    }

    /// Adopts a new server session, and keeps the previous one for packets still in flight.
    ///
    /// Not twice within 60 s: a window that is dropped too early would accept its packets again.
    fn adopt_session(&mut self, server: ServerSession, now: UnixTime) -> Result<(), ProtocolError> {
        if self.current.is_some() {
            let age = self.changed.map(|at| now.0.abs_diff(at.0));
            if age.is_some_and(|age| age <= MIN_CHANGE_INTERVAL) {
                return Err(ProtocolError::Malformed(
                    "server session: changed too often",
                ));
            }
            self.changed = Some(now);
            self.previous = self.current.take();
        }
        self.current = Some(Box::new(server));
        Ok(())
    }
}

impl fmt::Debug for ClientSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientSession")
            .field("key", self.sender.key())
            .finish_non_exhaustive()
    }
}
