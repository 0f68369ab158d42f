//! The pool against a naive model, at its limits and from several threads.

use super::*;
use crate::generations::GENERATION_SECS;
use proptest::prelude::*;
use std::collections::BTreeMap;

const START: u64 = 1_700_000_000;

fn pool(restart: RestartPolicy) -> SaltPool {
    SaltPool::new([7; 16], UnixTime(START), restart)
}

fn salt(n: u32) -> [u8; 32] {
    let mut out = [0xcc; 32];
    out[..4].copy_from_slice(&n.to_le_bytes());
    out
}

/// SEC-R1: a stamp from the future is valid for 60 s; the salt must be stored for as long.
#[test]
fn sec_r2_a_salt_lives_for_sixty_seconds_at_least() {
    for offset in 0..120 {
        let pool = pool(RestartPolicy::Lenient);
        pool.insert_salt(&salt(0), Some(UnixTime(START)), UnixTime(START))
            .unwrap();
        let first = START + offset;
        pool.insert_salt(&salt(1), Some(UnixTime(first + 30)), UnixTime(first))
            .unwrap();
        for now in first..=first + 60 {
            let again = pool.insert_salt(&salt(1), Some(UnixTime(first + 30)), UnixTime(now));
            assert_eq!(again, Err(ProtocolError::Replayed), "{offset} {now}");
        }
        let later = UnixTime(first + 121);
        assert_eq!(pool.insert_salt(&salt(1), Some(later), later), Ok(()));
    }
}

#[test]
fn sec_r3_strict_refuses_what_may_be_older_than_the_process() {
    let at = |restart, stamp: u64, now: u64| {
        pool(restart).insert_salt(&salt(1), Some(UnixTime(stamp)), UnixTime(now))
    };
    assert_eq!(at(RestartPolicy::Strict, START + 1, START), Ok(()));
    // Stamps have whole seconds: this one may be from before the start.
    assert_eq!(
        at(RestartPolicy::Strict, START, START),
        Err(ProtocolError::Replayed)
    );
    assert_eq!(
        at(RestartPolicy::Strict, START, START + 30),
        Err(ProtocolError::Replayed)
    );
    assert_eq!(
        at(RestartPolicy::Strict, START - 2, START),
        Err(ProtocolError::Replayed)
    );
    assert_eq!(
        at(RestartPolicy::Strict, START - 2, START + 28),
        Err(ProtocolError::Replayed)
    );
    assert_eq!(at(RestartPolicy::Lenient, START - 2, START), Ok(()));
    assert_eq!(at(RestartPolicy::Strict, START + 1, START + 31), Ok(()));
    // The clock was set back by an hour after the start.
    assert_eq!(
        at(RestartPolicy::Strict, START - 3600, START - 3600),
        Ok(())
    );
    // The AEAD edition has no stamp.
    assert_eq!(
        pool(RestartPolicy::Strict).insert_salt(&salt(1), None, UnixTime(START)),
        Ok(())
    );
}

#[test]
fn sec_r2_a_full_pool_refuses_and_recovers() {
    let pool = SaltPool::with_capacity([1; 16], UnixTime(START), RestartPolicy::Lenient, 1800);
    let now = UnixTime(START);
    let fits = (0..4000).filter(|n| pool.insert_salt(&salt(*n), Some(now), now).is_ok());
    assert_eq!(fits.count(), 1800);
    assert_eq!(
        pool.insert_salt(&salt(5000), Some(now), now),
        Err(ProtocolError::Exhausted("the replay filter"))
    );
    let later = UnixTime(START + 120);
    assert_eq!(pool.insert_salt(&salt(5000), Some(later), later), Ok(()));
}

/// Returns the memory of a pool's tables from the allocator, in bytes.
fn memory(pool: &SaltPool) -> usize {
    let shards = pool.shards.iter().map(|shard| {
        let shard = lock_shard(shard);
        let exact = [&shard.exact.current, &shard.exact.previous];
        let digests = [&shard.digests.current, &shard.digests.previous];
        let bytes = exact.map(HashTable::allocation_size).into_iter();
        let bytes = bytes.chain(digests.map(HashTable::allocation_size));
        bytes.sum::<usize>()
    });
    shards.sum()
}

/// In both editions, and for any distribution of the salts over generations.
#[test]
fn a_million_salts_take_64_mib_at_most() {
    const MOST: usize = 64 << 20;
    for before in [0, 450_000, 600_000, 900_000] {
        let pool = pool(RestartPolicy::Lenient);
        let mut kept = 0;
        // The shards do not fill evenly, and a full one refuses.
        for n in 0..1_100_000 {
            let now = UnixTime(START + if n < before { 0 } else { GENERATION_SECS });
            kept += usize::from(pool.insert_salt(&salt(n), Some(now), now).is_ok());
        }
        assert!(kept > 990_000, "{before}: {kept} salts");
        assert!(memory(&pool) <= MOST, "{before}: {} bytes", memory(&pool));
    }
    let pool = pool(RestartPolicy::Lenient);
    for n in 0..3_000_000 {
        pool.insert_salt(&salt(n), None, UnixTime(START)).unwrap();
    }
    assert!(memory(&pool) <= MOST, "digests: {} bytes", memory(&pool));
}

#[test]
fn the_clock_may_jump_to_both_ends() {
    let pool = pool(RestartPolicy::Strict);
    for now in [u64::MAX, 0, START, u64::MAX - 1, 5, u64::MAX] {
        let fresh = salt(u32::try_from(now % 1_000_003).unwrap());
        let _ = pool.insert_salt(&fresh, Some(UnixTime(now)), UnixTime(now));
    }
    let now = UnixTime(10);
    assert_eq!(pool.insert_salt(&salt(1), Some(now), now), Ok(()));
    let stuck = pool.insert_salt(&salt(1), Some(UnixTime(9)), UnixTime(9));
    assert_eq!(
        stuck,
        Err(ProtocolError::Replayed),
        "nothing is forgotten when the clock goes back"
    );
    let later = UnixTime(9 + 120);
    assert_eq!(pool.insert_salt(&salt(1), Some(later), later), Ok(()));
}

#[test]
fn sec_r4_digests_last_until_as_many_newer_came() {
    let pool = SaltPool::with_capacity([1; 16], UnixTime(START), RestartPolicy::Strict, 1800);
    let insert = |n: u32| pool.insert_salt(&salt(n), None, UnixTime(START));
    for n in 0..20_000u32 {
        assert_eq!(insert(n), Ok(()), "{n}");
        assert_eq!(insert(n), Err(ProtocolError::Replayed), "{n}");
    }
    // A generation is 100 digests per shard; the last 1,000 salts certainly fit into one here.
    for n in 19_000..20_000u32 {
        assert_eq!(insert(n), Err(ProtocolError::Replayed), "{n}");
    }
    assert_eq!(insert(0), Ok(()), "long ago");
}

#[test]
fn one_of_many_threads_wins() {
    let pool = pool(RestartPolicy::Lenient);
    let won: usize = std::thread::scope(|scope| {
        let race = || {
            let now = UnixTime(START);
            (0..500)
                .filter(|n| pool.insert_salt(&salt(*n), Some(now), now).is_ok())
                .count()
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(race)).collect();
        threads.into_iter().map(|t| t.join().unwrap()).sum()
    });
    assert_eq!(won, 500);
}

#[test]
fn longer_than_any_salt_is_an_error() {
    let now = UnixTime(START);
    assert!(
        pool(RestartPolicy::Lenient)
            .insert_salt(&[0; 33], Some(now), now)
            .is_err()
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// A model that remembers every insertion. Salts seen within 60 s must be refused, salts 120 s
    /// old accepted; between the two either is correct.
    #[test]
    fn equals_a_naive_model(steps in proptest::collection::vec((0u32..40, 0u64..25), 1..300)) {
        let pool = pool(RestartPolicy::Lenient);
        let mut model: BTreeMap<u32, u64> = BTreeMap::new();
        let mut now = START;
        for (n, wait) in steps {
            now += wait;
            let accepted = pool.insert_salt(&salt(n), Some(UnixTime(now)), UnixTime(now)).is_ok();
            let age = model.get(&n).map(|seen| now - seen);
            match age {
                None => prop_assert!(accepted, "a new salt was refused"),
                Some(age) if age <= 60 => prop_assert!(!accepted, "a replay after {age} s"),
                Some(age) if age >= 120 => prop_assert!(accepted, "not forgotten after {age} s"),
                Some(_) => {}
            }
            if accepted {
                model.insert(n, now);
            }
        }
    }
}
