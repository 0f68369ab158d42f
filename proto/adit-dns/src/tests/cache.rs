//! The cache.

use core::time::Duration;
use std::sync::Arc;

use adit_wire::Time;
use hickory_proto::op::ResponseCode as Code;
use hickory_proto::rr::RecordType as Kind;

use super::{a, answer, bytes, negative};
use crate::{Answer, Cache, CacheLimits, RecordType, UpstreamQuery};

fn found(name: &str, ttl: u32) -> Arc<Answer> {
    let message = answer(7, name, Kind::A, &[a(name, ttl, [192, 0, 2, 1])]);
    check(name, &bytes(&message))
}

fn check(name: &str, message: &[u8]) -> Arc<Answer> {
    let asked = UpstreamQuery::new(name, RecordType::A, 7).unwrap();
    asked.check_answer(message).unwrap().into()
}

const fn at(seconds: u64) -> Time {
    Time(seconds * 1_000_000)
}

#[test]
fn answers_are_kept_for_their_time_to_live() {
    let mut cache = Cache::new(CacheLimits {
        min_ttl: Duration::from_secs(2),
        max_ttl: Duration::from_secs(900),
        max_negative_ttl: Duration::from_secs(30),
        ..CacheLimits::default()
    });
    let mut valid = |name: &str, answer: Arc<Answer>, seconds: u64| {
        cache.insert(name, RecordType::A, answer, at(100));
        let before = cache.get(name, RecordType::A, at(100 + seconds - 1));
        assert_eq!(before.unwrap().age, Duration::from_secs(seconds - 1));
        assert!(cache.get(name, RecordType::AAAA, at(100)).is_none());
        assert!(
            cache.get(name, RecordType::A, at(100 + seconds)).is_none(),
            "{name}"
        );
        assert!(cache.is_empty() && cache.bytes() == 0);
    };
    valid("ten.test", found("ten.test.", 10), 10);
    valid("zero.test", found("zero.test.", 0), 2);
    valid("day.test", found("day.test.", 86_400), 900);
    let none = bytes(&negative(7, "none.test.", Kind::A, Code::NXDomain));
    valid("none.test", check("none.test", &none), 30);
}

#[test]
fn failures_and_truncated_answers_are_not_kept() {
    let mut cache = Cache::default();
    let mut failed = answer(7, "a.test.", Kind::A, &[]);
    failed.metadata.response_code = Code::ServFail;
    let mut cut = answer(7, "a.test.", Kind::A, &[]);
    cut.metadata.truncation = true;
    for message in [failed, cut] {
        cache.insert(
            "a.test",
            RecordType::A,
            check("a.test", &bytes(&message)),
            at(0),
        );
        assert!(cache.get("a.test", RecordType::A, at(0)).is_none());
    }
    cache.insert("a.test", RecordType::A, found("a.test", 0), at(0));
    assert!(cache.is_empty(), "a time to live of 0");
    let long = "a".repeat(300);
    cache.insert(&long, RecordType::A, found("a.test", 60), at(0));
    assert!(cache.is_empty() && cache.get(&long, RecordType::A, at(0)).is_none());
}

#[test]
fn the_least_recently_used_answers_go_first() {
    let mut cache = Cache::new(CacheLimits {
        entries: 3,
        ..CacheLimits::default()
    });
    let name = |n: usize| format!("n{n}.test");
    for n in 0..3 {
        cache.insert(&name(n), RecordType::A, found(&name(n), 60), at(0));
    }
    assert!(cache.get("n0.test", RecordType::A, at(1)).is_some());
    cache.insert("n3.test", RecordType::A, found("n3.test", 60), at(1));
    // A second answer takes the place of the first.
    cache.insert("n3.test", RecordType::A, found("n3.test", 60), at(2));
    assert_eq!(cache.len(), 3);
    let kept: Vec<bool> = (0..4)
        .map(|n| cache.get(&name(n), RecordType::A, at(2)).is_some())
        .collect();
    assert_eq!(kept, [true, false, true, true]);
    cache.clear();
    assert!(cache.is_empty() && cache.get("n0.test", RecordType::A, at(2)).is_none());
}

#[test]
fn the_memory_is_bounded() {
    let mut cache = Cache::new(CacheLimits {
        bytes: 10_000,
        ..CacheLimits::default()
    });
    for n in 0..1000 {
        let name = format!("n{n}.test");
        cache.insert(&name, RecordType::A, found(&name, 60), at(0));
        assert!(cache.bytes() <= 10_000);
        assert!(cache.get(&name, RecordType::A, at(0)).is_some());
    }
    assert!(cache.len() > 15 && cache.bytes() > 8_000);
}
