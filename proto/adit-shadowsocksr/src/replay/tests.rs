//! Messages that the store accepts, and limits at which it is full.

use super::*;

const NOW: UnixTime = UnixTime(1_700_000_000);

fn store(tags: usize, windows: usize) -> ReplayStore {
    let mut store = ReplayStore::new([1; 16], NOW);
    store.limits = StoreLimits { tags, windows };
    store
}

fn arrival(uid: u32, client: u8, connection: u32, proof: &[u8]) -> MessageId<'_> {
    MessageId {
        uid,
        client: [client; 8],
        connection,
        proof,
        max_clients: 2,
        idle: 180,
    }
}

const FULL: Result<(), ProtocolError> =
    Err(ProtocolError::Exhausted("the number of a user's clients"));

#[test]
fn ids_and_tags_are_taken_once() {
    let store = store(10, 10);
    assert_eq!(store.admit_message(&arrival(1, 1, 5, b"a"), NOW), Ok(()));
    let again = [
        arrival(1, 1, 5, b"b"),
        arrival(1, 1, 6, b"a"),
        arrival(2, 2, 9, b"a"),
    ];
    for arrival in again {
        assert_eq!(
            store.admit_message(&arrival, NOW),
            Err(ProtocolError::Replayed),
            "{arrival:?}"
        );
    }
    assert_eq!(
        store.admit_message(&arrival(2, 1, 5, b"c"), NOW),
        Ok(()),
        "another user"
    );
}

#[test]
fn a_refused_message_leaves_no_trace() {
    let store = store(10, 10);
    assert_eq!(store.admit_message(&arrival(1, 1, 5, b"a"), NOW), Ok(()));
    assert!(store.admit_message(&arrival(1, 1, 5, b"b"), NOW).is_err());
    assert_eq!(store.admit_message(&arrival(1, 1, 6, b"b"), NOW), Ok(()));
}

#[test]
fn a_users_clients_are_bounded() {
    let store = store(100, 100);
    let later = |s| UnixTime(NOW.0 + s);
    assert_eq!(store.admit_message(&arrival(1, 1, 5, b"a"), NOW), Ok(()));
    assert_eq!(
        store.admit_message(&arrival(1, 2, 5, b"b"), later(100)),
        Ok(())
    );
    assert_eq!(
        store.admit_message(&arrival(1, 3, 5, b"c"), later(179)),
        FULL
    );
    assert_eq!(
        store.admit_message(&arrival(2, 3, 5, b"d"), later(179)),
        Ok(())
    );
    assert_eq!(
        store.admit_message(&arrival(1, 3, 5, b"c"), later(180)),
        Ok(())
    );
    // The first client was dropped in favor of the third: its window is gone, its tag is not.
    assert_eq!(
        store.admit_message(&arrival(1, 1, 5, b"a"), later(500)),
        Err(ProtocolError::Replayed)
    );
}

#[test]
fn all_clients_are_bounded() {
    let store = store(100, 3);
    for (uid, proof) in [(1, b"a"), (2, b"b"), (3, b"c")] {
        assert_eq!(store.admit_message(&arrival(uid, 1, 5, proof), NOW), Ok(()));
    }
    let full = Err(ProtocolError::Exhausted("the replay store"));
    assert_eq!(store.admit_message(&arrival(4, 1, 5, b"d"), NOW), full);
    let later = UnixTime(NOW.0 + 180);
    assert_eq!(store.admit_message(&arrival(4, 1, 5, b"d"), later), Ok(()));
}

#[test]
fn tags_turn_over_by_number() {
    let store = store(2, 10);
    for (connection, proof) in (5..).zip([b"a", b"b", b"c", b"d", b"e"]) {
        assert_eq!(
            store.admit_message(&arrival(1, 1, connection, proof), NOW),
            Ok(())
        );
    }
    assert!(
        store.admit_message(&arrival(2, 1, 1, b"c"), NOW).is_err(),
        "the last two to four are stored"
    );
    assert_eq!(store.admit_message(&arrival(2, 1, 1, b"a"), NOW), Ok(()));
}

#[test]
fn a_clock_that_goes_back_locks_no_one_out() {
    let store = store(10, 10);
    assert_eq!(store.admit_message(&arrival(1, 1, 5, b"a"), NOW), Ok(()));
    assert_eq!(
        store.admit_message(&arrival(1, 1, 6, b"b"), UnixTime(0)),
        Ok(())
    );
}

/// A message that one store admits, the next one confirms once.
#[test]
fn two_stores_agree_on_each_message() {
    let before = store(10, 10);
    let log = before.decision_log();
    let part = before.snapshot().next().unwrap();
    let after = ReplayStore::from_snapshot(part.expose()).unwrap();
    let message = arrival(1, 1, 5, b"a");
    let (admitted, entries) = log.observe(|| before.admit_message(&message, NOW));
    admitted.unwrap();
    assert_eq!(after.admit_logged(&entries[0], NOW), Ok(()));
    let replayed = Err(ProtocolError::Replayed);
    assert_eq!(after.admit_message(&message, NOW), replayed);
    assert_eq!(after.admit_message(&arrival(1, 1, 5, b"b"), NOW), replayed);
    let other = arrival(1, 1, 6, b"c");
    after.admit_message(&other, NOW).unwrap();
    let (admitted, entries) = log.observe(|| before.admit_message(&other, NOW));
    admitted.unwrap();
    assert_eq!(after.admit_logged(&entries[0], NOW), replayed);
    for len in [0, 39, 41] {
        let refused = after.admit_logged(&[0; 41][..len], NOW);
        assert!(matches!(refused, Err(ProtocolError::Malformed(_))), "{len}");
    }
    let (admitted, entries) = log.observe(|| before.admit_message(&message, NOW));
    assert!(admitted.is_err() && entries.is_empty(), "a refused message");
}
