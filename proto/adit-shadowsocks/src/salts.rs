//! Replayed salts are refused (SEC-R1 to SEC-R4).
//!
//! The 2022 edition carries a timestamp: salts are kept exactly, for a minute at least. The AEAD
//! edition carries none: digests of the last million or two are kept for as long as they last, and can be
//! carried over a restart ([`SaltPool::export`]). The file and what machines share are the
//! application's business.

mod store;

use core::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use adit_crypto::{Secret, SipKey};
use adit_wire::{ProtocolError, UnixTime, narrow_int};
use hashbrown::HashTable;

use crate::generations::Generations;

pub use store::SaltsError;

/// Salts kept at once; beyond that new sessions are refused (fail closed).
const CAPACITY: usize = 1_000_000;

/// Not a power of two: a full table of a shard (57,344 entries of 65,536 slots) then holds a
/// shard's part of the capacity with little to spare, at about 40 bytes a salt.
const SHARDS: usize = 18;

/// What a server does, right after its start, with requests from before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restart {
    /// Refuses timestamps of the second of the start and before (SEC-R3): the pool is empty, so
    /// what was seen before cannot be known. A client whose clock is behind by some seconds is
    /// refused for as many.
    Strict,
    /// Accepts them.
    Lenient,
}

/// When a server began, and what it does with what is older.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    at: UnixTime,
    restart: Restart,
}

impl Start {
    /// `at` is the wall clock at the start of the process.
    #[must_use]
    pub const fn new(at: UnixTime, restart: Restart) -> Self {
        Self { at, restart }
    }

    /// Refuses a `stamp` that may be of a request to the process before. The caller has checked that
    /// it is within 30 s of `now`.
    pub(crate) fn check(self, stamp: UnixTime, now: UnixTime) -> Result<(), ProtocolError> {
        // Only near the start: a clock that was set far back must not lock everyone out.
        let starting = now.0.abs_diff(self.at.0) <= 30;
        match self.restart {
            // Stamps have whole seconds: one of the second of the start may be from before it.
            Restart::Strict if starting && stamp <= self.at => Err(ProtocolError::Replayed),
            _ => Ok(()),
        }
    }
}

/// The salts one key has seen, shared by every connection of a listener.
///
/// The test and the insertion are one step. Insert only what has been authenticated, or anyone
/// could fill the pool.
pub struct SaltPool {
    sip: SipKey,
    /// Of `sip`, for [`SaltPool::export`].
    seed: Secret<[u8; 16]>,
    start: Start,
    shards: [Mutex<Shard>; SHARDS],
    /// Salts without a stamp that were taken.
    taken: AtomicU64,
    /// Salts per shard.
    limit: usize,
}

#[derive(Default)]
struct Shard {
    exact: Exact,
    digests: Digests,
}

/// Two generations of whole salts, turned over by time. Shorter salts are padded with zeros;
/// salts of one key have one length.
type Exact = Generations<HashTable<[u8; 32]>>;

/// Two generations of keyed digests, turned over by number.
#[derive(Default)]
struct Digests {
    current: HashTable<u64>,
    previous: HashTable<u64>,
}

impl SaltPool {
    /// An empty pool. `seed` is secret and random: peers choose the salts, and must not be able
    /// to choose where they fall. `started` is the wall clock at the start of the process.
    #[must_use]
    pub fn new(seed: [u8; 16], started: UnixTime, restart: Restart) -> Self {
        Self::with_capacity(seed, started, restart, CAPACITY)
    }

    fn with_capacity(seed: [u8; 16], started: UnixTime, restart: Restart, capacity: usize) -> Self {
        Self {
            sip: SipKey::new(seed),
            seed: Secret::new(seed),
            start: Start::new(started, restart),
            shards: core::array::from_fn(|_| Mutex::default()),
            taken: AtomicU64::new(0),
            limit: capacity / SHARDS,
        }
    }

    /// How many salts of the AEAD edition were taken: what [`export`](Self::export) gives changes
    /// with it.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Takes a salt that must be new.
    ///
    /// With a `stamp` (2022 edition; the caller has checked that it is within 30 s of `now`) the
    /// salt is kept for 60 s at least; [`ProtocolError::Replayed`] if it was seen or may have been seen
    /// before a restart, [`ProtocolError::Exhausted`] if the pool is full. Without one (AEAD edition)
    /// the salt is remembered until a million newer ones have come.
    pub fn insert(
        &self,
        salt: &[u8],
        stamp: Option<UnixTime>,
        now: UnixTime,
    ) -> Result<(), ProtocolError> {
        let mut whole = [0; 32];
        let place = whole.get_mut(..salt.len()).ok_or(ProtocolError::TooLong {
            what: "a salt",
            limit: 32,
        })?;
        place.copy_from_slice(salt);
        let hash = |salt: &[u8; 32]| self.sip.hash_bytes(salt);
        let digest = hash(&whole);
        let shard = self
            .shards
            .get(shard_of(digest))
            .ok_or(ProtocolError::Replayed)?;
        let Some(stamp) = stamp else {
            lock(shard).digests.insert(digest, self.limit)?;
            self.taken.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        };
        self.start.check(stamp, now)?;
        let mut shard = lock(shard);
        shard.exact.insert(digest, whole, now, self.limit, hash)
    }
}

/// Slots within a shard are chosen by the low and the top bits of a digest, so the shard is not.
fn shard_of(digest: u64) -> usize {
    narrow_int((digest >> 24) % SHARDS as u64)
}

/// A panic of another thread leaves the tables whole: every step of an insertion is.
fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Exact {
    fn insert(
        &mut self,
        at: u64,
        salt: [u8; 32],
        now: UnixTime,
        limit: usize,
        hash: impl Fn(&[u8; 32]) -> u64,
    ) -> Result<(), ProtocolError> {
        self.turn(now);
        let seen = |table: &HashTable<_>| table.find(at, |s| *s == salt).is_some();
        if seen(&self.current) || seen(&self.previous) {
            return Err(ProtocolError::Replayed);
        }
        if self.current.len() + self.previous.len() >= limit {
            return Err(ProtocolError::Exhausted("the replay filter"));
        }
        self.current.insert_unique(at, salt, hash);
        Ok(())
    }
}

impl Digests {
    fn insert(&mut self, digest: u64, limit: usize) -> Result<(), ProtocolError> {
        let seen = |table: &HashTable<u64>| table.find(digest, |d| *d == digest).is_some();
        if seen(&self.current) || seen(&self.previous) {
            return Err(ProtocolError::Replayed);
        }
        if self.current.len() >= limit {
            self.previous = core::mem::take(&mut self.current);
        }
        self.current.insert_unique(digest, digest, |d| *d);
        Ok(())
    }
}

impl fmt::Debug for SaltPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SaltPool")
            .field("start", &self.start)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod store_tests;
