//! Snapshots of a registry for a process that continues the work of this one while this one still runs.
//!
//! The first process goes on serving its open sessions, and their replay windows with them. The next one
//! refuses them until a later snapshot lists them as closed, with their highest packet:
//!
//! ```text
//! "adit-ses" ‖ 1 ‖ started(u64) ‖ restart(u8)
//!     ‖ { session(u64) ‖ owner(u64) ‖ open(u8) ‖ highest packet(u64), 0 if open } …
//! ```

use adit_wire::{EndOfInput, Reader, UnixTime};

use super::{MAX_CLOSED, OwnedSessionId, PREVIOUS_PROCESS, ProcessStart, SessionRegistry, State};

const MAGIC: &[u8; 8] = b"adit-ses";
const VERSION: u8 = 1;
const ENTRY_LEN: usize = 8 + 8 + 1 + 8;
/// Maximum number of sessions in a part.
const PART: usize = 65_536;
/// Maximum number of sessions in all parts: those of 8 listeners, and two generations of closed ones.
const MAX_SESSIONS: usize = 8 * super::super::MAX_SESSIONS + 2 * MAX_CLOSED;

/// The reason bytes are not a valid snapshot. The registry is unchanged after an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SessionRestoreError {
    /// The bytes are not a snapshot.
    #[error("not a snapshot of UDP sessions")]
    Foreign,
    /// A snapshot of another format version.
    #[error("version {0} of snapshots of UDP sessions is not supported")]
    Version(u8),
    /// Truncated, altered, or without a part.
    #[error("the snapshot of UDP sessions is damaged")]
    Damaged,
    /// More sessions than eight listeners can have.
    #[error("the snapshot of UDP sessions has more than {MAX_SESSIONS} sessions")]
    TooMany,
}

/// A session of a snapshot; with its highest packet if it is closed.
type Entry = (OwnedSessionId, Option<u64>);

impl SessionRegistry {
    /// Returns the sessions in parts of at most 2 MiB, without closed ones that have expired at `now`. There is
    /// at least one part.
    #[must_use]
    pub fn snapshot(&self, now: UnixTime) -> Vec<Vec<u8>> {
        let mut state = self.lock_state();
        state.closed.rotate_at(now);
        let closed = [&state.closed.previous, &state.closed.current];
        let closed = closed.into_iter().flatten();
        let closed = closed.map(|(session, highest)| (*session, Some(*highest)));
        // A session that was closed and started again is open.
        let closed = closed.filter(|(session, _)| !state.open.contains_key(session));
        let open = state.open.keys().map(|session| (*session, None));
        let entries: Vec<Entry> = closed.chain(open).collect();
        if entries.is_empty() {
            return vec![self.encode_part(&[])];
        }
        let parts = entries.chunks(PART);
        parts.map(|entries| self.encode_part(entries)).collect()
    }

    fn encode_part(&self, entries: &[Entry]) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.push(VERSION);
        out.extend_from_slice(&self.start.to_bytes());
        out.reserve(entries.len() * ENTRY_LEN);
        for ((session, owner), highest) in entries {
            out.extend_from_slice(&session.to_be_bytes());
            out.extend_from_slice(&owner.to_be_bytes());
            out.push(highest.is_none().into());
            out.extend_from_slice(&highest.unwrap_or(0).to_be_bytes());
        }
        out
    }

    /// Creates a registry from all parts of a [snapshot](Self::snapshot), with the start and the policy of the
    /// original.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are not a snapshot, of an unknown version or damaged, or have too many sessions.
    pub fn from_snapshot(
        parts: &[impl AsRef<[u8]>],
        now: UnixTime,
    ) -> Result<Self, SessionRestoreError> {
        let snapshot = Snapshot::parse(parts)?;
        let registry = Self::new(snapshot.start.ok_or(SessionRestoreError::Damaged)?);
        registry.lock_state().merge(&snapshot.entries, now);
        Ok(registry)
    }

    /// Adds all parts of a later [snapshot](Self::snapshot) to a registry that may be in use. Sessions that were open
    /// in the earlier one and are missing in this one can start here.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are not a snapshot, of an unknown version or damaged, or have too many sessions.
    pub fn merge_snapshot(
        &self,
        parts: &[impl AsRef<[u8]>],
        now: UnixTime,
    ) -> Result<(), SessionRestoreError> {
        let snapshot = Snapshot::parse(parts)?;
        self.lock_state().merge(&snapshot.entries, now);
        Ok(())
    }

    /// Records that the process from which the snapshots were received has ended. Sessions that were open in the
    /// last one can only start here after their packets have expired: the highest packet is unknown.
    pub fn end_previous_process(&self, now: UnixTime) {
        let mut state = self.lock_state();
        state.closed.rotate_at(now);
        let State { open, closed, .. } = &mut *state;
        open.retain(|session, opener| {
            let ended = *opener == PREVIOUS_PROCESS;
            if ended && closed.current.len() < MAX_CLOSED {
                closed.current.insert(*session, u64::MAX);
            }
            !ended
        });
    }
}

impl State {
    fn merge(&mut self, entries: &[Entry], now: UnixTime) {
        self.closed.rotate_at(now);
        self.open.retain(|_, opener| *opener != PREVIOUS_PROCESS);
        for (session, highest) in entries {
            let Some(highest) = highest else {
                // One that was started here is served here.
                self.open.entry(*session).or_insert(PREVIOUS_PROCESS);
                continue;
            };
            let before = self.closed.previous.get(session).copied().unwrap_or(0);
            let stored = self.closed.current.entry(*session).or_insert(before);
            *stored = before.max(*stored).max(*highest);
        }
    }
}

/// All parts of a snapshot.
#[derive(Default)]
struct Snapshot {
    /// `None` if there is no part.
    start: Option<ProcessStart>,
    entries: Vec<Entry>,
}

impl Snapshot {
    fn parse(parts: &[impl AsRef<[u8]>]) -> Result<Self, SessionRestoreError> {
        let mut snapshot = Self::default();
        for part in parts {
            snapshot.parse_part(part.as_ref())?;
        }
        if snapshot.start.is_none() {
            return Err(SessionRestoreError::Damaged);
        }
        Ok(snapshot)
    }

    fn parse_part(&mut self, bytes: &[u8]) -> Result<(), SessionRestoreError> {
        let damaged = |EndOfInput| SessionRestoreError::Damaged;
        let mut r = Reader::new(bytes);
        if r.array() != Ok(*MAGIC) {
            return Err(SessionRestoreError::Foreign);
        }
        match r.u8().map_err(damaged)? {
            VERSION => {}
            other => return Err(SessionRestoreError::Version(other)),
        }
        let start = ProcessStart::read_from(&mut r).map_err(damaged)?;
        self.start = Some(start);
        let count = r.rest().len() / ENTRY_LEN;
        if self.entries.len() + count > MAX_SESSIONS {
            return Err(SessionRestoreError::TooMany);
        }
        self.entries.reserve(count);
        while !r.rest().is_empty() {
            let session = (r.u64().map_err(damaged)?, r.u64().map_err(damaged)?);
            let open = r.u8().map_err(damaged)?;
            let highest = r.u64().map_err(damaged)?;
            let highest = match (open, highest) {
                (0, highest) => Some(highest),
                (1, 0) => None,
                _ => return Err(SessionRestoreError::Damaged),
            };
            self.entries.push((session, highest));
        }
        Ok(())
    }
}
