//! Every vector on every level, in one part and in several.

use std::vec::Vec;

use serde_json::Value;

use super::{hex, levels, vectors};
use crate::{Nonce, SimdLevel, Umac, UmacSession};

pub(super) fn message(case: &Value) -> Vec<u8> {
    let length = usize::try_from(case["len"].as_u64().unwrap()).unwrap();
    let octet = |i: usize| match case["pattern"].as_str().unwrap() {
        "a" => b'a',
        "abc" => b"abc"[i % 3],
        "ff" => 0xff,
        "zero" => 0,
        "counter" => u8::try_from((7 * i + (i >> 8) + 3) % 256).unwrap(),
        other => panic!("no pattern {other}"),
    };
    (0..length).map(octet).collect()
}

fn key(case: &Value) -> [u8; 16] {
    hex(&case["key"]).try_into().unwrap()
}

fn check<const TAG: usize>(level: SimdLevel, case: &Value, message: &[u8], name: &str) {
    let umac = Umac::<TAG>::with_level(&key(case), level).unwrap();
    let nonce = Nonce::new(&hex(&case["nonce"])).unwrap();
    let right = hex(&case[name]);
    assert_eq!(right.len(), TAG);
    let what = || std::format!("{name} {level:?} {} {}", case["pattern"], case["len"]);
    assert_eq!(
        umac.compute_tag(nonce, message).as_ref(),
        right,
        "{}",
        what()
    );
    assert_eq!(
        umac.verify_tag(nonce, message, &right),
        Ok(()),
        "{}",
        what()
    );
    // More than about 100,000 parts would make a long message slow without testing more.
    for piece in [1, 7, 32, 1000, 1024, 1025, 65_536] {
        if message.len() / piece > 100_000 {
            continue;
        }
        let mut hasher = umac.new_hasher();
        message.chunks(piece).for_each(|part| hasher.update(part));
        let tag = hasher.finish_tag(nonce);
        assert_eq!(tag.as_ref(), right, "{} by {piece}", what());
    }
}

fn check_all(list: &str, count: usize) {
    let all = vectors();
    let cases = all[list].as_array().unwrap();
    assert_eq!(cases.len(), count);
    for case in cases {
        let message = message(case);
        for level in levels() {
            check::<4>(level, case, &message, "umac32");
            check::<8>(level, case, &message, "umac64");
            check::<12>(level, case, &message, "umac96");
            check::<16>(level, case, &message, "umac128");
        }
    }
}

#[test]
fn the_appendix_of_the_rfc() {
    check_all("rfc4418_appendix", 8);
}

#[test]
fn every_boundary() {
    check_all("generated", 64);
}

#[test]
fn where_the_second_polynomial_begins() {
    check_all("ramp_16MiB", 4);
}

#[test]
fn sequence_numbers_of_ssh() {
    let all = vectors();
    let cases = all["ssh_seqno"].as_array().unwrap();
    assert_eq!(cases.len(), 9);
    let mut short = UmacSession::<8>::new(&key(&cases[0]));
    let mut long = UmacSession::<16>::new(&key(&cases[0]));
    for case in cases {
        assert_eq!(key(case), key(&cases[0]));
        let nonce = Nonce::from(case["seqno"].as_u64().unwrap());
        assert_eq!(Nonce::new(&hex(&case["nonce"])), Ok(nonce));
        let packet = hex(&case["packet"]);
        let right = hex(&case["umac-64"]);
        assert_eq!(short.compute_tag(nonce, &packet).as_ref(), right);
        assert!(short.verify_tag(nonce, &packet, &right).is_ok());
        let right = hex(&case["umac-128"]);
        assert_eq!(long.compute_tag(nonce, &packet).as_ref(), right);
        assert!(long.verify_tag(nonce, &packet, &right).is_ok());
    }
}
