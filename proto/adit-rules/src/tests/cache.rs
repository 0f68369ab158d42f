//! Compiled sets as bytes.

use proptest::prelude::*;

use super::assert_matches;
use crate::{CacheError, Condition, RuleSet, RuleSetBuilder};

fn full() -> RuleSet {
    let texts = [
        "db.lan",
        "*.lan",
        "suffix:example",
        "keyword:ads",
        "keyword:x",
        "glob:a*.test",
        "regex:^q[0-9]+$",
        "10.0.0.0/8",
        "2001:db8::/32",
        ":25",
        ":1000-2000",
        "network:udp",
        "source:192.0.2.0/24",
        "source-port:7",
        "user:alice",
        "user:bob",
        "listener:socks",
    ];
    let conditions = texts.iter().map(|text| Condition::parse(text).unwrap());
    let flat = RuleSet::compile(conditions.clone()).unwrap();
    let mut builder = RuleSetBuilder::new();
    for condition in conditions {
        builder.add(condition).unwrap();
    }
    builder
        .add_all(vec![flat.clone(), RuleSet::default()])
        .unwrap();
    builder.add_not(flat).unwrap();
    builder.build()
}

#[test]
fn a_set_is_loaded_as_it_was() {
    for set in [
        full(),
        RuleSet::default(),
        RuleSet::compile([Condition::Any]).unwrap(),
    ] {
        let bytes = set.to_cache();
        let loaded = RuleSet::from_cache(&bytes).unwrap();
        assert_eq!(loaded, set);
        assert_eq!(loaded.to_cache(), bytes);
    }
    let loaded = RuleSet::from_cache(&full().to_cache()).unwrap();
    assert_matches(&loaded, &["www.example", "q7", "10.1.1.1"], &[]);
}

#[test]
fn damage_is_found() {
    let good = full().to_cache();
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1;
        let expected = match at {
            0..8 => CacheError::Magic,
            8..10 => CacheError::Version(if at == 8 { 257 } else { 0 }),
            10..18 => CacheError::Length,
            _ => CacheError::Checksum,
        };
        assert_eq!(RuleSet::from_cache(&bad), Err(expected), "{at}");
    }
    for len in 0..good.len() {
        assert!(RuleSet::from_cache(&good[..len]).is_err());
    }
    let longer = [&good[..], &[0]].concat();
    assert_eq!(RuleSet::from_cache(&longer), Err(CacheError::Length));
}

/// Returns a document with the right length and checksum.
fn seal(body: &[u8]) -> Vec<u8> {
    let mut out = b"ADITRULE\0\x01".to_vec();
    out.extend((body.len() as u64).to_be_bytes());
    out.extend(crc32fast::hash(body).to_be_bytes());
    out.extend_from_slice(body);
    out
}

proptest! {
    #[test]
    fn wrong_content_does_not_panic(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let mut body = full().to_cache().split_off(22);
        for (at, byte) in changes {
            let at = at.index(body.len());
            body[at] = byte;
        }
        if let Ok(set) = RuleSet::from_cache(&seal(&body)) {
            assert_matches(&set, &[], &[]);
            let _ = super::matches(&set, "a.example:1");
            prop_assert!(RuleSet::from_cache(&set.to_cache()).is_ok());
        }
    }
}

#[test]
fn the_depth_of_a_cache_is_bounded() {
    let empty = RuleSet::default().to_cache().split_off(22);
    let (head, groups) = empty.split_at(empty.len() - 4);
    assert_eq!(groups, [0; 4]);
    let nested = |levels: usize| {
        let mut body = Vec::new();
        for _ in 0..levels {
            body.extend_from_slice(head);
            body.extend([0, 0, 0, 1, 2]);
        }
        body.extend_from_slice(&empty);
        RuleSet::from_cache(&seal(&body))
    };
    assert!(nested(16).is_ok());
    assert_eq!(nested(17), Err(CacheError::Content));
    assert_eq!(nested(100_000), Err(CacheError::Content));
}
