//! Splits, bit flips, cuts and garbage over TCP.

use adit_shadowsocks::tcp::HEADER_MAX;
use adit_shadowsocks::{Edition, Method};
use adit_wire::codec_laws::{open_all, seal_all};
use adit_wire::{
    FixedEntropy, Handshake, HandshakeInput, HandshakeOutput, HandshakeProgress, Open, Seal,
};
use proptest::prelude::*;

use crate::support::{
    ALL_AT_ONCE, NOW, Outcome, Seeded, authentic, key, keyed, new_client, new_server, pool, serve,
    some, target,
};

const MESSAGE: &[u8] = b"a first payload, then another";

/// Returns a request of two records and its response.
fn exchange(method: Method) -> (Vec<u8>, Vec<u8>) {
    let key = key(method);
    let (mut seal, _) = new_client(&key, 1);
    let request = seal_all(&mut seal, MESSAGE, 15).unwrap();
    let server = new_server(&key, &pool(), NOW, 2);
    let Outcome::Open {
        mut accepted,
        plain,
        ..
    } = serve(server, &request, ALL_AT_ONCE)
    else {
        panic!("{method}: not accepted");
    };
    assert_eq!(plain, MESSAGE);
    let response = seal_all(&mut accepted.seal, MESSAGE, 15).unwrap();
    (request, response)
}

fn splits(len: usize) -> impl Iterator<Item = Vec<usize>> {
    let two = (1..len).map(move |at| vec![at, len - at]);
    two.chain([vec![1], vec![2, 3], vec![17]])
}

#[test]
fn every_split_gives_the_same() {
    for method in Method::ALL {
        let (request, response) = exchange(method);
        for pieces in splits(request.len()) {
            let server = new_server(&key(method), &pool(), NOW, 2);
            match serve(server, &request, &pieces) {
                Outcome::Open {
                    accepted,
                    plain,
                    unread: 0,
                    clean: true,
                } => {
                    assert_eq!((accepted.target, &plain[..]), (target(), MESSAGE));
                }
                other => panic!("{method} {pieces:?}: {other:?}"),
            }
        }
        for pieces in splits(response.len()) {
            let (_, mut open) = new_client(&key(method), 1);
            let opened = open_all(&mut open, &response, &pieces);
            assert_eq!(opened, Ok((MESSAGE.to_vec(), 0)), "{method} {pieces:?}");
            assert!(open.is_authenticated() && open.is_at_boundary(0));
            assert_eq!(
                open.clock_skew().is_some(),
                method.edition() == Edition::Aead2022
            );
        }
    }
}

#[test]
fn every_flipped_bit_is_noticed() {
    for method in keyed() {
        let (request, response) = exchange(method);
        for bit in 0..request.len() * 8 {
            let mut bad = request.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            match serve(new_server(&key(method), &pool(), NOW, 2), &bad, ALL_AT_ONCE) {
                Outcome::Refused(_) => {}
                Outcome::Late(to) => assert_eq!(to, target()),
                other => panic!("{method} bit {bit}: {other:?}"),
            }
        }
        for bit in 0..response.len() * 8 {
            let mut bad = response.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let (_, mut open) = new_client(&key(method), 1);
            assert!(
                open_all(&mut open, &bad, ALL_AT_ONCE).is_err(),
                "{method} bit {bit}"
            );
        }
    }
}

#[test]
fn every_cut_waits_and_is_no_clean_end_inside_a_record() {
    for method in Method::ALL {
        let key = key(method);
        let (request, response) = exchange(method);
        let mut clean_ends = Vec::new();
        for cut in 0..request.len() {
            let server = new_server(&key, &pool(), NOW, 2);
            match serve(server, &request[..cut], ALL_AT_ONCE) {
                Outcome::Waiting => {}
                Outcome::Open {
                    accepted,
                    plain,
                    clean,
                    ..
                } => {
                    assert_eq!(accepted.target, target());
                    assert!(MESSAGE.starts_with(&plain) && plain.len() < MESSAGE.len());
                    if clean {
                        clean_ends.push(plain.len());
                    }
                }
                other => panic!("{method} cut {cut}: {other:?}"),
            }
        }
        if authentic(method) {
            assert_eq!(clean_ends, [15], "{method}: only between records");
        }
        for cut in 0..response.len() {
            let (_, mut open) = new_client(&key, 1);
            let (plain, unread) = open_all(&mut open, &response[..cut], ALL_AT_ONCE).unwrap();
            assert!(MESSAGE.starts_with(&plain) && plain.len() < MESSAGE.len());
            if authentic(method) {
                let silent = cut == 0;
                let clean = unread == 0 && (silent || plain.len() == 15);
                assert_eq!(open.is_at_boundary(unread), clean);
            }
        }
    }
}

/// The number of bytes waited for is bounded, even for the longest request.
#[test]
fn header_max_bounds_every_wait() {
    for method in Method::ALL {
        let key = key(method);
        let (mut seal, _) = new_client(&key, 1);
        let wire = seal_all(&mut seal, &vec![7; 70_000], usize::MAX).unwrap();
        let mut server = new_server(&key, &pool(), NOW, 2);
        let (mut held, mut fed) = (Vec::new(), 0);
        loop {
            let mut rx = HandshakeInput::new(&mut held);
            let step = server
                .step(&mut rx, &mut HandshakeOutput::new(&mut Vec::new()))
                .unwrap();
            let eaten = rx.consumed();
            held.drain(..eaten);
            let HandshakeProgress::NeedMore { total } = step else {
                break;
            };
            assert!(
                total <= HEADER_MAX && total > held.len(),
                "{method} {total}"
            );
            let more = total - held.len();
            held.extend_from_slice(&wire[fed..fed + more]);
            fed += more;
        }
    }
}

#[test]
fn sealing_obeys_its_room() {
    for method in some() {
        let (mut seal, _) = new_client(&key(method), 1);
        for _ in 0..2 {
            let room = seal.overhead();
            let mut record = vec![1; room.head + room.max_payload + 1 + room.tail];
            let too_long = room.head..room.head + room.max_payload + 1;
            assert!(seal.seal(&mut record, too_long).is_err());
            if room.head > 0 {
                assert!(seal.seal(&mut record, room.head - 1..room.head).is_err());
            }
            if room.tail > 0 {
                let end = record.len();
                assert!(
                    seal.seal(&mut record, end - room.tail..end - room.tail + 1)
                        .is_err()
                );
            }
            let range = seal
                .seal(&mut record, room.head..room.head + room.max_payload)
                .unwrap();
            assert!(range.start <= room.head && range.end >= room.head + room.max_payload);
            assert!(range.end <= record.len());
        }
        assert!(!seal.must_send_head());
        let empty = seal.seal(&mut [0; 40], 18..18).unwrap();
        assert!(empty.is_empty(), "an empty chunk is never sent");
    }
}

fn methods() -> impl Strategy<Value = Method> {
    prop::sample::select(some())
}

fn pieces() -> impl Strategy<Value = Vec<usize>> {
    proptest::collection::vec(1usize..3000, 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn both_directions_round_trip(
        method in methods(), seed in any::<u64>(), piece in 1usize..80_000, pieces in pieces(),
        up in proptest::collection::vec(any::<u8>(), 0..9_000),
        down in proptest::collection::vec(any::<u8>(), 0..9_000),
    ) {
        let key = key(method);
        let (mut seal, mut open) = new_client(&key, seed);
        prop_assert!(seal.must_send_head());
        let wire = seal_all(&mut seal, &up, piece).unwrap();
        prop_assert!(!seal.must_send_head());
        let server = new_server(&key, &pool(), NOW, !seed);
        match serve(server, &wire, &pieces) {
            Outcome::Open { mut accepted, plain, unread: 0, clean: true } => {
                prop_assert!(plain == up);
                prop_assert_eq!(&accepted.target, &target());
                let wire = seal_all(&mut accepted.seal, &down, piece).unwrap();
                let (plain, unread) = open_all(&mut open, &wire, &pieces).unwrap();
                prop_assert!(plain == down && unread == 0);
            }
            other => prop_assert!(false, "{:?}", other),
        }
    }

    #[test]
    fn garbage_is_refused_or_waits(
        method in methods(), bytes in proptest::collection::vec(any::<u8>(), 0..400), pieces in pieces(),
    ) {
        let key = key(method);
        let outcome = serve(new_server(&key, &pool(), NOW, 2), &bytes, &pieces);
        let (_, mut open) = new_client(&key, 1);
        let opened = open_all(&mut open, &bytes, &pieces);
        if authentic(method) {
            prop_assert!(matches!(outcome, Outcome::Refused(_) | Outcome::Waiting));
            prop_assert!(opened.is_err() || opened == Ok((Vec::new(), bytes.len())));
            prop_assert!(!open.is_authenticated());
        }
    }

    /// SEC-P6, with a random generator that returns only zeros and one that returns only ones.
    #[test]
    fn padding_at_its_ends(ones in any::<bool>()) {
        let key = key(Method::Blake3Aes128Gcm);
        let mut entropy = FixedEntropy::new(vec![if ones { 0xff } else { 0 }; 24]);
        let clock = std::sync::Arc::new(NOW);
        let (mut seal, _) =
            adit_shadowsocks::tcp::client_codecs(&key.into(), &target(), clock, &mut entropy).unwrap();
        let wire = seal_all(&mut seal, b"", 1).unwrap();
        let expected = if ones { 1 + (u64::MAX % 900) as usize } else { 1 };
        prop_assert_eq!(wire.len(), 16 + 27 + target().addr_len() + 2 + expected + 16);
    }

    /// SEC-P6: an empty request has 1 to 900 bytes of padding; a short request has at most 900
    /// bytes in total.
    #[test]
    fn requests_are_padded(seed in any::<u64>(), payload in 0usize..1000) {
        let key = key(Method::Blake3Aes128Gcm);
        let mut entropy = Seeded(seed);
        let clock = std::sync::Arc::new(NOW);
        let (mut seal, _) =
            adit_shadowsocks::tcp::client_codecs(&key.into(), &target(), clock, &mut entropy).unwrap();
        let wire = seal_all(&mut seal, &vec![1; payload], usize::MAX).unwrap();
        let bare = 16 + 27 + target().addr_len() + 2 + payload + 16;
        let padding = wire.len() - bare;
        prop_assert!(padding <= 900usize.saturating_sub(payload));
        prop_assert!(payload > 0 || padding >= 1);
    }
}
