//! Replay protection by salts (SEC-R1 to SEC-R4).
//!
//! Requests of the 2022 edition have a timestamp, so their salts are stored exactly, for at least a
//! minute. Requests of the AEAD edition have none: the pool keeps digests of the last one to two
//! million salts, which can be carried over a restart ([`SaltPool::export_digests`]). Storing them in a
//! file and sharing them between machines is up to the application.

mod export;
mod snapshot;

use core::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use adit_crypto::{DecisionLog, SipKey};
use adit_wire::{EndOfInput, ProtocolError, Reader, UnixTime, narrow_int};
use hashbrown::HashTable;

use crate::generations::Generations;
use crate::timestamp::MAX_CLOCK_SKEW;

pub use export::SaltRestoreError;

/// Maximum number of stored salts; above it new sessions are refused (fail closed).
const CAPACITY: usize = 1_000_000;

/// Not a power of two: a full shard's table (57,344 entries of 65,536 slots) then fits a shard's
/// part of the capacity with little to spare, at about 40 bytes per salt.
const SHARDS: usize = 18;

/// A server's policy, right after its start, for requests from before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestartPolicy {
    /// Refuses timestamps of the second of the start and earlier (SEC-R3): the pool is empty, so
    /// earlier salts are unknown. A client whose clock is some seconds behind is refused for as
    /// long.
    Strict,
    /// Accepts them.
    Lenient,
}

/// The time a server started, and its policy for older requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessStart {
    at: UnixTime,
    restart: RestartPolicy,
}

impl ProcessStart {
    /// Creates a start; `at` is the wall clock at the start of the process.
    #[must_use]
    pub const fn new(at: UnixTime, restart: RestartPolicy) -> Self {
        Self { at, restart }
    }

    /// Returns the form in snapshots: the time, and 1 for the strict policy.
    pub(crate) fn to_bytes(self) -> [u8; 9] {
        let mut bytes = [0; 9];
        let (time, restart) = bytes.split_at_mut(8);
        time.copy_from_slice(&self.at.0.to_be_bytes());
        restart.fill(u8::from(self.restart == RestartPolicy::Strict));
        bytes
    }

    /// Reads the form in snapshots.
    pub(crate) fn read_from(r: &mut Reader<'_>) -> Result<Self, EndOfInput> {
        let at = UnixTime(r.u64()?);
        let restart = match r.u8()? {
            0 => RestartPolicy::Lenient,
            1 => RestartPolicy::Strict,
            _ => return Err(EndOfInput),
        };
        Ok(Self { at, restart })
    }

    /// Refuses a `stamp` that may belong to a request to the previous process. The caller has
    /// checked that it is within [`MAX_CLOCK_SKEW`] of `now`.
    pub(crate) fn check_stamp(self, stamp: UnixTime, now: UnixTime) -> Result<(), ProtocolError> {
        // Only near the start: a clock that was set far back must not lock all clients out.
        let starting = now.0.abs_diff(self.at.0) <= MAX_CLOCK_SKEW;
        match self.restart {
            // Stamps have whole seconds: one of the second of the start may be from before it.
            RestartPolicy::Strict if starting && stamp <= self.at => Err(ProtocolError::Replayed),
            _ => Ok(()),
        }
    }
}

/// The salts seen under one key, shared by all connections of a listener.
///
/// The check and the insertion are one atomic step. Insert only authenticated salts; otherwise
/// anyone could fill the pool.
pub struct SaltPool {
    sip: SipKey,
    start: ProcessStart,
    shards: [Mutex<Shard>; SHARDS],
    /// Number of accepted salts without a stamp.
    taken: AtomicU64,
    /// Maximum number of salts per shard.
    limit: usize,
    log: DecisionLog,
}

#[derive(Default)]
struct Shard {
    exact: ExactSalts,
    digests: SaltDigests,
}

/// Two generations of whole salts, rotated by time. Shorter salts are padded with zeros; salts of
/// one key have one length.
type ExactSalts = Generations<HashTable<[u8; 32]>>;

/// Two generations of keyed digests, rotated by number.
#[derive(Default)]
struct SaltDigests {
    current: HashTable<u64>,
    previous: HashTable<u64>,
}

impl SaltPool {
    /// Creates an empty pool. `seed` must be secret and random: peers choose the salts and must not
    /// be able to choose their slots. `started` is the wall clock at the start of the process.
    #[must_use]
    pub fn new(seed: [u8; 16], started: UnixTime, restart: RestartPolicy) -> Self {
        Self::with_capacity(seed, started, restart, CAPACITY)
    }

    fn with_capacity(
        seed: [u8; 16],
        started: UnixTime,
        restart: RestartPolicy,
        capacity: usize,
    ) -> Self {
        Self {
            sip: SipKey::new(seed),
            start: ProcessStart::new(started, restart),
            shards: core::array::from_fn(|_| Mutex::default()),
            taken: AtomicU64::new(0),
            limit: capacity / SHARDS,
            log: DecisionLog::default(),
        }
    }

    /// Returns the number of accepted salts of the AEAD edition. The output of
    /// [`export_digests`](Self::export_digests) changes whenever this does.
    #[must_use]
    pub fn accepted_count(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Inserts a salt, which must be new.
    ///
    /// With a `stamp` (2022 edition; the caller has checked that it is within [`MAX_CLOCK_SKEW`] of `now`) the
    /// salt is kept for at least 60 s. Without one (AEAD edition) it is remembered until a million
    /// newer salts have been inserted.
    ///
    /// # Errors
    ///
    /// Returns [`ProtocolError::Replayed`] if the salt was seen before, or may have been seen before a
    /// restart, [`ProtocolError::Exhausted`] if the pool is full, and `ProtocolError::TooLong` for a salt of
    /// more than 32 bytes.
    pub fn insert_salt(
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
            lock_shard(shard)
                .digests
                .insert_digest(digest, self.limit)?;
            self.taken.fetch_add(1, Ordering::Relaxed);
            self.log.record(|| log_entry(None, &whole));
            return Ok(());
        };
        self.start.check_stamp(stamp, now)?;
        lock_shard(shard)
            .exact
            .insert_salt(digest, whole, now, self.limit, hash)?;
        self.log.record(|| log_entry(Some(stamp), &whole));
        Ok(())
    }

    /// Returns the log of the salts that were inserted.
    #[must_use]
    pub fn decision_log(&self) -> &DecisionLog {
        &self.log
    }

    /// Inserts a salt that another pool has inserted and [logged](Self::decision_log).
    ///
    /// # Errors
    ///
    /// As for [`insert_salt`](Self::insert_salt), and [`ProtocolError::Malformed`] if `entry` is not of such a log.
    pub fn insert_logged(&self, entry: &[u8], now: UnixTime) -> Result<(), ProtocolError> {
        let malformed = ProtocolError::Malformed("an entry of a log of salts");
        let (salt, stamp) = parse_log_entry(entry).ok_or(malformed)?;
        self.insert_salt(salt, stamp, now)
    }

    /// Returns the stamp of a salt, from its entry in a [log](Self::decision_log); `None` in the AEAD edition.
    #[must_use]
    pub fn logged_stamp(entry: &[u8]) -> Option<UnixTime> {
        parse_log_entry(entry)?.1
    }
}

/// Returns the salt and the stamp of an entry in the log.
fn parse_log_entry(entry: &[u8]) -> Option<(&[u8; 32], Option<UnixTime>)> {
    let (stamp, salt) = entry.split_last_chunk::<32>()?;
    match *stamp {
        [] => Some((salt, None)),
        _ => Some((
            salt,
            Some(UnixTime(u64::from_be_bytes(stamp.try_into().ok()?))),
        )),
    }
}

/// Returns the entry of a salt in the log: its stamp, if it has one, and the salt.
fn log_entry(stamp: Option<UnixTime>, salt: &[u8; 32]) -> Vec<u8> {
    let mut entry = Vec::with_capacity(8 + 32);
    if let Some(stamp) = stamp {
        entry.extend_from_slice(&stamp.0.to_be_bytes());
    }
    entry.extend_from_slice(salt);
    entry
}

/// Uses other bits than the slots within a shard, which use the low and the top bits of a digest.
fn shard_of(digest: u64) -> usize {
    narrow_int((digest >> 24) % SHARDS as u64)
}

/// Ignores poisoning: every step of an insertion leaves the tables consistent, so a panic of
/// another thread does no harm.
fn lock_shard(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ExactSalts {
    fn insert_salt(
        &mut self,
        at: u64,
        salt: [u8; 32],
        now: UnixTime,
        limit: usize,
        hash: impl Fn(&[u8; 32]) -> u64,
    ) -> Result<(), ProtocolError> {
        self.rotate_at(now);
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

impl SaltDigests {
    fn insert_digest(&mut self, digest: u64, limit: usize) -> Result<(), ProtocolError> {
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

#[cfg(test)]
mod snapshot_tests;
