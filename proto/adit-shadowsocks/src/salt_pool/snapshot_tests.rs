//! Snapshots: merged into new and used pools, altered and foreign.

use super::*;

const NOW: UnixTime = UnixTime(1_700_000_000);
const START: UnixTime = UnixTime(NOW.0 - 5);

fn salt(n: u32) -> [u8; 32] {
    let mut salt = [0xcc; 32];
    salt[..4].copy_from_slice(&n.to_le_bytes());
    salt
}

/// A pool with salts of both editions: 0 to 499 with a time, 500 to 1,499 without.
fn filled() -> SaltPool {
    let pool = SaltPool::new([1; 16], START, RestartPolicy::Strict);
    for n in 0..500 {
        pool.insert_salt(&salt(n), Some(NOW), NOW).unwrap();
    }
    for n in 500..1500 {
        pool.insert_salt(&salt(n), None, NOW).unwrap();
    }
    pool
}

fn copy_of(pool: &SaltPool, now: UnixTime) -> SaltPool {
    let mut copy = None;
    for part in pool.snapshot(now) {
        match &copy {
            None => copy = Some(SaltPool::from_snapshot(part.expose(), now).unwrap()),
            Some(copy) => drop(copy.merge_snapshot(part.expose(), now).unwrap()),
        }
    }
    copy.unwrap()
}

#[test]
fn sec_r4_salts_of_both_editions_are_refused_by_the_next_process() {
    let (before, later) = (filled(), UnixTime(NOW.0 + 20));
    let after = copy_of(&before, later);
    for n in 0..500 {
        let again = after.insert_salt(&salt(n), Some(NOW), later);
        assert_eq!(again, Err(ProtocolError::Replayed), "{n}");
    }
    for n in 500..1500 {
        let again = after.insert_salt(&salt(n), None, later);
        assert_eq!(again, Err(ProtocolError::Replayed), "{n}");
    }
    assert_eq!(after.accepted_count(), 1000);
    assert_eq!(after.insert_salt(&salt(2000), Some(NOW), later), Ok(()));
    assert_eq!(after.insert_salt(&salt(2001), None, later), Ok(()));
    // It is valid for as long as a stamp from the future.
    let late = UnixTime(later.0 + 60);
    let again = after.insert_salt(&salt(0), Some(late), late);
    assert_eq!(again, Err(ProtocolError::Replayed));
}

/// A strict pool refuses requests from before the first process, and no request from before the second.
#[test]
fn the_start_is_that_of_the_first_process() {
    let after = copy_of(&filled(), NOW);
    let stamped = |n, stamp: u64| after.insert_salt(&salt(n), Some(UnixTime(stamp)), NOW);
    assert_eq!(stamped(3000, START.0), Err(ProtocolError::Replayed));
    assert_eq!(stamped(3000, START.0 + 1), Ok(()));
}

#[test]
fn a_later_snapshot_adds_only_what_is_new() {
    let before = filled();
    let after = copy_of(&before, NOW);
    after.insert_salt(&salt(4000), None, NOW).unwrap();
    before.insert_salt(&salt(4001), None, NOW).unwrap();
    before.insert_salt(&salt(4002), Some(NOW), NOW).unwrap();
    let parts = before.snapshot(NOW);
    let added = parts.map(|part| after.merge_snapshot(part.expose(), NOW).unwrap());
    assert_eq!(added.sum::<usize>(), 2);
    for (n, stamp) in [(4000, None), (4001, None), (4002, Some(NOW))] {
        let again = after.insert_salt(&salt(n), stamp, NOW);
        assert_eq!(again, Err(ProtocolError::Replayed));
    }
}

#[test]
fn an_expired_salt_is_not_in_a_snapshot() {
    let before = filled();
    let late = UnixTime(NOW.0 + 200);
    let after = copy_of(&before, late);
    assert_eq!(after.insert_salt(&salt(0), Some(late), late), Ok(()));
    assert_eq!(
        after.insert_salt(&salt(500), None, late),
        Err(ProtocolError::Replayed)
    );
}

#[test]
fn an_empty_pool_has_one_part() {
    let before = SaltPool::new([1; 16], START, RestartPolicy::Lenient);
    assert_eq!(before.snapshot(NOW).count(), 1);
    let after = copy_of(&before, NOW);
    assert_eq!(after.insert_salt(&salt(0), Some(NOW), NOW), Ok(()));
}

#[test]
fn other_bytes_are_refused() {
    let pool = filled();
    let part = pool.snapshot(NOW).next().unwrap();
    let part = part.expose();
    for len in 0..part.len() {
        if len % 97 == 0 || len < 80 || part.len() - len < 20 {
            assert!(pool.merge_snapshot(&part[..len], NOW).is_err(), "{len}");
        }
    }
    for at in (0..part.len()).step_by(61).chain(0..60) {
        let mut altered = part.clone();
        altered[at] ^= 1;
        assert!(pool.merge_snapshot(&altered, NOW).is_err(), "{at}");
        assert!(SaltPool::from_snapshot(&altered, NOW).is_err(), "{at}");
    }
    let other = SaltPool::new([2; 16], START, RestartPolicy::Strict);
    let why = other.merge_snapshot(part, NOW);
    assert_eq!(why, Err(SaltRestoreError::OtherPool));
    // The two formats are not mistaken for each other.
    let why = pool.merge_snapshot(pool.export_digests().expose(), NOW);
    assert_eq!(why, Err(SaltRestoreError::Version(1)));
    let mut new = SaltPool::new([3; 16], START, RestartPolicy::Strict);
    assert_eq!(new.restore_digests(part), Err(SaltRestoreError::Version(2)));
}

/// More salts than there is space for are an error and not forgotten silently.
#[test]
fn the_space_is_bounded() {
    let before = filled();
    let after = SaltPool::with_capacity([1; 16], START, RestartPolicy::Strict, SHARDS);
    let mut parts = before.snapshot(NOW);
    let full = parts.any(|part| after.merge_snapshot(part.expose(), NOW).is_err());
    assert!(full);
}

/// A salt that one pool accepts, the other confirms once: neither accepts a salt that the other has.
#[test]
fn two_pools_agree_on_each_salt() {
    let before = filled();
    let log = before.decision_log();
    let after = copy_of(&before, NOW);
    for (n, stamp) in [(2000, Some(NOW)), (2001, None)] {
        let (inserted, entries) = log.observe(|| before.insert_salt(&salt(n), stamp, NOW));
        inserted.unwrap();
        assert_eq!(entries.len(), 1);
        assert_eq!(after.insert_logged(&entries[0], NOW), Ok(()));
        let again = after.insert_salt(&salt(n), stamp, NOW);
        assert_eq!(again, Err(ProtocolError::Replayed));
        let (n, salt) = (n + 10, salt(n + 10));
        after.insert_salt(&salt, stamp, NOW).unwrap();
        let (inserted, entries) = log.observe(|| before.insert_salt(&salt, stamp, NOW));
        inserted.unwrap();
        let refused = after.insert_logged(&entries[0], NOW);
        assert_eq!(refused, Err(ProtocolError::Replayed), "{n}");
        for len in [0, 8, 31, 33, 39] {
            let refused = after.insert_logged(&[1; 41][..len], NOW);
            assert!(matches!(refused, Err(ProtocolError::Malformed(_))), "{len}");
        }
    }
    let (inserted, entries) = log.observe(|| before.insert_salt(&salt(1), Some(NOW), NOW));
    assert!(inserted.is_err() && entries.is_empty(), "a refused salt");
}
