//! Snapshots of the replay protection of ShadowsocksR: arbitrary bytes, and arbitrary entries with a valid check.

#![no_main]

use adit_crypto::SipKey;
use adit_fuzz::{ActionScript, NOW};
use adit_shadowsocksr::ReplayStore;
use libfuzzer_sys::fuzz_target;

/// The parts of a store, sorted: tags have no order.
fn parts_of(store: &ReplayStore) -> Vec<Vec<u8>> {
    store
        .snapshot()
        .map(|part| {
            let part = part.expose();
            let (head, entries) = part.split_at(34);
            let entries = &entries[..entries.len() - 8];
            let size = if head[33] == 0 { 8 } else { 536 };
            let mut sorted: Vec<&[u8]> = entries.chunks(size).collect();
            sorted.sort_unstable();
            [head.to_vec(), sorted.concat()].concat()
        })
        .collect()
}

fn check_store(store: &ReplayStore) {
    let first = store.snapshot().next().expect("at least one part");
    let copy = ReplayStore::from_snapshot(first.expose()).expect("valid");
    // Twice: what is known already changes nothing.
    for _ in 0..2 {
        for part in store.snapshot() {
            copy.merge_snapshot(part.expose()).expect("valid");
        }
        assert_eq!(parts_of(&copy), parts_of(store));
    }
}

fuzz_target!(|input: &[u8]| {
    if let Ok(store) = ReplayStore::from_snapshot(input) {
        check_store(&store);
    }
    let mut script = ActionScript::new(input);
    let store = ReplayStore::new([1; 16], NOW);
    let kind = script.read_u8() % 3;
    let mut bytes = b"adit-rpl\x01".to_vec();
    bytes.extend_from_slice(&[1; 16]);
    bytes.extend_from_slice(&NOW.0.to_be_bytes());
    bytes.push(kind);
    bytes.extend_from_slice(script.take_rest());
    let check = SipKey::new([1; 16]).hash_bytes(&bytes);
    bytes.extend_from_slice(&check.to_be_bytes());
    let size = match kind {
        0 => 8,
        1 => 536,
        _ => usize::MAX,
    };
    let valid = (bytes.len() - 42).is_multiple_of(size) && kind < 2;
    assert_eq!(store.merge_snapshot(&bytes).is_ok(), valid);
    check_store(&store);
});
