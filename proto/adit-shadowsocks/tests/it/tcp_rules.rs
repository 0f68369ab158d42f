//! Replays, reflections, clocks and wrong keys over TCP.

use std::sync::Arc;

use adit_shadowsocks::tcp::client_codecs;
use adit_shadowsocks::{Edition, Method, RestartPolicy, SaltPool};
use adit_wire::codec_laws::{open_all, seal_all};
use adit_wire::{Open, ProtocolError, Seal, UnixTime};

use crate::support::{
    ALL_AT_ONCE, NOW, Outcome, Seeded, key, keyed, new_client, new_server, pool, serve, target,
};

fn refusal(outcome: Outcome) -> ProtocolError {
    match outcome {
        Outcome::Refused(why) => why,
        other => panic!("not refused: {other:?}"),
    }
}

/// SEC-R1, SEC-R4: a complete replay, and one of only the authenticated front.
#[test]
fn a_replayed_request_is_refused() {
    for method in keyed() {
        let key = key(method);
        let salts = pool();
        let (mut seal, _) = new_client(&key, 1);
        let wire = seal_all(&mut seal, b"hello", 100).unwrap();
        let first = serve(new_server(&key, &salts, NOW, 2), &wire, ALL_AT_ONCE);
        assert!(matches!(first, Outcome::Open { .. }), "{method}");
        let again = serve(new_server(&key, &salts, NOW, 3), &wire, ALL_AT_ONCE);
        assert_eq!(refusal(again), ProtocolError::Replayed, "{method}");
        let front = method.key_len()
            + if method.edition() == Edition::Aead {
                18
            } else {
                27
            };
        let again = serve(
            new_server(&key, &salts, NOW, 4),
            &wire[..front],
            ALL_AT_ONCE,
        );
        assert_eq!(refusal(again), ProtocolError::Replayed, "{method}");
        let (mut other, _) = new_client(&key, 9);
        let wire = seal_all(&mut other, b"hello", 100).unwrap();
        let fresh = serve(new_server(&key, &salts, NOW, 5), &wire, ALL_AT_ONCE);
        assert!(matches!(fresh, Outcome::Open { .. }), "{method}");
    }
}

/// SEC-R1: bytes that fail must not spend a client's salt.
#[test]
fn a_forged_request_does_not_burn_the_salt() {
    for method in keyed() {
        let key = key(method);
        let salts = pool();
        let (mut seal, _) = new_client(&key, 1);
        let wire = seal_all(&mut seal, b"hello", 100).unwrap();
        let mut forged = wire.clone();
        forged[method.key_len()] ^= 1;
        let refused = serve(new_server(&key, &salts, NOW, 2), &forged, ALL_AT_ONCE);
        assert_eq!(refusal(refused), ProtocolError::Unauthentic);
        let real = serve(new_server(&key, &salts, NOW, 3), &wire, ALL_AT_ONCE);
        assert!(matches!(real, Outcome::Open { .. }), "{method}");
    }
}

/// SEC-R6: neither side accepts its own stream as the peer's.
#[test]
fn reflections_are_refused() {
    for method in keyed() {
        let key = key(method);
        let salts = pool();
        let (mut seal, mut open) = new_client(&key, 1);
        let up = seal_all(&mut seal, b"\x01\x7f\0\0\x01\0\x50 hello", 100).unwrap();
        let Outcome::Open { mut accepted, .. } =
            serve(new_server(&key, &salts, NOW, 2), &up, ALL_AT_ONCE)
        else {
            panic!("{method}");
        };
        // The server's plaintext begins with a valid address.
        let down = seal_all(&mut accepted.seal, b"\x01\x7f\0\0\x01\0\x50 hello", 100).unwrap();
        refusal(serve(new_server(&key, &salts, NOW, 3), &down, ALL_AT_ONCE));
        assert!(open_all(&mut open, &up, ALL_AT_ONCE).is_err(), "{method}");
    }
}

#[test]
fn both_sides_judge_the_clock() {
    let at = |base: UnixTime, skew: i64| UnixTime(base.0.saturating_add_signed(skew));
    for method in Method::ALL
        .into_iter()
        .filter(|m| m.edition() == Edition::Aead2022)
    {
        let key = key(method);
        for base in [NOW, UnixTime(100), UnixTime(u64::MAX - 100)] {
            for (skew, ok) in [
                (0, true),
                (30, true),
                (-30, true),
                (31, false),
                (-31, false),
            ] {
                let clock = Arc::new(base);
                let (mut seal, mut open) =
                    client_codecs(&key.clone().into(), &target(), clock, &mut Seeded(1)).unwrap();
                let up = seal_all(&mut seal, b"x", 9).unwrap();
                // The request's clock is `skew` ahead of the server's.
                let salts = Arc::new(SaltPool::new([1; 16], UnixTime(0), RestartPolicy::Lenient));
                let server = new_server(&key, &salts, at(base, -skew), 2);
                match serve(server, &up, ALL_AT_ONCE) {
                    Outcome::Open { mut accepted, .. } if ok => {
                        let down = seal_all(&mut accepted.seal, b"y", 9).unwrap();
                        assert!(open_all(&mut open, &down, ALL_AT_ONCE).is_ok());
                        assert_eq!(open.clock_skew(), Some(-skew));
                    }
                    Outcome::Refused(why) if !ok => assert_eq!(why, ProtocolError::Clock { skew }),
                    other => panic!("{method} {base:?} {skew}: {other:?}"),
                }
            }
        }
    }
}

/// A client can report the skew of a server whose clock is wrong.
#[test]
fn the_skew_is_known_even_when_it_is_too_much() {
    let key = key(Method::Blake3Aes256Gcm);
    let moving = Arc::new(Moving(std::sync::atomic::AtomicU64::new(NOW.0)));
    let (mut seal, mut open) = client_codecs(
        &key.clone().into(),
        &target(),
        moving.clone(),
        &mut Seeded(1),
    )
    .unwrap();
    let progress = open.progress();
    let up = seal_all(&mut seal, b"x", 9).unwrap();
    let Outcome::Open { mut accepted, .. } =
        serve(new_server(&key, &pool(), NOW, 2), &up, ALL_AT_ONCE)
    else {
        panic!("not accepted");
    };
    let down = seal_all(&mut accepted.seal, b"y", 9).unwrap();
    moving
        .0
        .store(NOW.0 + 40, std::sync::atomic::Ordering::Relaxed);
    let late = open_all(&mut open, &down, ALL_AT_ONCE);
    assert_eq!(late, Err(ProtocolError::Clock { skew: -40 }));
    assert_eq!(
        (progress.clock_skew(), progress.is_authenticated()),
        (Some(-40), true)
    );
}

struct Moving(std::sync::atomic::AtomicU64);

impl adit_wire::Clock for Moving {
    fn unix_time(&self) -> UnixTime {
        UnixTime(self.0.load(std::sync::atomic::Ordering::Relaxed))
    }
}

#[test]
fn another_key_or_method_is_unauthentic() {
    for method in keyed() {
        let (mut seal, _) = new_client(&key(method), 1);
        let wire = seal_all(&mut seal, &[0; 200], 300).unwrap();
        let (other, _) = adit_shadowsocks::Key::generate(method, &mut Seeded(77));
        let refused = serve(new_server(&other, &pool(), NOW, 2), &wire, ALL_AT_ONCE);
        assert_eq!(refusal(refused), ProtocolError::Unauthentic, "{method}");
        for server in keyed().filter(|m| *m != method) {
            let refused = serve(
                new_server(&key(server), &pool(), NOW, 2),
                &wire,
                ALL_AT_ONCE,
            );
            assert_eq!(
                refusal(refused),
                ProtocolError::Unauthentic,
                "{method} to {server}"
            );
        }
    }
}

/// The AEAD edition's address may arrive in chunks of one byte.
#[test]
fn an_address_in_pieces() {
    for method in Method::ALL
        .into_iter()
        .filter(|m| m.edition() == Edition::Aead)
    {
        let key = key(method);
        let (mut seal, mut open) = new_client(&key, 1);
        let up = seal_all(&mut seal, b"first", 100).unwrap();
        // A server's stream has the same format, so it can imitate a client that splits its
        // address.
        let server = new_server(&key, &pool(), NOW, 2);
        let Outcome::Open { mut accepted, .. } = serve(server, &up, ALL_AT_ONCE) else {
            panic!("{method}");
        };
        let mut plain = Vec::new();
        adit_wire::encode_addr(&target(), &mut plain);
        plain.extend_from_slice(b"rest");
        let chopped = seal_all(&mut accepted.seal, &plain, 1).unwrap();
        assert_eq!(open_all(&mut open, &chopped, &[5]), Ok((plain, 0)));
        match serve(new_server(&key, &pool(), NOW, 3), &chopped, &[7]) {
            Outcome::Open {
                accepted, plain, ..
            } => {
                assert_eq!((accepted.target, &plain[..]), (target(), &b"rest"[..]));
            }
            other => panic!("{method}: {other:?}"),
        }
    }
}

/// Errors are final, as is success.
#[test]
fn a_handshake_is_over_after_its_end() {
    use adit_wire::{Handshake, HandshakeInput, HandshakeOutput, HandshakeProgress};
    let key = key(Method::Blake3Aes128Gcm);
    let (mut seal, _) = new_client(&key, 1);
    let good = seal_all(&mut seal, b"hello", 100).unwrap();
    for flip in [None, Some(20)] {
        let mut server = new_server(&key, &pool(), NOW, 2);
        let mut wire = good.clone();
        if let Some(at) = flip {
            wire[at] ^= 1;
        }
        let mut none = Vec::new();
        let step = server.step(
            &mut HandshakeInput::new(&mut wire.clone()),
            &mut HandshakeOutput::new(&mut none),
        );
        assert_eq!(
            matches!(step, Ok(HandshakeProgress::Done(_))),
            flip.is_none()
        );
        let again = server.step(
            &mut HandshakeInput::new(&mut good.clone()),
            &mut HandshakeOutput::new(&mut none),
        );
        assert!(again.is_err());
    }
}

#[test]
fn method_none_waits_for_nothing() {
    let key = key(Method::None);
    let (seal, open) = new_client(&key, 1);
    assert!(seal.must_send_head() && open.is_at_boundary(0) && !open.is_at_boundary(1));
    let server = new_server(&key, &pool(), NOW, 2);
    assert!(matches!(
        serve(server, b"\x05\x01\x00", ALL_AT_ONCE),
        Outcome::Refused(ProtocolError::Malformed("address"))
    ));
}
