//! Which sessions of one key there are and were, wherever their packets come in.
//!
//! A session's replay window is its listener's, who drops it with the session. What must outlast it
//! is here: that the session was there and how far it had come, for as long as one of its packets
//! may still be valid; and that it is not served by another listener with the same key.

use core::fmt;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use adit_wire::{ProtocolError, UnixTime};

use crate::Start;
use crate::generations::Generations;

/// Closed sessions of one generation. When there are more the older generation is dropped at once:
/// that a recording of one of its sessions may be accepted is better than that nobody is served.
const CLOSED: usize = 131_072;

/// The sessions of one key, shared by all who open its packets.
pub struct SessionBook {
    start: Start,
    state: Mutex<State>,
}

/// A session's number, and half of what its packets say of whose it is.
pub(super) type Name = (u64, u64);

#[derive(Default)]
struct State {
    openers: u64,
    /// Which opener serves a session.
    open: BTreeMap<Name, u64>,
    /// How far a session had come: its highest packet.
    closed: Generations<HashMap<Name, u64>>,
}

impl SessionBook {
    /// An empty one. With a strict `start`, sessions do not begin with packets from before it.
    #[must_use]
    pub fn new(start: Start) -> Self {
        let state = Mutex::default();
        Self { start, state }
    }

    /// A number for one more opener.
    pub(super) fn opener(&self) -> u64 {
        let mut state = self.lock();
        state.openers += 1;
        state.openers
    }

    /// A session begins at an opener with an authentic packet: `packet` is its number, `stamp` its
    /// time. Returns the highest packet of the session that came before, if it was closed.
    pub(super) fn begin(
        &self,
        session: Name,
        opener: u64,
        packet: u64,
        stamp: UnixTime,
        now: UnixTime,
    ) -> Result<Option<u64>, ProtocolError> {
        self.start.check(stamp, now)?;
        let mut state = self.lock();
        state.closed.turn(now);
        if state.open.get(&session).is_some_and(|at| *at != opener) {
            return Err(ProtocolError::Replayed);
        }
        let before = state.closed.current.get(&session);
        let before = before.or_else(|| state.closed.previous.get(&session));
        let before = before.copied();
        if before.is_some_and(|highest| packet <= highest) {
            return Err(ProtocolError::Replayed);
        }
        state.open.insert(session, opener);
        Ok(before)
    }

    /// A session ends whose highest packet was `highest`.
    pub(super) fn close(&self, session: Name, highest: u64, now: UnixTime) {
        let mut state = self.lock();
        state.closed.turn(now);
        if state.closed.current.len() >= CLOSED {
            state.closed.turn_early(now);
        }
        state.open.remove(&session);
        state.closed.current.insert(session, highest);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for SessionBook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionBook").finish_non_exhaustive()
    }
}
