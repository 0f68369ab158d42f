//! The cache of failures.

use core::time::Duration;

use adit_wire::Time;

use crate::{FailureCache, RecordType};

const A: RecordType = RecordType::A;
const ALMOST: Duration = Duration::from_millis(999);

const fn at(seconds: u64) -> Time {
    Time(seconds * 1_000_000)
}

#[test]
fn pauses_grow_while_lookups_fail() {
    let mut failures = FailureCache::new(8);
    let mut now = 0;
    for pause in [1, 2, 4, 8, 16, 30, 30] {
        assert_eq!(failures.get("a.test", A, at(now)), None);
        failures.insert("a.test", A, "first", at(now));
        // One that was started before.
        failures.insert("a.test", A, "second", at(now));
        let last = at(now + pause - 1) + ALMOST;
        assert_eq!(failures.get("a.test", A, last), Some("first"), "{pause}");
        assert_eq!(failures.get("a.test", RecordType::AAAA, at(now)), None);
        assert_eq!(failures.get("b.test", A, at(now)), None);
        now += pause;
    }
    assert_eq!(failures.get("a.test", A, at(now)), None);
    // The pause starts again after 30 s without a failure, and after a success.
    now += 30;
    for _ in 0..2 {
        failures.insert("a.test", A, "later", at(now));
        assert!(failures.get("a.test", A, at(now) + ALMOST).is_some());
        assert!(failures.get("a.test", A, at(now + 1)).is_none());
        failures.remove("a.test", A);
        now += 1;
    }
}

#[test]
fn a_working_server_shortens_pauses() {
    let mut failures = FailureCache::new(8);
    failures.insert("a.test", A, (), at(0));
    failures.insert("a.test", A, (), at(1));
    assert!(failures.get("a.test", A, at(2)).is_some());
    failures.shorten_pauses();
    assert!(failures.get("a.test", A, at(1) + ALMOST).is_some());
    assert!(failures.get("a.test", A, at(2)).is_none());
    failures.insert("a.test", A, (), at(2));
    assert!(failures.get("a.test", A, at(3)).is_none(), "1 s again");
    failures.insert("b.test", A, (), at(3));
    failures.clear();
    assert!(failures.get("b.test", A, at(3)).is_none());
}

#[test]
fn the_number_of_failures_is_bounded() {
    let mut failures = FailureCache::new(4);
    let name = |n: u32| format!("n{n}.test");
    for n in 0..100 {
        failures.insert(&name(n), A, n, at(0));
    }
    let kept = (0..100).filter_map(|n| failures.get(&name(n), A, at(0)));
    assert_eq!(kept.collect::<Vec<u32>>(), [96, 97, 98, 99]);
    let long = "a".repeat(300);
    failures.insert(&long, A, 0, at(0));
    assert_eq!(failures.get(&long, A, at(0)), None);
    let mut none = FailureCache::new(0);
    none.insert("a.test", A, 0, at(0));
    assert_eq!(none.get("a.test", A, at(0)), None);
}
