//! Replay protection for first messages.
//!
//! Two defenses, because each has a gap. Other implementations keep a window of connection ids per
//! client, which is lost when the client is dropped in favor of another; adit also remembers the
//! tags of at least a million messages. Neither survives a restart, after which only the time in
//! the message protects.

mod window;

use core::fmt;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use adit_crypto::SipKey;
use adit_wire::{Broken, Unix};
use hashbrown::HashTable;

use window::Window;

/// Maximum number of tags in one of two generations.
const TAGS: usize = 1_000_000;

/// Maximum number of windows of all users together, at about 600 bytes each.
const WINDOWS: usize = 65_536;

/// Minimum number of seconds between two searches for idle clients when the store is full.
const SWEEP: u64 = 10;

/// The messages that a port's servers have seen; shared by their connections and kept when users
/// change.
///
/// Only authenticated messages are inserted, so only owners of a key can fill it.
pub struct ReplayStore {
    sip: SipKey,
    started: Unix,
    seen: Mutex<Seen>,
    limits: Limits,
}

#[derive(Clone, Copy)]
struct Limits {
    tags: usize,
    windows: usize,
}

#[derive(Default)]
struct Seen {
    tags: HashTable<u64>,
    older: HashTable<u64>,
    clients: BTreeMap<(u32, [u8; 8]), Client>,
    swept: Option<Unix>,
}

struct Client {
    window: Window,
    used: Unix,
}

/// A first message to check.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival<'a> {
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
    pub fn new(seed: [u8; 16], started: Unix) -> Self {
        let limits = Limits {
            tags: TAGS,
            windows: WINDOWS,
        };
        Self {
            sip: SipKey::new(seed),
            started,
            seen: Mutex::default(),
            limits,
        }
    }

    pub(crate) const fn started(&self) -> Unix {
        self.started
    }

    /// Inserts a message, which must be new; check and insertion are one atomic step.
    pub(crate) fn admit(&self, arrival: &Arrival<'_>, now: Unix) -> Result<(), Broken> {
        let tag = self.sip.hash(arrival.proof);
        // Ignores poisoning: every step of an insertion leaves the tables consistent, so a panic of
        // another thread does no harm.
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let known = |table: &HashTable<u64>| table.find(tag, |t| *t == tag).is_some();
        if known(&seen.tags) || known(&seen.older) {
            return Err(Broken::Replayed);
        }
        seen.enter(arrival, now, self.limits)?;
        if seen.tags.len() >= self.limits.tags {
            seen.older = core::mem::take(&mut seen.tags);
        }
        seen.tags.insert_unique(tag, tag, |t| *t);
        Ok(())
    }
}

impl Seen {
    fn enter(&mut self, arrival: &Arrival<'_>, now: Unix, limits: Limits) -> Result<(), Broken> {
        let key = (arrival.uid, arrival.client);
        let gone = |client: &Client| now.0.saturating_sub(client.used.0) >= arrival.idle;
        if let Some(client) = self.clients.get_mut(&key) {
            let idle = gone(client);
            if !client.window.enter(arrival.connection, idle) {
                return Err(Broken::Replayed);
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
                _ => return Err(Broken::Exhausted("the number of a user's clients")),
            }
        }
        if self.clients.len() >= limits.windows {
            let rest = self.swept.is_some_and(|at| now.0.abs_diff(at.0) < SWEEP);
            if !rest {
                self.clients.retain(|_, client| !gone(client));
                self.swept = Some(now);
            }
            if self.clients.len() >= limits.windows {
                return Err(Broken::Exhausted("the replay store"));
            }
        }
        let client = Client {
            window: Window::new(arrival.connection),
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
