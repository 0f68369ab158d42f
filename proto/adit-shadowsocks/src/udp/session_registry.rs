//! Sessions of one key, open and closed, across all listeners.
//!
//! A session's replay window belongs to its listener, which drops it with the session. This table
//! stores what must outlast it: that the session existed and its highest packet, for as long as one
//! of its packets may still be valid; and which listener serves an open session, so that no other
//! listener with the same key does.

mod snapshot;
#[cfg(test)]
mod snapshot_tests;

use core::fmt;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use adit_wire::{ProtocolError, UnixTime};

use crate::ProcessStart;
use crate::generations::Generations;

pub use snapshot::SessionRestoreError;

/// Maximum number of closed sessions of one generation. Above it the older generation is dropped
/// immediately: it is better to risk that a recording of one of its sessions is accepted than to
/// refuse all clients.
const MAX_CLOSED: usize = 131_072;

/// The sessions of one key, shared by all openers of its packets.
pub struct SessionRegistry {
    start: ProcessStart,
    state: Mutex<State>,
}

/// The opener in another process, which this one continues.
const PREVIOUS_PROCESS: u64 = 0;

/// A session's id, and half of the identity hash that names its owner.
pub(super) type OwnedSessionId = (u64, u64);

#[derive(Default)]
struct State {
    openers: u64,
    /// The opener that serves a session, or [`PREVIOUS_PROCESS`].
    open: BTreeMap<OwnedSessionId, u64>,
    /// The highest packet of each closed session.
    closed: Generations<HashMap<OwnedSessionId, u64>>,
}

impl SessionRegistry {
    /// Creates an empty book. With a strict `start`, packets from before it cannot start a session.
    #[must_use]
    pub fn new(start: ProcessStart) -> Self {
        let state = Mutex::default();
        Self { start, state }
    }

    /// Returns the number for another opener.
    pub(super) fn register_opener(&self) -> u64 {
        let mut state = self.lock_state();
        state.openers += 1;
        state.openers
    }

    /// Starts a session at an opener with an authentic packet: `packet` is its number, `stamp` its
    /// time. If the session was closed before, returns its highest packet.
    pub(super) fn begin_session(
        &self,
        session: OwnedSessionId,
        opener: u64,
        packet: u64,
        stamp: UnixTime,
        now: UnixTime,
    ) -> Result<Option<u64>, ProtocolError> {
        self.start.check_stamp(stamp, now)?;
        let mut state = self.lock_state();
        state.closed.rotate_at(now);
        match state.open.get(&session) {
            Some(&PREVIOUS_PROCESS) => return Err(ProtocolError::Elsewhere),
            Some(at) if *at != opener => return Err(ProtocolError::Replayed),
            _ => {}
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

    /// Closes a session whose highest packet was `highest`.
    pub(super) fn close_session(&self, session: OwnedSessionId, highest: u64, now: UnixTime) {
        let mut state = self.lock_state();
        state.closed.rotate_at(now);
        if state.closed.current.len() >= MAX_CLOSED {
            state.closed.rotate_early(now);
        }
        state.open.remove(&session);
        state.closed.current.insert(session, highest);
    }

    fn lock_state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for SessionRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionBook").finish_non_exhaustive()
    }
}
