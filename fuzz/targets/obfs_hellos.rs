//! Snapshots of the hellos of an obfuscating server: arbitrary bytes, and arbitrary digests with a valid check.

#![no_main]

use std::collections::BTreeSet;
use std::sync::Arc;

use adit_crypto::{SipKey, SnapshotFormat};
use adit_fuzz::NOW;
use adit_obfs::{ObfsKind, ObfsParam, ServerSettings, ServerState};
use adit_wire::FixedEntropy;
use libfuzzer_sys::fuzz_target;

const FORMAT: SnapshotFormat = SnapshotFormat {
    magic: *b"adit-hel",
    version: 1,
};

fn restore(bytes: &[u8]) -> Option<ServerState> {
    let param = ObfsParam::default();
    let settings = ServerSettings::new(ObfsKind::TicketAuth, &param, Arc::new(NOW));
    let mut entropy = FixedEntropy::new([7; 64]);
    ServerState::from_snapshot(&settings, bytes, &mut entropy).ok()
}

/// Returns the digests, without their order.
fn digests(bytes: &[u8]) -> BTreeSet<&[u8]> {
    let (_, body) = FORMAT.parse(bytes).expect("valid");
    body.chunks(8).collect()
}

fn check(bytes: &[u8]) -> bool {
    let Some(state) = restore(bytes) else {
        return false;
    };
    let snapshot = state.snapshot().expect("a kind with hellos");
    assert_eq!(digests(snapshot.expose()), digests(bytes));
    state.merge_snapshot(bytes).expect("valid");
    let same = state.snapshot().expect("a kind with hellos");
    assert_eq!(digests(same.expose()), digests(bytes));
    true
}

fuzz_target!(|input: &[u8]| {
    check(input);
    let body = input;
    let forged = FORMAT.encode(&SipKey::new([1; 16]), body.len(), |out| {
        out.extend_from_slice(body);
    });
    assert_eq!(check(forged.expose()), body.len().is_multiple_of(8));
});
