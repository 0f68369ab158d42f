//! Salt pools compared with a model, and restored from a file: whole, altered, forged with a valid
//! checksum, and arbitrary.

#![no_main]

use std::collections::BTreeSet;

use adit_crypto::SipKey;
use adit_fuzz::{ActionScript, NOW, alter_byte};
use adit_shadowsocks::{RestartPolicy, SaltPool, SaltRestoreError};
use adit_wire::ProtocolError;
use libfuzzer_sys::fuzz_target;

/// "adit-slt" ‖ version ‖ seed ‖ count
const HEADER_LEN: usize = 8 + 1 + 16 + 4;
const NEW_SALT: [u8; 16] = [0xee; 16];

fn new_pool(seed: u8) -> SaltPool {
    SaltPool::new([seed; 16], NOW, RestartPolicy::Lenient)
}

/// Adds a new salt, which is accepted once.
fn check_usable(pool: &SaltPool) {
    let taken = pool.accepted_count();
    assert_eq!(pool.insert_salt(&NEW_SALT, None, NOW), Ok(()));
    assert_eq!(
        pool.insert_salt(&NEW_SALT, None, NOW),
        Err(ProtocolError::Replayed)
    );
    assert_eq!(pool.accepted_count(), taken + 1);
}

/// Salts in any order, several times, across a restart.
fn check_model(script: &mut ActionScript<'_>) {
    let mut seen = BTreeSet::new();
    let mut pool = new_pool(1);
    let mut stamped = BTreeSet::new();
    let mut restarts = 2;
    while !script.is_empty() {
        let act = script.read_u8();
        let len = if act & 4 == 0 { 16 } else { 32 };
        // A short salt equals a long one that ends in zeros.
        let mut salt = script.take_up_to(usize::from(act >> 5)).to_vec();
        salt.resize(len, 0);
        salt[len - 1] |= u8::try_from(len).unwrap_or(0);
        match act % 4 {
            0 if restarts < 5 => {
                restarts += 1;
                let mut after = SaltPool::new([restarts; 16], NOW, RestartPolicy::Lenient);
                let kept = after.restore_digests(pool.export_digests().expose());
                assert_eq!(kept, Ok(seen.len()));
                stamped.clear();
                pool = after;
            }
            1 => {
                let new = stamped.insert(salt.clone());
                assert_eq!(pool.insert_salt(&salt, Some(NOW), NOW).is_ok(), new);
            }
            _ => {
                let new = seen.insert(salt.clone());
                assert_eq!(pool.insert_salt(&salt, None, NOW).is_ok(), new);
            }
        }
    }
    if !seen.is_empty() || !stamped.is_empty() {
        let mut other = pool;
        let again = other.restore_digests(other.export_digests().expose().clone().as_slice());
        assert_eq!(again, Err(SaltRestoreError::InUse));
    }
}

fn check_refused(bytes: &[u8]) {
    let mut pool = new_pool(2);
    let why = pool.restore_digests(bytes);
    assert!(why.is_err(), "{why:?}");
    check_usable(&pool);
    // Its own export still works.
    let mut next = self::new_pool(3);
    assert_eq!(next.restore_digests(pool.export_digests().expose()), Ok(1));
    assert_eq!(
        next.insert_salt(&NEW_SALT, None, NOW),
        Err(ProtocolError::Replayed)
    );
}

/// Arbitrary digests with a valid checksum.
fn check_forged(script: &mut ActionScript<'_>) {
    let mut seed = [0; 16];
    seed[..8].copy_from_slice(&u64::from(script.read_u32()).to_le_bytes());
    let digests = script.take_rest();
    let (digests, _) = digests.as_chunks::<8>();
    let mut bytes = b"adit-slt\x01".to_vec();
    bytes.extend_from_slice(&seed);
    let count = u32::try_from(digests.len()).unwrap_or(0);
    bytes.extend_from_slice(&count.to_be_bytes());
    bytes.extend_from_slice(digests.as_flattened());
    let check = SipKey::new(seed).hash_bytes(&bytes);
    bytes.extend_from_slice(&check.to_be_bytes());
    let mut pool = new_pool(4);
    let given: BTreeSet<_> = digests.iter().collect();
    assert_eq!(pool.restore_digests(&bytes), Ok(given.len()));
    let export = pool.export_digests();
    let (kept, check) = export.expose()[HEADER_LEN..].split_at(8 * given.len());
    assert_eq!(check.len(), 8);
    let kept: BTreeSet<_> = kept.as_chunks().0.iter().collect();
    assert_eq!(kept, given);
    check_usable(&pool);
}

/// A snapshot: unchanged it is complete, altered it is refused.
fn check_snapshot(script: &mut ActionScript<'_>) {
    let pool = new_pool(1);
    let (place, flip) = (script.read_u16(), script.read_u8());
    let mut salts = BTreeSet::new();
    for salt in script.take_rest().chunks(3).take(50) {
        let mut whole = [7; 16];
        whole[..salt.len()].copy_from_slice(salt);
        let stamp = (salt.first().is_some_and(|first| first % 2 == 0)).then_some(NOW);
        if pool.insert_salt(&whole, stamp, NOW).is_ok() {
            salts.insert((whole, stamp.is_some()));
        }
    }
    let first = pool.snapshot(NOW).next().expect("at least one part");
    let next = SaltPool::from_snapshot(first.expose(), NOW).expect("valid");
    let parts = pool.snapshot(NOW).skip(1);
    for part in parts {
        next.merge_snapshot(part.expose(), NOW).expect("valid");
    }
    for (salt, stamped) in salts {
        let again = next.insert_salt(&salt, stamped.then_some(NOW), NOW);
        assert_eq!(again, Err(ProtocolError::Replayed));
    }
    check_usable(&next);
    let mut altered = first.expose().clone();
    alter_byte(&mut altered, place, flip);
    assert!(next.merge_snapshot(&altered, NOW).is_err());
    assert!(SaltPool::from_snapshot(&altered, NOW).is_err());
}

fuzz_target!(|input: &[u8]| {
    let mut script = ActionScript::new(input);
    match script.read_u8() % 6 {
        5 => check_snapshot(&mut script),
        0 => check_refused(script.take_rest()),
        1 => check_model(&mut script),
        2 => check_forged(&mut script),
        3 => {
            // Valid up to the count; no more digests are restored than there are.
            let mut bytes = b"adit-slt\x01".to_vec();
            bytes.extend_from_slice(script.take_rest());
            check_refused(&bytes);
        }
        _ => {
            let pool = new_pool(1);
            let (place, flip, cut) = (script.read_u16(), script.read_u8(), script.read_u8());
            for salt in script.take_rest().chunks(3).take(50) {
                let mut whole = [7; 16];
                whole[..salt.len()].copy_from_slice(salt);
                let _ = pool.insert_salt(&whole, None, NOW);
            }
            let export = pool.export_digests();
            let mut bytes = export.expose().clone();
            match cut {
                0 => drop(alter_byte(&mut bytes, place, flip)),
                1..128 => bytes.truncate(bytes.len().saturating_sub(usize::from(cut))),
                _ => bytes.resize(bytes.len() + usize::from(cut - 127), flip),
            }
            check_refused(&bytes);
        }
    }
});
