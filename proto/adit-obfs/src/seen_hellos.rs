//! Replay protection: a bounded memory of hellos.

use std::sync::{Mutex, PoisonError};

use adit_crypto::{DecisionLog, Secret, SipKey, SnapshotError, SnapshotFormat};
use adit_wire::{ProtocolError, UnixTime};
use hashbrown::HashTable;

/// Maximum number of hellos in one of the two generations. Only owners of the key get this far, so
/// the oldest are forgotten when there are more: refusing new clients would cost more than it
/// protects.
const CAPACITY: usize = 450_000;
const DIGEST_LEN: usize = 8;

/// A snapshot: its body is the digests, 8 bytes each, big-endian; the oldest are first.
const FORMAT: SnapshotFormat = SnapshotFormat {
    magic: *b"adit-hel",
    version: 1,
};

/// Remembers keyed 64-bit digests of authenticated hellos for at least `span` seconds, or until
/// [`CAPACITY`] newer ones have arrived. Two digests are equal by chance once in 10¹³ hellos.
pub(crate) struct SeenHellos {
    sip: SipKey,
    span: u64,
    capacity: usize,
    generations: Mutex<Generations>,
    log: DecisionLog,
}

#[derive(Default)]
struct Generations {
    since: UnixTime,
    current: HashTable<u64>,
    previous: HashTable<u64>,
}

impl SeenHellos {
    /// Creates an empty memory. `seed` is secret: peers choose the hellos but must not choose their
    /// slots.
    pub(crate) fn new(seed: [u8; 16], span: u64) -> Self {
        Self {
            sip: SipKey::new(seed),
            span,
            capacity: CAPACITY,
            generations: Mutex::default(),
            log: DecisionLog::default(),
        }
    }

    /// Creates a memory from a [snapshot](Self::snapshot) of another one.
    pub(crate) fn from_snapshot(
        bytes: &[u8],
        span: u64,
        now: UnixTime,
    ) -> Result<Self, SnapshotError> {
        let (sip, _) = FORMAT.parse(bytes)?;
        let seen = Self {
            sip,
            ..Self::new([0; 16], span)
        };
        seen.merge_snapshot(bytes, now)?;
        Ok(seen)
    }

    /// Returns the time for which hellos are remembered, in seconds.
    pub(crate) const fn span(&self) -> u64 {
        self.span
    }

    /// Returns all digests, at most 7.2 MB.
    pub(crate) fn snapshot(&self) -> Secret<Vec<u8>> {
        let lock = self.generations.lock();
        let seen = lock.unwrap_or_else(PoisonError::into_inner);
        let digests = seen.previous.iter().chain(&seen.current);
        let len = (seen.previous.len() + seen.current.len()) * DIGEST_LEN;
        FORMAT.encode(&self.sip, len, |out| {
            for digest in digests {
                out.extend_from_slice(&digest.to_be_bytes());
            }
        })
    }

    /// Adds the digests of a snapshot of the same memory; they are remembered as if they were inserted at `now`.
    pub(crate) fn merge_snapshot(&self, bytes: &[u8], now: UnixTime) -> Result<(), SnapshotError> {
        let (sip, body) = FORMAT.parse(bytes)?;
        let (digests, rest) = body.as_chunks::<DIGEST_LEN>();
        if !rest.is_empty() {
            return Err(SnapshotError::Damaged);
        }
        if !sip.is_same_key(&self.sip) {
            return Err(SnapshotError::Foreign);
        }
        for digest in digests {
            // One that is known already is not new.
            let _ = self.insert_digest(u64::from_be_bytes(*digest), now);
        }
        Ok(())
    }

    /// Inserts a hello, which must be new; check and insertion are one atomic step.
    pub(crate) fn insert_hello(&self, hello: &[u8], now: UnixTime) -> Result<(), ProtocolError> {
        let digest = self.sip.hash_bytes(hello);
        self.insert_digest(digest, now)?;
        self.log.record(|| digest.to_be_bytes().to_vec());
        Ok(())
    }

    /// Returns the log of the hellos that were inserted.
    pub(crate) const fn decision_log(&self) -> &DecisionLog {
        &self.log
    }

    /// Inserts a hello that another memory with the same seed has inserted and logged.
    pub(crate) fn insert_logged(&self, entry: &[u8], now: UnixTime) -> Result<(), ProtocolError> {
        let digest = entry.try_into();
        let digest = digest.map_err(|_| ProtocolError::Malformed("an entry of a log of hellos"))?;
        self.insert_digest(u64::from_be_bytes(digest), now)
    }

    fn insert_digest(&self, digest: u64, now: UnixTime) -> Result<(), ProtocolError> {
        // Ignores poisoning: every step of an insertion leaves the tables consistent, so a panic of
        // another thread does no harm.
        let lock = self.generations.lock();
        let mut seen = lock.unwrap_or_else(PoisonError::into_inner);
        let age = now.0.checked_sub(seen.since.0);
        if age.is_none_or(|age| age > self.span) || seen.current.len() >= self.capacity {
            seen.since = now;
            // Twice the span without a hello: both generations are too old.
            let stale = age.is_some_and(|age| age > self.span.saturating_mul(2));
            let current = core::mem::take(&mut seen.current);
            seen.previous = if stale { HashTable::new() } else { current };
        }
        let known = |table: &HashTable<u64>| table.find(digest, |d| *d == digest).is_some();
        if known(&seen.current) || known(&seen.previous) {
            return Err(ProtocolError::Replayed);
        }
        seen.current.insert_unique(digest, digest, |d| *d);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembers_for_a_span_at_least() {
        let seen = SeenHellos::new([1; 16], 300);
        assert_eq!(seen.insert_hello(b"a", UnixTime(1000)), Ok(()));
        for now in [1000, 1001, 1300, 1301, 1600] {
            assert_eq!(
                seen.insert_hello(b"a", UnixTime(now)),
                Err(ProtocolError::Replayed),
                "{now}"
            );
            assert_eq!(seen.insert_hello(&now.to_le_bytes(), UnixTime(now)), Ok(()));
        }
        assert_eq!(seen.insert_hello(b"a", UnixTime(2300)), Ok(()));
    }

    #[test]
    fn a_clock_set_back_forgets_little() {
        let seen = SeenHellos::new([1; 16], 300);
        assert_eq!(seen.insert_hello(b"a", UnixTime(1000)), Ok(()));
        assert_eq!(seen.insert_hello(b"b", UnixTime(10)), Ok(()));
        assert_eq!(
            seen.insert_hello(b"a", UnixTime(11)),
            Err(ProtocolError::Replayed)
        );
    }

    #[test]
    fn a_snapshot_is_merged_into_a_memory_in_use() {
        let now = UnixTime(1000);
        let before = SeenHellos::new([1; 16], 300);
        before.insert_hello(b"a", now).unwrap();
        let after = SeenHellos::from_snapshot(before.snapshot().expose(), 300, now).unwrap();
        after.insert_hello(b"b", now).unwrap();
        before.insert_hello(b"c", now).unwrap();
        for _ in 0..2 {
            after
                .merge_snapshot(before.snapshot().expose(), now)
                .unwrap();
        }
        for hello in [b"a", b"b", b"c"] {
            let again = after.insert_hello(hello, UnixTime(1300));
            assert_eq!(again, Err(ProtocolError::Replayed));
        }
        assert_eq!(after.insert_hello(b"d", now), Ok(()));
        let other = SeenHellos::new([2; 16], 300);
        let why = other.merge_snapshot(before.snapshot().expose(), now);
        assert_eq!(why, Err(SnapshotError::Foreign));
        let torn = FORMAT.encode(&SipKey::new([2; 16]), 3, |out| {
            out.extend_from_slice(b"abc");
        });
        let why = other.merge_snapshot(torn.expose(), now);
        assert_eq!(why, Err(SnapshotError::Damaged));
    }

    #[test]
    fn is_bounded() {
        let mut seen = SeenHellos::new([1; 16], 300);
        seen.capacity = 10;
        for i in 0..100u32 {
            assert_eq!(seen.insert_hello(&i.to_le_bytes(), UnixTime(5)), Ok(()));
        }
        let held = seen.generations.lock().unwrap();
        assert!(held.current.len() <= 10 && held.previous.len() == 10);
        drop(held);
        assert_eq!(
            seen.insert_hello(&99u32.to_le_bytes(), UnixTime(5)),
            Err(ProtocolError::Replayed)
        );
    }
}
