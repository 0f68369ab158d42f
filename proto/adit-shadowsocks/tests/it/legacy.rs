//! The stream edition: which attacks it withstands, and which it does not.

use std::sync::Arc;

use adit_shadowsocks::{Method, SaltPool, Users, UsersError};
use adit_wire::codec_laws::{open_all, seal_all};
use adit_wire::{Open, ProtocolError, encode_addr};

use crate::support::{
    ALL_AT_ONCE, NOW, Outcome, key, new_client, new_opener, new_server, pool, serve, target,
};

fn legacy() -> impl Iterator<Item = Method> {
    Method::ALL.into_iter().filter(|m| m.is_legacy())
}

/// Returns a stream with any content: a server's stream has the format of a client's.
fn stream(method: Method, plain: &[u8]) -> Vec<u8> {
    let key = key(method);
    let (mut seal, _) = new_client(&key, 1);
    let request = seal_all(&mut seal, b"hello", 100).unwrap();
    match serve(new_server(&key, &pool(), NOW, 2), &request, ALL_AT_ONCE) {
        Outcome::Open { mut accepted, .. } => seal_all(&mut accepted.seal, plain, 7).unwrap(),
        other => panic!("{method}: {other:?}"),
    }
}

fn answer(method: Method, salts: &Arc<SaltPool>, seed: u64, wire: &[u8]) -> Outcome {
    serve(new_server(&key(method), salts, NOW, seed), wire, &[3])
}

/// SEC-R4, as far as there is an IV to compare.
#[test]
fn a_replayed_request_is_refused_by_its_iv() {
    for method in legacy() {
        let salts = pool();
        let (mut seal, _) = new_client(&key(method), 1);
        let wire = seal_all(&mut seal, b"hello", 100).unwrap();
        assert!(matches!(
            answer(method, &salts, 2, &wire),
            Outcome::Open { .. }
        ));
        let again = answer(method, &salts, 3, &wire);
        match again {
            Outcome::Refused(ProtocolError::Replayed) => assert!(method.salt_len() > 0, "{method}"),
            Outcome::Open { .. } => assert_eq!(method.salt_len(), 0, "{method}"),
            other => panic!("{method}: {other:?}"),
        }
    }
}

/// SEC-R6: neither side accepts its own stream as the peer's, with or without a valid address in
/// front.
#[test]
fn reflections_are_refused_by_their_iv() {
    for method in legacy().filter(|m| m.salt_len() > 0) {
        let key = key(method);
        let salts = pool();
        let (mut seal, mut open) = new_client(&key, 1);
        let up = seal_all(&mut seal, b"hello", 100).unwrap();
        let Outcome::Open { mut accepted, .. } = answer(method, &salts, 2, &up) else {
            panic!("{method}");
        };
        let down = seal_all(&mut accepted.seal, b"\x01\x7f\0\0\x01\0\x50 hello", 100).unwrap();
        let back = answer(method, &salts, 3, &down);
        assert!(
            matches!(back, Outcome::Refused(ProtocolError::Replayed)),
            "{method}"
        );
        let back = open_all(&mut open, &up, ALL_AT_ONCE);
        assert_eq!(back, Err(ProtocolError::Replayed), "{method}");
    }
}

/// SEC-R1: bytes that are not a request must not spend a client's IV.
#[test]
fn only_an_address_is_a_request() {
    let mut fine = Vec::new();
    encode_addr(&target(), &mut fine);
    fine.extend_from_slice(b"data");
    for method in legacy() {
        let salts = pool();
        for bad in [
            &b"\x05\x01\0"[..],
            b"\0",
            // One-time authentication, which is obsolete and was not more secure.
            b"\x11\x7f\0\0\x01\0\x50",
            b"\x03\0\0\x50",
            b"\x03\x02a\0\0\x50",
        ] {
            match answer(method, &salts, 3, &stream(method, bad)) {
                Outcome::Refused(why) => {
                    assert_eq!(why, ProtocolError::Malformed("address"), "{method}");
                }
                other => panic!("{method} {bad:?}: {other:?}"),
            }
        }
        let wire = stream(method, &fine);
        for cut in 0..wire.len() - b"data".len() {
            let outcome = answer(method, &salts, 3, &wire[..cut]);
            assert!(matches!(outcome, Outcome::Waiting), "{method} {cut}");
        }
        // All of these had the same IV.
        match answer(method, &salts, 3, &wire) {
            Outcome::Open {
                accepted, plain, ..
            } => assert_eq!((accepted.target, &plain[..]), (target(), &b"data"[..])),
            other => panic!("{method}: {other:?}"),
        }
    }
}

/// A server may send its IV before it has data, and close after it.
#[test]
fn an_answer_may_be_an_iv_alone() {
    for method in legacy().filter(|m| m.salt_len() > 0) {
        let wire = stream(method, b"answer");
        let iv = &wire[..method.salt_len()];
        let (_, mut open) = new_client(&key(method), 9);
        assert_eq!(open_all(&mut open, iv, &[1]), Ok((Vec::new(), 0)));
        assert!(open.is_at_boundary(0), "{method}");
        let rest = &wire[method.salt_len()..];
        assert_eq!(open_all(&mut open, rest, &[2]), Ok((b"answer".into(), 0)));
        let (_, mut open) = new_client(&key(method), 9);
        let cut = open_all(&mut open, &iv[1..], ALL_AT_ONCE);
        assert_eq!(cut, Ok((Vec::new(), iv.len() - 1)), "{method}");
        assert!(!open.is_at_boundary(iv.len() - 1), "{method}");
    }
}

#[test]
fn users_cannot_be_told_apart() {
    for method in legacy() {
        let trial = Users::with_trial_keys(method, [("alice", "a"), ("bob", "b")]).map(|_| ());
        assert_eq!(trial, Err(UsersError::Method(method)));
        let identified = Users::with_identity_key(&key(method), [("alice", "a")]).map(|_| ());
        assert_eq!(identified, Err(UsersError::Method(method)));
    }
}

/// Garbage sometimes decrypts to an address, necessarily made of the garbage.
#[test]
fn garbage_is_refused_waits_or_is_a_target() {
    for method in legacy() {
        let mut accepted = 0;
        for seed in 0..200_u64 {
            let bytes: Vec<u8> = (0..200_u64).map(|i| (i * i + seed * 77) as u8).collect();
            match answer(method, &pool(), seed, &bytes) {
                Outcome::Waiting | Outcome::Refused(ProtocolError::Malformed("address")) => {}
                Outcome::Open { .. } => accepted += 1,
                other => panic!("{method}: {other:?}"),
            }
            let _ = new_opener(&key(method)).open_packet(&mut bytes.clone(), NOW);
        }
        assert!(accepted < 20, "{method}: {accepted}");
    }
}
