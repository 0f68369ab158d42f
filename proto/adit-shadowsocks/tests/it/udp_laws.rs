//! Bit flips, cuts, headroom and garbage over UDP.

use adit_shadowsocks::udp::{ClientSession, HEADROOM, PADDING_MAX, ServerOpener, TAILROOM};
use adit_shadowsocks::{Edition, Method};
use adit_wire::{ProtocolError, Target};
use proptest::prelude::*;

use crate::support::{NOW, Seeded, authentic, key, keyed, new_opener, new_session, some, target};

/// Returns a payload in a buffer with exactly the required room.
fn buffer(payload: &[u8]) -> (Vec<u8>, core::ops::Range<usize>) {
    let buf = [&[0xaa; HEADROOM][..], payload, &[0xaa; TAILROOM]].concat();
    (buf, HEADROOM..HEADROOM + payload.len())
}

/// Returns a request and its answer, with both ends.
fn exchange(
    method: Method,
    to: &Target,
    payload: &[u8],
) -> (Vec<u8>, Vec<u8>, ClientSession, ServerOpener) {
    let key = key(method);
    let mut rng = Seeded(1);
    let mut client = new_session(&key, &mut rng);
    let mut server = new_opener(&key);
    let (mut buf, at) = buffer(payload);
    let range = client.seal(&mut buf, at, to, NOW, &mut rng).unwrap();
    let request = buf[range].to_vec();
    let mut wire = request.clone();
    let incoming = server.open_packet(&mut wire, NOW).unwrap();
    assert_eq!((&incoming.target, &wire[incoming.payload]), (to, payload));
    let mut sealer = server.create_sealer(incoming.session, &mut rng).unwrap();
    let (mut buf, at) = buffer(payload);
    let range = sealer.seal(&mut buf, at, to, NOW, &mut rng).unwrap();
    (request, buf[range].to_vec(), client, server)
}

#[test]
fn the_room_is_enough_and_too_little_is_an_error() {
    let longest = format!("{}:53", "n".repeat(255)).parse().unwrap();
    for method in Method::ALL {
        for to in [&longest, &"[2001:db8::1]:53".parse().unwrap(), &target()] {
            for payload in [&b""[..], b"x", &[7; 1400]] {
                let (_, mut answer, mut client, _) = exchange(method, to, payload);
                let (from, at) = client.open(&mut answer, NOW).unwrap();
                assert_eq!((&from, &answer[at]), (to, payload), "{method}");
            }
        }
        let key = key(method);
        let mut client = new_session(&key, &mut Seeded(1));
        let mut seal = |buf: &mut [u8], at| client.seal(buf, at, &longest, NOW, &mut Seeded(2));
        assert!(
            seal(&mut [0; 2000], 258..300).is_err(),
            "{method}: no room in front"
        );
        if authentic(method) {
            assert!(
                seal(&mut [0; 2000], 1900..1985).is_err(),
                "{method}: no room behind"
            );
        }
        assert!(seal(&mut [0; 2000], 1900..2001).is_err());
        #[allow(clippy::reversed_empty_ranges)]
        let reversed = seal(&mut [0; 2000], 1900..1899);
        assert!(reversed.is_err());
    }
}

#[test]
fn every_flipped_bit_is_refused_and_changes_nothing() {
    for method in keyed() {
        let (request, answer, mut client, _) = exchange(method, &target(), b"data");
        let mut server = new_opener(&key(method));
        for bit in 0..request.len() * 8 {
            let mut bad = request.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(
                server.open_packet(&mut bad, NOW).is_err(),
                "{method} bit {bit}"
            );
        }
        assert_eq!(
            server.session_count(),
            0,
            "{method}: forged packets cost no memory"
        );
        assert!(
            server.open_packet(&mut request.clone(), NOW).is_ok(),
            "{method}"
        );
        for bit in 0..answer.len() * 8 {
            let mut bad = answer.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(client.open(&mut bad, NOW).is_err(), "{method} bit {bit}");
        }
        assert!(client.open(&mut answer.clone(), NOW).is_ok(), "{method}");
    }
}

/// SEC-X4: empty and one-byte datagrams are ordinary input.
#[test]
fn every_cut_is_refused() {
    for method in Method::ALL {
        let (request, answer, mut client, _) = exchange(method, &target(), b"");
        let mut server = new_opener(&key(method));
        for cut in 0..request.len() {
            assert!(
                server
                    .open_packet(&mut request[..cut].to_vec(), NOW)
                    .is_err(),
                "{method} {cut}"
            );
        }
        for cut in 0..answer.len() {
            assert!(
                client.open(&mut answer[..cut].to_vec(), NOW).is_err(),
                "{method} {cut}"
            );
        }
    }
}

#[test]
fn only_dns_is_padded_and_only_within_the_room() {
    let key = key(Method::Blake3Aes128Gcm);
    let mut client = new_session(&key, &mut Seeded(1));
    let mut len = |port: u16, front: usize| {
        let to = Target::new(target().host, port);
        let mut buf = vec![0; front + 40 + TAILROOM];
        let at = front..front + 40;
        let range = client.seal(&mut buf, at, &to, NOW, &mut Seeded(3)).unwrap();
        range.len() - (16 + 11 + to.addr_len() + 40 + 16)
    };
    assert_eq!(len(443, HEADROOM + PADDING_MAX), 0);
    let padding = len(53, HEADROOM + PADDING_MAX);
    assert!((1..=PADDING_MAX - 40).contains(&padding));
    assert_eq!(len(53, 16 + 11 + target().addr_len()), 0);
    assert_eq!(len(53, 16 + 11 + target().addr_len() + 1), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn packets_round_trip(
        method in prop::sample::select(some()), name in "[a-z0-9]{1,60}", port in any::<u16>(),
        payload in proptest::collection::vec(any::<u8>(), 0..1500),
    ) {
        // A name that spells an IP address would be parsed as an address.
        let to: Target = format!("{name}.example:{port}").parse().unwrap();
        let (_, mut answer, mut client, server) = exchange(method, &to, &payload);
        let (from, at) = client.open(&mut answer, NOW).unwrap();
        prop_assert_eq!(&from, &to);
        prop_assert!(answer[at] == payload[..]);
        let kept = usize::from(method.edition() == Edition::Aead2022);
        prop_assert_eq!(server.session_count(), kept);
    }

    #[test]
    fn garbage_is_refused(
        method in prop::sample::select(some()),
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let key = key(method);
        let server = new_opener(&key).open_packet(&mut bytes.clone(), NOW);
        let client = new_session(&key, &mut Seeded(1)).open(&mut bytes.clone(), NOW);
        if authentic(method) {
            prop_assert!(server.is_err() && client.is_err());
            prop_assert!(!matches!(server, Err(ProtocolError::Replayed)));
        }
    }
}
