//! Exports: complete, altered and foreign.

use super::*;

const NOW: UnixTime = UnixTime(1_700_000_000);

fn pool(seed: u8) -> SaltPool {
    SaltPool::with_capacity([seed; 16], NOW, RestartPolicy::Strict, 1800)
}

fn insert(pool: &SaltPool, n: u32) -> Result<(), ProtocolError> {
    let mut salt = [0xcc; 32];
    salt[..4].copy_from_slice(&n.to_le_bytes());
    pool.insert_salt(&salt, None, NOW)
}

fn filled(salts: u32) -> SaltPool {
    let pool = pool(1);
    (0..salts).for_each(|n| insert(&pool, n).unwrap());
    pool
}

#[test]
fn sec_r4_salts_are_refused_after_a_restart() {
    // Entries in both generations, then in only one.
    for salts in [3000, 500, 0] {
        let export = filled(salts).export_digests();
        // The new process has another seed.
        let mut after = pool(2);
        let taken = after.restore_digests(export.expose()).unwrap();
        let kept: Vec<_> = (0..salts).filter(|n| insert(&after, *n).is_err()).collect();
        assert_eq!(kept.len(), taken);
        assert!(salts > 1800 || taken == usize::try_from(salts).unwrap());
        // A generation is 100 digests in each shard, so the last salts are all present.
        assert!((salts.saturating_sub(1000)..salts).all(|n| kept.contains(&n)));
        assert_eq!(insert(&after, 1_000_000), Ok(()), "new salts are accepted");
    }
}

#[test]
fn generations_come_out_as_they_went_in() {
    let before = filled(3000);
    let mut after = pool(2);
    after
        .restore_digests(before.export_digests().expose())
        .unwrap();
    for (a, b) in before.shards.iter().zip(&after.shards) {
        let (a, b) = (lock_shard(a), lock_shard(b));
        for (a, b) in [
            (&a.digests.current, &b.digests.current),
            (&a.digests.previous, &b.digests.previous),
        ] {
            assert_eq!(a.len(), b.len());
            assert!(a.iter().all(|d| b.find(*d, |known| known == d).is_some()));
        }
    }
}

#[test]
fn what_is_damaged_leaves_the_pool_as_it_was() {
    let export = filled(40).export_digests();
    let bytes = export.expose();
    let mut fresh = pool(2);
    let mut refused = |bytes: &[u8]| fresh.restore_digests(bytes).unwrap_err();
    for at in 0..bytes.len() {
        let mut bad = bytes.clone();
        bad[at] ^= 0x10;
        let expected = match at {
            0..8 => SaltRestoreError::Foreign,
            8 => SaltRestoreError::Version(0x11),
            _ => SaltRestoreError::Damaged,
        };
        assert_eq!(refused(&bad), expected, "{at}");
        let expected = if at < 8 {
            SaltRestoreError::Foreign
        } else {
            SaltRestoreError::Damaged
        };
        assert_eq!(refused(&bytes[..at]), expected, "{at}");
    }
    assert_eq!(
        refused(&[&bytes[..], &[0]].concat()),
        SaltRestoreError::Damaged
    );
    assert_eq!(refused(&[]), SaltRestoreError::Foreign);
    // Unchanged: empty, and with its own seed.
    assert_eq!(
        fresh.export_digests().expose(),
        pool(2).export_digests().expose()
    );
    assert_eq!(insert(&fresh, 7), Ok(()));
    assert_eq!(insert(&fresh, 7), Err(ProtocolError::Replayed));
}

/// A valid check over more digests than a pool can store.
#[test]
fn more_than_a_pool_holds_is_damaged() {
    let large = SaltPool::new([1; 16], NOW, RestartPolicy::Strict);
    (0..3601).for_each(|n| insert(&large, n).unwrap());
    let export = large.export_digests();
    assert_eq!(
        pool(2).restore_digests(export.expose()),
        Err(SaltRestoreError::Damaged)
    );
    let mut roomy = SaltPool::new([2; 16], NOW, RestartPolicy::Strict);
    assert_eq!(roomy.restore_digests(export.expose()), Ok(3601));
}

#[test]
fn a_pool_in_use_takes_nothing() {
    let export = filled(10).export_digests();
    for stamp in [None, Some(UnixTime(NOW.0 + 1))] {
        let mut used = pool(2);
        used.insert_salt(&[9; 16], stamp, NOW).unwrap();
        assert_eq!(
            used.restore_digests(export.expose()),
            Err(SaltRestoreError::InUse)
        );
        assert_eq!(
            used.insert_salt(&[9; 16], stamp, NOW),
            Err(ProtocolError::Replayed)
        );
    }
    assert_eq!(format!("{export:?}"), "***");
}
