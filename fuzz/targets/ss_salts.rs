//! Salt pools compared with a model, and restored from a file: whole, altered, forged with a valid
//! checksum, and arbitrary.

#![no_main]

use std::collections::BTreeSet;

use adit_crypto::SipKey;
use adit_fuzz::{NOW, Script, alter};
use adit_shadowsocks::{RestartPolicy, SaltPool, SaltRestoreError};
use adit_wire::ProtocolError;
use libfuzzer_sys::fuzz_target;

/// "adit-slt" ‖ version ‖ seed ‖ count
const HEAD: usize = 8 + 1 + 16 + 4;
const NEW: [u8; 16] = [0xee; 16];

fn pool(seed: u8) -> SaltPool {
    SaltPool::new([seed; 16], NOW, RestartPolicy::Lenient)
}

/// Adds a new salt, which is accepted once.
fn is_usable(pool: &SaltPool) {
    let taken = pool.accepted_count();
    assert_eq!(pool.insert_salt(&NEW, None, NOW), Ok(()));
    assert_eq!(
        pool.insert_salt(&NEW, None, NOW),
        Err(ProtocolError::Replayed)
    );
    assert_eq!(pool.accepted_count(), taken + 1);
}

/// Salts in any order, several times, across a restart.
fn model(script: &mut Script<'_>) {
    let mut seen = BTreeSet::new();
    let mut pool = pool(1);
    let mut stamped = BTreeSet::new();
    let mut restarts = 2;
    while !script.is_over() {
        let act = script.byte();
        let len = if act & 4 == 0 { 16 } else { 32 };
        // A short salt equals a long one that ends in zeros.
        let mut salt = script.take(usize::from(act >> 5)).to_vec();
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

fn refused(bytes: &[u8]) {
    let mut pool = pool(2);
    let why = pool.restore_digests(bytes);
    assert!(why.is_err(), "{why:?}");
    is_usable(&pool);
    // Its own export still works.
    let mut next = self::pool(3);
    assert_eq!(next.restore_digests(pool.export_digests().expose()), Ok(1));
    assert_eq!(
        next.insert_salt(&NEW, None, NOW),
        Err(ProtocolError::Replayed)
    );
}

/// Arbitrary digests with a valid checksum.
fn forged(script: &mut Script<'_>) {
    let mut seed = [0; 16];
    seed[..8].copy_from_slice(&u64::from(script.word()).to_le_bytes());
    let digests = script.rest();
    let (digests, _) = digests.as_chunks::<8>();
    let mut bytes = b"adit-slt\x01".to_vec();
    bytes.extend_from_slice(&seed);
    let count = u32::try_from(digests.len()).unwrap_or(0);
    bytes.extend_from_slice(&count.to_be_bytes());
    bytes.extend_from_slice(digests.as_flattened());
    let check = SipKey::new(seed).hash_bytes(&bytes);
    bytes.extend_from_slice(&check.to_be_bytes());
    let mut pool = pool(4);
    let given: BTreeSet<_> = digests.iter().collect();
    assert_eq!(pool.restore_digests(&bytes), Ok(given.len()));
    let export = pool.export_digests();
    let (kept, check) = export.expose()[HEAD..].split_at(8 * given.len());
    assert_eq!(check.len(), 8);
    let kept: BTreeSet<_> = kept.as_chunks().0.iter().collect();
    assert_eq!(kept, given);
    is_usable(&pool);
}

fuzz_target!(|input: &[u8]| {
    let mut script = Script::new(input);
    match script.byte() % 5 {
        0 => refused(script.rest()),
        1 => model(&mut script),
        2 => forged(&mut script),
        3 => {
            // Valid up to the count; no more digests are restored than there are.
            let mut bytes = b"adit-slt\x01".to_vec();
            bytes.extend_from_slice(script.rest());
            refused(&bytes);
        }
        _ => {
            let pool = pool(1);
            let (place, flip, cut) = (script.short(), script.byte(), script.byte());
            for salt in script.rest().chunks(3).take(50) {
                let mut whole = [7; 16];
                whole[..salt.len()].copy_from_slice(salt);
                let _ = pool.insert_salt(&whole, None, NOW);
            }
            let export = pool.export_digests();
            let mut bytes = export.expose().clone();
            match cut {
                0 => drop(alter(&mut bytes, place, flip)),
                1..128 => bytes.truncate(bytes.len().saturating_sub(usize::from(cut))),
                _ => bytes.resize(bytes.len() + usize::from(cut - 127), flip),
            }
            refused(&bytes);
        }
    }
});
