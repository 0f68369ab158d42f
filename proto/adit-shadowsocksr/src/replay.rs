//! Replay protection for first messages.
//!
//! Two defenses, because each has a gap. Other implementations keep a window of connection ids per
//! client, which is lost when the client is dropped in favor of another; adit also remembers the
//! tags of at least a million messages. Neither survives a restart, after which only the time in
//! the message protects; both survive the replacement of the process by another one that receives a
//! [snapshot](ReplayStore::snapshot).

mod id_window;
mod snapshot;
#[cfg(test)]
mod snapshot_tests;

use core::fmt;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use adit_crypto::{DecisionLog, SipKey};
use adit_wire::{EndOfInput, ProtocolError, Reader, UnixTime, u64_from};
use hashbrown::HashTable;

use id_window::IdWindow;
pub use snapshot::ReplayRestoreError;

/// Maximum number of tags in one of two generations.
const TAGS: usize = 1_000_000;

/// Maximum number of windows of all users together, at about 600 bytes each.
const WINDOWS: usize = 65_536;

/// Minimum number of seconds between two searches for idle clients when the store is full.
const SWEEP_INTERVAL: u64 = 10;

/// The messages that a port's servers have seen; shared by their connections and kept when users
/// change.
///
/// Only authenticated messages are inserted, so only owners of a key can fill it.
pub struct ReplayStore {
    sip: SipKey,
    started: UnixTime,
    seen: Mutex<SeenMessages>,
    limits: StoreLimits,
    log: DecisionLog,
}

#[derive(Clone, Copy)]
struct StoreLimits {
    tags: usize,
    windows: usize,
}

#[derive(Default)]
struct SeenMessages {
    tags: HashTable<u64>,
    older: HashTable<u64>,
    clients: BTreeMap<(u32, [u8; 8]), SeenClient>,
    swept: Option<UnixTime>,
}

struct SeenClient {
    window: IdWindow,
    used: UnixTime,
}

/// A first message to check.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MessageId<'a> {
    /// 0 if the port has no users.
    pub(crate) uid: u32,
    pub(crate) client: [u8; 8],
    pub(crate) connection: u32,
    /// Bytes that are unique to the message.
    pub(crate) proof: &'a [u8],
    /// Maximum number of clients per user.
    pub(crate) max_clients: usize,
    /// Number of seconds after which a client counts as gone.
    pub(crate) idle: u64,
}

impl ReplayStore {
    /// Creates an empty store. `seed` must be secret and random; `started` is the wall clock at the
    /// start of the process.
    #[must_use]
    pub fn new(seed: [u8; 16], started: UnixTime) -> Self {
        let limits = StoreLimits {
            tags: TAGS,
            windows: WINDOWS,
        };
        Self {
            sip: SipKey::new(seed),
            started,
            seen: Mutex::default(),
            limits,
            log: DecisionLog::default(),
        }
    }

    pub(crate) const fn start_time(&self) -> UnixTime {
        self.started
    }

    /// Inserts a message, which must be new; check and insertion are one atomic step.
    pub(crate) fn admit_message(
        &self,
        arrival: &MessageId<'_>,
        now: UnixTime,
    ) -> Result<(), ProtocolError> {
        let tag = self.sip.hash_bytes(arrival.proof);
        self.admit_tag(tag, arrival, now)?;
        self.log.record(|| arrival.log_entry(tag));
        Ok(())
    }

    /// Returns the log of the messages that were admitted.
    #[must_use]
    pub fn decision_log(&self) -> &DecisionLog {
        &self.log
    }

    /// Inserts a message that the store which this one was [created from](Self::from_snapshot) has admitted and
    /// [logged](Self::decision_log).
    ///
    /// # Errors
    ///
    /// Returns [`ProtocolError::Replayed`] if the message was seen before, [`ProtocolError::Exhausted`] if there are too
    /// many clients, and [`ProtocolError::Malformed`] if `entry` is not of such a log.
    pub fn admit_logged(&self, entry: &[u8], now: UnixTime) -> Result<(), ProtocolError> {
        let malformed = |_| ProtocolError::Malformed("an entry of a log of messages");
        let (tag, arrival) = MessageId::parse_log_entry(entry).map_err(malformed)?;
        self.admit_tag(tag, &arrival, now)
    }

    fn admit_tag(
        &self,
        tag: u64,
        arrival: &MessageId<'_>,
        now: UnixTime,
    ) -> Result<(), ProtocolError> {
        // Ignores poisoning: every step of an insertion leaves the tables consistent, so a panic of
        // another thread does no harm.
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.has_tag(tag) {
            return Err(ProtocolError::Replayed);
        }
        seen.admit_connection(arrival, now, self.limits)?;
        seen.insert_new_tag(tag, self.limits);
        Ok(())
    }
}

impl MessageId<'_> {
    /// Returns the entry of a message in the log. The tag stands for the proof.
    fn log_entry(&self, tag: u64) -> Vec<u8> {
        let mut entry = self.uid.to_be_bytes().to_vec();
        entry.extend_from_slice(&self.client);
        entry.extend_from_slice(&self.connection.to_be_bytes());
        for number in [u64_from(self.max_clients), self.idle, tag] {
            entry.extend_from_slice(&number.to_be_bytes());
        }
        entry
    }

    /// Returns the tag and the message of an entry.
    fn parse_log_entry(entry: &[u8]) -> Result<(u64, MessageId<'static>), EndOfInput> {
        let mut r = Reader::new(entry);
        let arrival = MessageId {
            uid: u32::from_be_bytes(r.array()?),
            client: r.array()?,
            connection: u32::from_be_bytes(r.array()?),
            proof: &[],
            max_clients: usize::try_from(r.u64()?).map_err(|_| EndOfInput)?,
            idle: r.u64()?,
        };
        let tag = r.u64()?;
        match r.rest() {
            [] => Ok((tag, arrival)),
            _ => Err(EndOfInput),
        }
    }
}

impl SeenMessages {
    fn has_tag(&self, tag: u64) -> bool {
        let known = |table: &HashTable<u64>| table.find(tag, |t| *t == tag).is_some();
        known(&self.tags) || known(&self.older)
    }

    fn insert_new_tag(&mut self, tag: u64, limits: StoreLimits) {
        if self.tags.len() >= limits.tags {
            self.older = core::mem::take(&mut self.tags);
        }
        self.tags.insert_unique(tag, tag, |t| *t);
    }

    fn admit_connection(
        &mut self,
        arrival: &MessageId<'_>,
        now: UnixTime,
        limits: StoreLimits,
    ) -> Result<(), ProtocolError> {
        let key = (arrival.uid, arrival.client);
        let gone = |client: &SeenClient| now.0.saturating_sub(client.used.0) >= arrival.idle;
        if let Some(client) = self.clients.get_mut(&key) {
            let idle = gone(client);
            if !client.window.insert_id(arrival.connection, idle) {
                return Err(ProtocolError::Replayed);
            }
            client.used = now;
            return Ok(());
        }
        let user = (arrival.uid, [0; 8])..=(arrival.uid, [0xff; 8]);
        let mine = || self.clients.range(user.clone());
        if mine().count() >= arrival.max_clients {
            let oldest = mine().min_by_key(|(_, client)| client.used);
            match oldest.map(|(key, client)| (*key, gone(client))) {
                Some((key, true)) => drop(self.clients.remove(&key)),
                _ => return Err(ProtocolError::Exhausted("the number of a user's clients")),
            }
        }
        if self.clients.len() >= limits.windows {
            let rest = self
                .swept
                .is_some_and(|at| now.0.abs_diff(at.0) < SWEEP_INTERVAL);
            if !rest {
                self.clients.retain(|_, client| !gone(client));
                self.swept = Some(now);
            }
            if self.clients.len() >= limits.windows {
                return Err(ProtocolError::Exhausted("the replay store"));
            }
        }
        let client = SeenClient {
            window: IdWindow::new(arrival.connection),
            used: now,
        };
        self.clients.insert(key, client);
        Ok(())
    }
}

impl fmt::Debug for ReplayStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayStore")
            .field("started", &self.started)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
