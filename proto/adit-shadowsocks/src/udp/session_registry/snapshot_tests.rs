//! Sessions that are served by one process after the other.

use super::*;
use crate::RestartPolicy;

const NOW: UnixTime = UnixTime(1_700_000_000);
const OPEN: OwnedSessionId = (1, 0);
const CLOSED: OwnedSessionId = (2, 7);
const OTHER: OwnedSessionId = (3, 0);
const REPLAYED: Result<Option<u64>, ProtocolError> = Err(ProtocolError::Replayed);

fn begin(
    registry: &SessionRegistry,
    session: OwnedSessionId,
    packet: u64,
) -> Result<Option<u64>, ProtocolError> {
    registry.begin_session(session, 1, packet, NOW, NOW)
}

/// A registry with an open session, and a closed one whose highest packet is 40.
fn registry() -> SessionRegistry {
    let start = ProcessStart::new(UnixTime(NOW.0 - 9), RestartPolicy::Strict);
    let registry = SessionRegistry::new(start);
    assert_eq!(registry.register_opener(), 1);
    begin(&registry, OPEN, 0).unwrap();
    begin(&registry, CLOSED, 0).unwrap();
    registry.close_session(CLOSED, 40, NOW);
    registry
}

#[test]
fn the_next_process_refuses_what_the_first_has_seen() {
    let before = registry();
    let after = SessionRegistry::from_snapshot(&before.snapshot(NOW), NOW).unwrap();
    let elsewhere = Err(ProtocolError::Elsewhere);
    assert_eq!(begin(&after, OPEN, 5), elsewhere);
    assert_eq!(begin(&after, CLOSED, 40), REPLAYED);
    assert_eq!(begin(&after, CLOSED, 41), Ok(Some(40)));
    assert_eq!(begin(&after, OTHER, 0), Ok(None));

    // It was closed at packet 8.
    before.close_session(OPEN, 8, NOW);
    after.merge_snapshot(&before.snapshot(NOW), NOW).unwrap();
    assert_eq!(begin(&after, OPEN, 8), REPLAYED);
    assert_eq!(begin(&after, OPEN, 9), Ok(Some(8)));
    // The ones that started here are still served here.
    assert_eq!(after.register_opener(), 1);
    let elsewhere = after.begin_session(CLOSED, 2, 50, NOW, NOW);
    assert_eq!(elsewhere, REPLAYED);
}

#[test]
fn the_start_is_that_of_the_first_process() {
    let after = SessionRegistry::from_snapshot(&registry().snapshot(NOW), NOW).unwrap();
    let at = |stamp| after.begin_session(OTHER, 1, 0, UnixTime(stamp), NOW);
    assert_eq!(at(NOW.0 - 9), REPLAYED);
    assert_eq!(at(NOW.0 - 8), Ok(None));
}

#[test]
fn a_session_that_has_expired_may_start_again() {
    let before = registry();
    let after = SessionRegistry::from_snapshot(&before.snapshot(NOW), NOW).unwrap();
    before.close_session(OPEN, 8, NOW);
    let late = UnixTime(NOW.0 + 300);
    after.merge_snapshot(&before.snapshot(late), late).unwrap();
    assert_eq!(after.begin_session(OPEN, 1, 3, late, late), Ok(None));
}

#[test]
fn an_abrupt_end_of_the_first_process_opens_no_gap() {
    let after = SessionRegistry::from_snapshot(&registry().snapshot(NOW), NOW).unwrap();
    after.end_previous_process(NOW);
    assert_eq!(begin(&after, OPEN, 1 << 40), REPLAYED);
    let late = UnixTime(NOW.0 + 121);
    assert_eq!(after.begin_session(OPEN, 1, 3, late, late), Ok(None));
}

#[test]
fn many_sessions_have_several_parts() {
    let before = registry();
    for id in 0..70_000 {
        before.close_session((id, 9), id, NOW);
    }
    let parts = before.snapshot(NOW);
    assert_eq!(parts.len(), 2);
    assert!(parts.iter().all(|part| part.len() < 2 << 20));
    let after = SessionRegistry::from_snapshot(&parts, NOW).unwrap();
    for id in 0..70_000 {
        assert_eq!(begin(&after, (id, 9), id), REPLAYED);
    }
    let too_many = vec![&parts[0]; 13];
    let why = after.merge_snapshot(&too_many, NOW).unwrap_err();
    assert_eq!(why, SessionRestoreError::TooMany);
}

#[test]
fn other_bytes_are_refused() {
    let registry = registry();
    let part = registry.snapshot(NOW).remove(0);
    let merge = |bytes: &[u8]| registry.merge_snapshot(&[bytes], NOW);
    let head = part.len() - 50;
    for len in 0..part.len() {
        let whole = len >= head && (len - head).is_multiple_of(25);
        assert_eq!(merge(&part[..len]).is_ok(), whole, "{len}");
    }
    let with = |at: usize, byte: u8| {
        let mut bytes = part.clone();
        bytes[at] = byte;
        merge(&bytes)
    };
    assert_eq!(with(0, b'x'), Err(SessionRestoreError::Foreign));
    assert_eq!(with(8, 9), Err(SessionRestoreError::Version(9)));
    assert_eq!(with(17, 2), Err(SessionRestoreError::Damaged));
    assert_eq!(with(head + 16, 2), Err(SessionRestoreError::Damaged));
    let nothing: [&[u8]; 0] = [];
    let why = registry.merge_snapshot(&nothing, NOW);
    assert_eq!(why, Err(SessionRestoreError::Damaged));
}
