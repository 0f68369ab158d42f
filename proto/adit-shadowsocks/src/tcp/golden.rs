//! Every TCP vector, byte for byte, in both directions and both roles.

use std::sync::Arc;

use adit_crypto::sha256;
use adit_wire::codec_laws::{open_all, run_handshake};
use adit_wire::{FixedEntropy, HandshakeProgress, Open, ProtocolError, Seal, Target, UnixTime};
use serde_json::Value;

use super::{AcceptedRequest, ClientSeal, ServerHandshake, client_codecs};
use crate::golden::{
    chain, hex, key_of_psk, number, pattern, relays, target, text, users, vectors,
};
use crate::relay::TcpRelay;
use crate::{KeyChain, RestartPolicy, SaltPool, Users};

const ALL_AT_ONCE: &[usize] = &[usize::MAX];

fn pool() -> Arc<SaltPool> {
    Arc::new(SaltPool::new([3; 16], UnixTime(0), RestartPolicy::Strict))
}

/// Seals one record; `how` is the codec's `seal` or a variant with the vector's padding.
fn record(
    seal: &mut ClientSeal,
    payload: &[u8],
    how: impl FnOnce(
        &mut ClientSeal,
        &mut [u8],
        core::ops::Range<usize>,
    ) -> Result<core::ops::Range<usize>, ProtocolError>,
) -> Vec<u8> {
    let room = seal.overhead();
    let mut buf = vec![0xee; room.head];
    buf.extend_from_slice(payload);
    buf.resize(buf.len() + room.tail, 0xee);
    let range = how(seal, &mut buf, room.head..room.head + payload.len()).unwrap();
    buf[range].to_vec()
}

fn records(seal: &mut dyn Seal, payloads: &[Vec<u8>]) -> Vec<u8> {
    let seal_one = |p: &Vec<u8>| {
        let room = seal.overhead();
        let mut buf = [&vec![0xee; room.head][..], p, &vec![0xee; room.tail]].concat();
        let range = seal.seal(&mut buf, room.head..room.head + p.len()).unwrap();
        buf[range].to_vec()
    };
    payloads.iter().flat_map(seal_one).collect()
}

fn chunks(value: &Value) -> Vec<Vec<u8>> {
    value.as_array().unwrap().iter().map(hex).collect()
}

fn accept(
    users: &Arc<Users>,
    now: UnixTime,
    salts: &Arc<SaltPool>,
    salt: &[u8],
    stream: &[u8],
) -> Result<(HandshakeProgress<AcceptedRequest>, Vec<u8>), ProtocolError> {
    let mut entropy = FixedEntropy::new(salt);
    let mut server = ServerHandshake::new(users, Arc::new(now), salts.clone(), &mut entropy);
    match run_handshake(&mut server, stream, ALL_AT_ONCE) {
        Ok((step, sent, rest)) => {
            assert!(
                sent.is_empty(),
                "a server sends nothing before its first answer"
            );
            Ok((step, rest))
        }
        Err((why, sent)) => {
            assert!(sent.is_empty(), "a server sends nothing when it refuses");
            Err(why)
        }
    }
}

fn accepted(
    users: &Arc<Users>,
    now: UnixTime,
    salt: &[u8],
    stream: &[u8],
    expected: &Target,
) -> (AcceptedRequest, Vec<u8>) {
    match accept(users, now, &pool(), salt, stream) {
        Ok((HandshakeProgress::Done(mut accepted), rest)) => {
            assert_eq!(&accepted.target, expected);
            let (more, unread) = open_all(&mut accepted.open, &rest, ALL_AT_ONCE).unwrap();
            assert_eq!(unread, 0);
            assert!(accepted.open.is_at_boundary(0));
            let plain = [&accepted.first[..], &more].concat();
            (accepted, plain)
        }
        other => panic!("not accepted: {other:?}"),
    }
}

/// SIP022, and SIP023 with relays on the path.
#[test]
fn sip022_streams() {
    let mut identified = 0;
    for case in vectors("tcp2022") {
        let name = text(&case["name"]);
        let (request, response) = (&case["request"], &case["response"]);
        let (keys, users) = (chain(&case), users(&case));
        let to = target(&case["target"]);
        let stamp = UnixTime(number(&request["timestamp"]));
        let salt = hex(&request["salt"]);
        let mut entropy = FixedEntropy::new(salt.clone());
        let (mut seal, mut open) =
            client_codecs(&keys, &to, Arc::new(stamp), &mut entropy).unwrap();
        let (padding, first) = (hex(&request["padding"]), hex(&request["initial_payload"]));
        let mut wire = if padding.is_empty() {
            records(&mut seal, std::slice::from_ref(&first))
        } else {
            record(&mut seal, &first, |s, buf, at| {
                s.seal_padded(&padding, buf, at)
            })
        };
        wire.extend(records(&mut seal, &chunks(&request["chunks"])));
        let stream = hex(&request["stream"]);
        assert_eq!(wire, stream, "{name}");

        let answered = UnixTime(number(&response["timestamp"]));
        let own = hex(&response["salt"]);
        let at_server = relays(&case).iter().fold(stream, |stream, table| {
            let mut relay = TcpRelay::new(table);
            match run_handshake(&mut relay, &stream, ALL_AT_ONCE) {
                Ok((HandshakeProgress::Done(relayed), sent, rest)) => {
                    assert_eq!((relayed.next, sent.len()), (1, 0), "{name}");
                    [relayed.head, rest].concat()
                }
                other => panic!("{name}: not relayed: {other:?}"),
            }
        });
        let (mut accepted, plain) = accepted(&users, answered, &own, &at_server, &to);
        let user = accepted.user.as_ref().map(|user| user.name());
        assert_eq!(user, (users.len() == 2).then_some("bob"), "{name}");
        let sent = [first, chunks(&request["chunks"]).concat()].concat();
        assert_eq!(plain, sent, "{name}");

        let mut answers = vec![hex(&response["first_payload"])];
        answers.extend(chunks(&response["chunks"]));
        let wire = records(&mut accepted.seal, &answers);
        let stream = hex(&response["stream"]);
        assert_eq!(wire, stream, "{name}");
        assert!(!open.is_authenticated() && open.clock_skew().is_none());
        assert!(open.is_at_boundary(0) && !open.is_at_boundary(1));
        let (plain, unread) = open_all(&mut open, &stream, ALL_AT_ONCE).unwrap();
        assert_eq!((plain, unread), (answers.concat(), 0), "{name}");
        assert!(open.is_authenticated() && open.is_at_boundary(0));
        assert_eq!(open.clock_skew(), Some(answered.skew_from(stamp)));
        identified += usize::from(accepted.user.is_some());
    }
    assert_eq!(identified, 12);
}

#[test]
fn sip022_longest_chunks() {
    for case in vectors("tcp2022_big") {
        let key = key_of_psk(&case);
        let (keys, users) = (KeyChain::from(key.clone()), Users::with_single_key(key));
        let to = target(&case["target"]);
        let now = UnixTime(number(&case["now"]));
        let mut entropy = FixedEntropy::new(hex(&case["salt"]));
        let (mut seal, _) = client_codecs(&keys, &to, Arc::new(now), &mut entropy).unwrap();
        let first = pattern(65_535 - to.addr_len() - 2, 0);
        let payloads = [first, pattern(65_535, 1), pattern(65_535, 2)];
        let wire = records(&mut seal, &payloads);
        check_digest(&case, &wire);
        let (_, plain) = accepted(&users, now, &[9; 32], &wire, &to);
        assert!(plain == payloads.concat());
    }
}

fn check_digest(case: &Value, wire: &[u8]) {
    assert_eq!(wire.len() as u64, number(&case["stream_len"]));
    assert_eq!(sha256(wire).to_vec(), hex(&case["stream_sha256"]));
}

#[test]
fn sip004_streams() {
    let now = UnixTime(1_700_000_000);
    for case in vectors("aead") {
        let (keys, users) = (chain(&case), users(&case));
        let (request, response) = (&case["tcp"]["request"], &case["tcp"]["response"]);
        let to = target(&case["tcp"]["target"]);
        let mut entropy = FixedEntropy::new(hex(&request["salt"]));
        let (mut seal, mut open) = client_codecs(&keys, &to, Arc::new(now), &mut entropy).unwrap();
        if case["note"].is_string() {
            let first = pattern(16_383 - to.addr_len(), 0);
            let payloads = [first, pattern(16_383, 1), pattern(16_383, 2)];
            let wire = records(&mut seal, &payloads);
            check_digest(request, &wire);
            let (_, plain) = accepted(&users, now, &[9; 32], &wire, &to);
            assert!(plain == payloads.concat());
            continue;
        }
        let mut payloads = chunks(&request["chunks"]);
        payloads[0].drain(..to.addr_len());
        let stream = hex(&request["stream"]);
        assert_eq!(records(&mut seal, &payloads), stream);
        let own = hex(&response["salt"]);
        let (mut accepted, plain) = accepted(&users, now, &own, &stream, &to);
        assert_eq!(plain, payloads.concat());

        let answers = chunks(&response["chunks"]);
        let stream = hex(&response["stream"]);
        assert_eq!(records(&mut accepted.seal, &answers), stream);
        let (plain, unread) = open_all(&mut open, &stream, ALL_AT_ONCE).unwrap();
        assert_eq!((plain, unread), (answers.concat(), 0));
        assert!(open.is_authenticated() && open.clock_skew().is_none());
    }
}

#[test]
fn method_none_and_stream_ciphers() {
    let now = UnixTime(0);
    for case in vectors("none").into_iter().chain(vectors("stream")) {
        let name = text(&case["method"]);
        let (keys, users) = (chain(&case), users(&case));
        let to = target(&case["tcp"]["target"]);
        let (request, response) = (&case["tcp"]["request"], &case["tcp"]["response"]);
        let pieces = |payload: &[u8]| payload.chunks(13).map(<[u8]>::to_vec).collect::<Vec<_>>();
        let mut entropy = FixedEntropy::new(hex(&request["iv"]));
        let (mut seal, mut open) = client_codecs(&keys, &to, Arc::new(now), &mut entropy).unwrap();
        let payload = hex(&request["payload"]);
        let stream = hex(&request["stream"]);
        assert_eq!(records(&mut seal, &pieces(&payload)), stream, "{name}");
        let own = hex(&response["iv"]);
        let (mut accepted, plain) = accepted(&users, now, &own, &stream, &to);
        assert_eq!(plain, payload, "{name}");
        let answer = hex(&response["payload"]);
        let wire = records(&mut accepted.seal, &pieces(&answer));
        assert_eq!(wire, hex(&response["stream"]), "{name}");
        assert_eq!(open_all(&mut open, &wire, ALL_AT_ONCE), Ok((answer, 0)));
    }
}

/// SEC-R1, SEC-X2: the requests that a receiver accepts and refuses, with one pool for all of them.
#[test]
fn sip022_accepts_and_rejects() {
    let salts = pool();
    let mut seen = 0;
    for case in vectors("negative2022") {
        let (name, kind) = (text(&case["name"]), text(&case["kind"]));
        let (key, now) = (key_of_psk(&case), UnixTime(number(&case["now"])));
        let (keys, users) = (KeyChain::from(key.clone()), Users::with_single_key(key));
        let verdict = match kind {
            "tcp_request" => {
                let stream = hex(&case["stream"]);
                match accept(&users, now, &salts, &[1; 16], &stream) {
                    Err(_) => "reject",
                    // Our handshake waits; the caller refuses in the same way when the stream ends
                    // here.
                    Ok((HandshakeProgress::NeedMore { total }, _)) => {
                        assert_eq!((total, stream.len()), (43, 42), "{name}");
                        "reject"
                    }
                    Ok((HandshakeProgress::Done(mut accepted), rest)) => {
                        match open_all(&mut accepted.open, &rest, ALL_AT_ONCE) {
                            Ok((_, 0)) => "accept",
                            Ok(_) => "wait",
                            Err(_) => "error_after_initial_payload",
                        }
                    }
                }
            }
            "tcp_response" => {
                let mut entropy = FixedEntropy::new(hex(&case["request_salt"]));
                let to = "example.com:443".parse().unwrap();
                let (_, mut open) = client_codecs(&keys, &to, Arc::new(now), &mut entropy).unwrap();
                match open_all(&mut open, &hex(&case["stream"]), ALL_AT_ONCE) {
                    Ok((plain, 0)) if !plain.is_empty() => "accept",
                    Ok(_) => "wait",
                    Err(_) => "reject",
                }
            }
            _ => continue,
        };
        assert_eq!(verdict, text(&case["expect"]), "{name}");
        seen += 1;
    }
    assert_eq!(seen, 25);
}
