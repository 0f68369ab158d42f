//! A relay's vectors and refusals.

use adit_wire::codec_laws::run_handshake;
use adit_wire::{Handshake, HandshakeInput, HandshakeOutput, HandshakeProgress};
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::golden::{hex, key, method, vectors};

const ALL_AT_ONCE: &[usize] = &[usize::MAX];

fn table(case: &Value, next: &Value) -> Arc<RelayTable> {
    let next = [key(case, &case["final_upsk"]), key(case, next)];
    let distinct = next[0].id() != next[1].id();
    let from = usize::from(!distinct);
    RelayTable::new(&key(case, &case["relay_ipsk"]), next.into_iter().skip(from)).unwrap()
}

fn relay(
    table: &Arc<RelayTable>,
    stream: &[u8],
    pieces: &[usize],
) -> Result<Vec<u8>, ProtocolError> {
    match run_handshake(&mut TcpRelay::new(table), stream, pieces) {
        Ok((HandshakeProgress::Done(relayed), sent, rest)) => {
            assert!(sent.is_empty());
            assert_eq!(relayed.next, table.len() - 1);
            Ok([relayed.head, rest].concat())
        }
        Ok((HandshakeProgress::NeedMore { .. }, _, rest)) => {
            assert_eq!(rest, stream, "waiting consumes nothing");
            Err(ProtocolError::Truncated("the test"))
        }
        Err((why, sent)) => {
            assert!(sent.is_empty());
            Err(why)
        }
    }
}

#[test]
fn sip023_streams() {
    for case in vectors("relay") {
        let table = table(&case, &case["next_psk"]);
        let (stream, out) = (hex(&case["tcp"]["in"]), hex(&case["tcp"]["out"]));
        // The number of bytes that a server with identity headers waits for.
        let total = method(&case).key_len() + 16 + 27;
        for pieces in [&[1][..], &[7, 30], &[total - 1, 1], ALL_AT_ONCE] {
            assert_eq!(relay(&table, &stream, pieces), Ok(out.clone()));
        }
        for cut in 0..total {
            let waits = relay(&table, &stream[..cut], ALL_AT_ONCE);
            assert_eq!(waits, Err(ProtocolError::Truncated("the test")));
        }
        // Salt and header decide; bytes after them are not inspected.
        for bit in 0..total * 8 {
            let mut bad = stream.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let relayed = relay(&table, &bad, ALL_AT_ONCE);
            if bit / 8 < method(&case).key_len() + 16 {
                assert_eq!(relayed, Err(ProtocolError::Unauthentic), "{bit}");
            } else {
                assert!(relayed.is_ok());
            }
        }
    }
}

#[test]
fn sip023_packets() {
    for case in vectors("relay") {
        let last = &case["last_hop_to_single_user_server"];
        for (hop, udp) in [(&case, &case["udp"]), (last, &last["udp"])] {
            let table = table(&case, &hop["next_psk"]);
            let (wire, out) = (hex(&udp["in"]), hex(&udp["out"]));
            let mut bytes = wire.clone();
            let to = relay_packet(&table, &mut bytes).unwrap();
            assert_eq!(to.next, table.len() - 1);
            assert_eq!(bytes[to.packet], out);
            for cut in 0..43 + 16 {
                let mut short = wire[..cut.min(wire.len())].to_vec();
                let refused = relay_packet(&table, &mut short);
                assert_eq!(refused, Err(ProtocolError::Truncated("a packet")), "{cut}");
            }
            for bit in 0..32 * 8 {
                let mut bad = wire.clone();
                bad[bit / 8] ^= 1 << (bit % 8);
                let before = bad.clone();
                assert_eq!(
                    relay_packet(&table, &mut bad),
                    Err(ProtocolError::Unauthentic),
                    "{bit}"
                );
                assert_eq!(bad, before);
            }
        }
    }
}

/// All packets of a client's session have the same session id.
#[test]
fn a_session_keeps_its_number() {
    use crate::udp::{ClientSession, HEADROOM, TAILROOM};
    let case = &vectors("relay")[0];
    let table = table(case, &case["final_upsk"]);
    let identity = key(case, &case["relay_ipsk"]);
    let chain = crate::KeyChain::new(vec![identity], key(case, &case["final_upsk"])).unwrap();
    let mut numbers = Vec::new();
    for id in [5u64, 6] {
        let mut entropy = adit_wire::FixedEntropy::new(id.to_be_bytes());
        let mut client = ClientSession::new(&chain, &mut entropy);
        for _ in 0..3 {
            let mut buf = [0; HEADROOM + TAILROOM];
            let to = "192.0.2.1:53".parse().unwrap();
            let now = adit_wire::UnixTime(9);
            let range = client.seal(&mut buf, HEADROOM..HEADROOM, &to, now, &mut entropy);
            numbers.push(
                relay_packet(&table, &mut buf[range.unwrap()])
                    .unwrap()
                    .session,
            );
        }
    }
    assert_eq!(numbers, [5, 5, 5, 6, 6, 6]);
}

#[test]
fn a_handshake_is_over_after_its_end() {
    let case = &vectors("relay")[0];
    let table = table(case, &case["next_psk"]);
    let good = hex(&case["tcp"]["in"]);
    for flip in [0, 1] {
        let mut wire = good.clone();
        wire[20] ^= flip;
        let mut handshake = TcpRelay::new(&table);
        let mut step = |wire: &mut [u8]| {
            handshake.step(
                &mut HandshakeInput::new(wire),
                &mut HandshakeOutput::new(&mut Vec::new()),
            )
        };
        assert_eq!(step(&mut wire).is_ok(), flip == 0);
        assert!(step(&mut good.clone()).is_err());
    }
}

#[test]
fn what_is_no_table() {
    let case = &vectors("relay")[0];
    let (own, next) = (key(case, &case["relay_ipsk"]), key(case, &case["next_psk"]));
    let table = |own: &Key, next: &[&Key]| {
        let next = next.iter().map(|key| (*key).clone());
        RelayTable::new(own, next).map(|table| table.len())
    };
    assert_eq!(table(&own, &[&next]), Ok(1));
    assert_eq!(table(&own, &[&next, &own]), Err(RelayError::OwnKey(1)));
    let (first, second) = (0, 1);
    assert_eq!(
        table(&own, &[&next, &next]),
        Err(RelayError::SameKey { first, second })
    );
    for found in Method::ALL {
        let (other, _) = Key::generate(found, &mut adit_wire::FixedEntropy::default());
        let expected = own.method();
        if found != expected {
            let next = 0;
            let refused = RelayError::OtherMethod {
                next,
                expected,
                found,
            };
            assert_eq!(table(&own, &[&other]), Err(refused));
        }
        if !found.has_identities() {
            assert_eq!(table(&other, &[]), Err(RelayError::Method(found)));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn garbage_is_for_nobody(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        pieces in proptest::collection::vec(1usize..90, 1..4),
    ) {
        for case in vectors("relay") {
            let table = table(&case, &case["next_psk"]);
            prop_assert!(relay(&table, &bytes, &pieces).is_err());
            prop_assert!(relay_packet(&table, &mut bytes.clone()).is_err());
        }
    }
}
