//! Snapshots: merged into new and used stores, altered and foreign.

use super::*;

const NOW: UnixTime = UnixTime(1_700_000_000);
const REPLAYED: Result<(), ProtocolError> = Err(ProtocolError::Replayed);

fn arrival(uid: u32, client: u8, connection: u32, proof: &[u8]) -> MessageId<'_> {
    MessageId {
        uid,
        client: [client; 8],
        connection,
        proof,
        max_clients: 64,
        idle: 180,
    }
}

/// A store with three clients of two users.
fn filled() -> ReplayStore {
    let store = ReplayStore::new([1; 16], NOW);
    for (uid, client, connection, proof) in [
        (1, 1, 5, b"a"),
        (1, 1, 7, b"b"),
        (1, 2, 9, b"c"),
        (2, 1, 0, b"d"),
    ] {
        let arrival = arrival(uid, client, connection, proof);
        assert_eq!(store.admit_message(&arrival, NOW), Ok(()));
    }
    store
}

fn merge_all(from: &ReplayStore, into: &ReplayStore) {
    let parts = from.snapshot();
    parts.for_each(|part| into.merge_snapshot(part.expose()).unwrap());
}

fn copy_of(store: &ReplayStore) -> ReplayStore {
    let first = store.snapshot().next().unwrap();
    let copy = ReplayStore::from_snapshot(first.expose()).unwrap();
    merge_all(store, &copy);
    copy
}

#[test]
fn the_next_process_refuses_what_the_first_has_seen() {
    let after = copy_of(&filled());
    let admit = |uid, client, connection, proof: &[u8]| {
        after.admit_message(&arrival(uid, client, connection, proof), NOW)
    };
    assert_eq!(after.start_time(), NOW);
    // By its tag, from another client; and by its number, with another tag.
    assert_eq!(admit(3, 3, 1, b"a"), REPLAYED);
    assert_eq!(admit(1, 1, 5, b"x"), REPLAYED);
    assert_eq!(admit(1, 1, 7, b"x"), REPLAYED);
    assert_eq!(admit(2, 1, 0, b"x"), REPLAYED);
    assert_eq!(admit(1, 1, 6, b"x"), Ok(()));
    assert_eq!(admit(1, 1, 8, b"y"), Ok(()));
}

#[test]
fn both_processes_go_on() {
    let before = filled();
    let after = copy_of(&before);
    for (store, connection, proof) in [
        (&before, 8, b"e"),
        (&after, 10, b"f"),
        (&before, 12, b"g"),
        (&after, 6, b"h"),
    ] {
        let arrival = arrival(1, 1, connection, proof);
        assert_eq!(store.admit_message(&arrival, NOW), Ok(()));
    }
    merge_all(&before, &after);
    merge_all(&before, &after);
    for connection in [5, 6, 7, 8, 10, 12] {
        let again = after.admit_message(&arrival(1, 1, connection, b"new"), NOW);
        assert_eq!(again, REPLAYED, "{connection}");
    }
    for proof in [b"a", b"e", b"f", b"g", b"h"] {
        let again = after.admit_message(&arrival(9, 9, 1, proof), NOW);
        assert_eq!(again, REPLAYED);
    }
    let next = after.admit_message(&arrival(1, 1, 9, b"new"), NOW);
    assert_eq!(next, Ok(()));
}

#[test]
fn many_entries_have_several_parts() {
    let store = ReplayStore::new([1; 16], NOW);
    for uid in 0..5000u32 {
        let proof = uid.to_be_bytes();
        let arrival = arrival(uid, 1, 7, &proof);
        assert_eq!(store.admit_message(&arrival, NOW), Ok(()));
    }
    let parts: Vec<_> = store.snapshot().collect();
    assert_eq!(parts.len(), 3);
    assert!(parts.iter().all(|part| part.expose().len() <= 4 << 20));
    let after = copy_of(&store);
    for uid in 0..5000 {
        let again = after.admit_message(&arrival(uid, 1, 7, b"new"), NOW);
        assert_eq!(again, REPLAYED, "{uid}");
    }
    // A smaller store reports that it is full.
    let mut small = ReplayStore::new([1; 16], NOW);
    small.limits.windows = 100;
    let mut results = parts.iter().map(|part| small.merge_snapshot(part.expose()));
    assert!(results.any(|result| result == Err(ReplayRestoreError::TooManyClients)));
    assert_eq!(small.seen.lock().unwrap().clients.len(), 200);
}

#[test]
fn an_empty_store_has_one_part() {
    let store = ReplayStore::new([1; 16], NOW);
    assert_eq!(store.snapshot().count(), 1);
    let after = copy_of(&store);
    assert_eq!(after.admit_message(&arrival(1, 1, 5, b"a"), NOW), Ok(()));
}

#[test]
fn other_bytes_are_refused() {
    let store = filled();
    for part in store.snapshot() {
        let part = part.expose();
        for len in 0..part.len() {
            assert!(store.merge_snapshot(&part[..len]).is_err(), "{len}");
        }
        for at in 0..part.len() {
            let mut altered = part.clone();
            altered[at] ^= 1;
            assert!(store.merge_snapshot(&altered).is_err(), "{at}");
            assert!(ReplayStore::from_snapshot(&altered).is_err(), "{at}");
        }
        let other = ReplayStore::new([2; 16], NOW);
        let why = other.merge_snapshot(part);
        assert_eq!(why, Err(ReplayRestoreError::OtherStore));
    }
}
