//! Replay protection: a bounded memory of hellos.

use std::sync::{Mutex, PoisonError};

use adit_crypto::SipKey;
use adit_wire::{ProtocolError, UnixTime};
use hashbrown::HashTable;

/// Maximum number of hellos in one of the two generations. Only owners of the key get this far, so
/// the oldest are forgotten when there are more: refusing new clients would cost more than it
/// protects.
const CAPACITY: usize = 450_000;

/// Remembers keyed 64-bit digests of authenticated hellos for at least `span` seconds, or until
/// [`CAPACITY`] newer ones have arrived. Two digests are equal by chance once in 10¹³ hellos.
pub(crate) struct SeenHellos {
    sip: SipKey,
    span: u64,
    capacity: usize,
    generations: Mutex<Generations>,
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
        }
    }

    /// Inserts a hello, which must be new; check and insertion are one atomic step.
    pub(crate) fn insert_hello(&self, hello: &[u8], now: UnixTime) -> Result<(), ProtocolError> {
        let digest = self.sip.hash_bytes(hello);
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
