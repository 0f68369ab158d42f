//! A relay over streams and packets that are raw, or genuine except for one byte: it forwards what
//! is addressed to it, to the right hop, without its own header and otherwise unchanged; and the
//! server behind it understands the result.

#![no_main]

use std::sync::{Arc, LazyLock};

use adit_fuzz::users::{key, sealed, target};
use adit_fuzz::{NOW, Pieces, Script, Zeros, alter, steer};
use adit_shadowsocks::relay::{RelayTable, RelayedStream, TcpRelay, relay_packet};
use adit_shadowsocks::tcp::{ServerHandshake, client_codecs};
use adit_shadowsocks::udp::{ClientSession, ServerOpener};
use adit_shadowsocks::{KeyChain, Method, RestartPolicy, SaltPool, Users};
use adit_wire::codec_laws::{run_handshake, seal_all};
use adit_wire::{FixedEntropy, ProtocolError, Step};
use libfuzzer_sys::fuzz_target;

/// Length of the header between the salt, or the ids, and the rest of the forwarded bytes.
const HEADER: usize = 16;
/// Salt or ids, and the header: the bytes that the relay's decision depends on.
const JUDGED: usize = 2 * HEADER;

/// A relay, its two hops and a client of each: a server with one key, and one with users.
struct Way {
    table: Arc<RelayTable>,
    chains: [KeyChain; 2],
    servers: [Arc<Users>; 2],
}

static WAY: LazyLock<Way> = LazyLock::new(|| {
    let key = |seed| key(Method::Blake3Aes128Gcm, seed);
    let ((relay, _), (alone, _), (identity, _), (user, text)) = (key(1), key(2), key(3), key(4));
    let chain = |identities: &[_], last: &_| KeyChain::new(identities.to_vec(), Clone::clone(last));
    let hops = [alone.clone(), identity.clone()];
    Way {
        table: RelayTable::new(&relay, hops).expect("a table"),
        chains: [
            chain(core::slice::from_ref(&relay), &alone).expect("a chain"),
            chain(&[relay, identity.clone()], &user).expect("a chain"),
        ],
        servers: [
            Users::with_single_key(alone),
            Users::with_identity_key(&identity, [("dave", text)]).expect("users"),
        ],
    }
});

fn relay(wire: &[u8], pieces: &[usize]) -> Result<Option<(RelayedStream, Vec<u8>)>, ProtocolError> {
    match run_handshake(&mut TcpRelay::new(&WAY.table), wire, pieces) {
        Ok((Step::Done(relayed), sent, rest)) => {
            assert!(sent.is_empty());
            Ok(Some((relayed, rest)))
        }
        Ok((Step::NeedMore { .. }, sent, held)) => {
            assert!(sent.is_empty() && held == wire, "a wait changes nothing");
            Ok(None)
        }
        Err((why, sent)) => {
            assert!(sent.is_empty(), "a refusal is silent");
            Err(why)
        }
    }
}

fn stream(sizes: &[usize], wire: &[u8]) -> Result<Option<(RelayedStream, Vec<u8>)>, ProtocolError> {
    let sizes = sizes.to_vec();
    Pieces { sizes, bytes: wire }.same(relay)
}

/// Checks that the server of a hop accepts the stream, with all data in its request.
fn accepted(hop: usize, wire: &[u8], payload: &[u8]) {
    let salts = Arc::new(SaltPool::new([1; 16], NOW, RestartPolicy::Lenient));
    let mut chance = FixedEntropy::new([7; 32]);
    let mut server = ServerHandshake::new(&WAY.servers[hop], Arc::new(NOW), salts, &mut chance);
    let step = run_handshake(&mut server, wire, &[usize::MAX]);
    let Ok((Step::Done(accepted), _, rest)) = step else {
        panic!("the server refused it");
    };
    assert_eq!((accepted.target, &accepted.first[..]), (target(), payload));
    assert!(rest.is_empty());
    assert_eq!(accepted.user.is_some(), hop == 1);
}

/// Bytes of a client of `hop`, altered or not.
fn streams(script: &mut Script<'_>, sizes: &[usize]) {
    let (hop, place, flip) = (script.below(2), script.short(), script.byte());
    let payload = script.rest();
    let codecs = client_codecs(&WAY.chains[hop], &target(), Arc::new(NOW), &mut Zeros);
    let (mut seal, _) = codecs.expect("a client");
    let wire = seal_all(&mut seal, payload, usize::MAX).expect("sealed");
    let (relayed, rest) = stream(sizes, &wire).expect("genuine").expect("complete");
    assert_eq!(relayed.next, hop);
    let salt = &wire[..HEADER];
    assert!(relayed.head == salt && rest == wire[JUDGED..]);
    accepted(hop, &[relayed.head, rest].concat(), payload);
    let mut bad = wire.clone();
    let at = alter(&mut bad, place, flip);
    match stream(sizes, &bad) {
        Ok(Some((relayed, rest))) => {
            assert!(at >= JUDGED, "an altered header was accepted");
            assert!(relayed.next == hop && relayed.head == salt && rest == bad[JUDGED..]);
        }
        other => assert!(at < JUDGED && other == Err(ProtocolError::Unauthentic)),
    }
}

/// The same for packets.
fn packets(script: &mut Script<'_>) {
    let (hop, place, flip) = (script.below(2), script.short(), script.byte());
    let payload = script.rest();
    let mut client = ClientSession::new(&WAY.chains[hop], &mut FixedEntropy::new([0, 0, 0, 5]));
    let wire = sealed(&mut client, payload);
    let mut bytes = wire.clone();
    let forwarded = relay_packet(&WAY.table, &mut bytes).expect("genuine");
    assert_eq!((forwarded.next, forwarded.session), (hop, 5 << 32));
    let out = &mut bytes[forwarded.packet];
    // New ids, and the rest as before.
    assert!(out.len() + HEADER == wire.len() && out[HEADER..] == wire[JUDGED..]);
    let mut server = ServerOpener::new(&WAY.servers[hop]);
    let incoming = server.open_packet(out, NOW).expect("the server refused it");
    assert_eq!(
        (incoming.session, incoming.target),
        (Some(5 << 32), target())
    );
    assert_eq!(&out[incoming.payload], payload);

    let mut bad = wire;
    let at = alter(&mut bad, place, flip);
    let before = bad.clone();
    match relay_packet(&WAY.table, &mut bad) {
        Ok(to) => {
            assert!(
                at >= JUDGED && to.next == hop,
                "an altered header was accepted"
            );
            assert!(bad[to.packet][HEADER..] == before[JUDGED..]);
        }
        Err(_) => assert!(at < JUDGED && bad == before, "a refused packet was changed"),
    }
}

fuzz_target!(|input: &[u8]| {
    let (flags, input) = steer(input);
    match flags % 4 {
        0 => {
            let Pieces { sizes, bytes } = Pieces::new(input);
            let found = stream(&sizes, bytes);
            assert!(
                !matches!(found, Ok(Some(_))),
                "a header without a key was accepted"
            );
        }
        1 => {
            let mut bytes = input.to_vec();
            let found = relay_packet(&WAY.table, &mut bytes);
            assert!(found.is_err(), "a header without a key was accepted");
            assert_eq!(bytes, input, "a refused packet was changed");
        }
        2 => {
            let Pieces { sizes, bytes } = Pieces::new(input);
            streams(&mut Script::new(bytes), &sizes);
        }
        _ => packets(&mut Script::new(input)),
    }
});
