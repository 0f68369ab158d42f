//! A relay over streams and packets that are raw, or genuine except for one byte: it forwards what
//! is addressed to it, to the right hop, without its own header and otherwise unchanged; and the
//! server behind it understands the result.

#![no_main]

use std::sync::{Arc, LazyLock};

use adit_fuzz::user_fixture::{generate_key, seal_packet, test_target};
use adit_fuzz::{ActionScript, NOW, SplitInput, ZeroEntropy, alter_byte, split_flags};
use adit_shadowsocks::relay::{RelayTable, RelayedStream, TcpRelay, relay_packet};
use adit_shadowsocks::tcp::{ServerHandshake, client_codecs};
use adit_shadowsocks::udp::{ClientSession, ServerOpener};
use adit_shadowsocks::{KeyChain, Method, RestartPolicy, SaltPool, Users};
use adit_wire::codec_laws::{run_handshake, seal_all};
use adit_wire::{FixedEntropy, HandshakeProgress, ProtocolError};
use libfuzzer_sys::fuzz_target;

/// Length of the header between the salt, or the ids, and the rest of the forwarded bytes.
const HEADER_LEN: usize = 16;
/// Salt or ids, and the header: the bytes that the relay's decision depends on.
const CHECKED_LEN: usize = 2 * HEADER_LEN;

/// A relay, its two hops and a client of each: a server with one key, and one with users.
struct RelayFixture {
    table: Arc<RelayTable>,
    chains: [KeyChain; 2],
    servers: [Arc<Users>; 2],
}

static FIXTURE: LazyLock<RelayFixture> = LazyLock::new(|| {
    let key = |seed| generate_key(Method::Blake3Aes128Gcm, seed);
    let ((relay, _), (alone, _), (identity, _), (user, text)) = (key(1), key(2), key(3), key(4));
    let chain = |identities: &[_], last: &_| KeyChain::new(identities.to_vec(), Clone::clone(last));
    let hops = [alone.clone(), identity.clone()];
    RelayFixture {
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

fn relay_stream(
    wire: &[u8],
    pieces: &[usize],
) -> Result<Option<(RelayedStream, Vec<u8>)>, ProtocolError> {
    match run_handshake(&mut TcpRelay::new(&FIXTURE.table), wire, pieces) {
        Ok((HandshakeProgress::Done(relayed), sent, rest)) => {
            assert!(sent.is_empty());
            Ok(Some((relayed, rest)))
        }
        Ok((HandshakeProgress::NeedMore { .. }, sent, held)) => {
            assert!(sent.is_empty() && held == wire, "a wait changes nothing");
            Ok(None)
        }
        Err((why, sent)) => {
            assert!(sent.is_empty(), "a refusal is silent");
            Err(why)
        }
    }
}

fn relay_split_stream(
    sizes: &[usize],
    wire: &[u8],
) -> Result<Option<(RelayedStream, Vec<u8>)>, ProtocolError> {
    let sizes = sizes.to_vec();
    SplitInput { sizes, bytes: wire }.assert_split_independent(relay_stream)
}

/// Checks that the server of a hop accepts the stream, with all data in its request.
fn check_accepted(hop: usize, wire: &[u8], payload: &[u8]) {
    let salts = Arc::new(SaltPool::new([1; 16], NOW, RestartPolicy::Lenient));
    let mut rng = FixedEntropy::new([7; 32]);
    let mut server = ServerHandshake::new(&FIXTURE.servers[hop], Arc::new(NOW), salts, &mut rng);
    let step = run_handshake(&mut server, wire, &[usize::MAX]);
    let Ok((HandshakeProgress::Done(accepted), _, rest)) = step else {
        panic!("the server refused it");
    };
    assert_eq!(
        (accepted.target, &accepted.first[..]),
        (test_target(), payload)
    );
    assert!(rest.is_empty());
    assert_eq!(accepted.user.is_some(), hop == 1);
}

/// Bytes of a client of `hop`, altered or not.
fn check_streams(script: &mut ActionScript<'_>, sizes: &[usize]) {
    let (hop, place, flip) = (script.read_below(2), script.read_u16(), script.read_u8());
    let payload = script.take_rest();
    let codecs = client_codecs(
        &FIXTURE.chains[hop],
        &test_target(),
        Arc::new(NOW),
        &mut ZeroEntropy,
    );
    let (mut seal, _) = codecs.expect("a client");
    let wire = seal_all(&mut seal, payload, usize::MAX).expect("sealed");
    let (relayed, rest) = relay_split_stream(sizes, &wire)
        .expect("genuine")
        .expect("complete");
    assert_eq!(relayed.next, hop);
    let salt = &wire[..HEADER_LEN];
    assert!(relayed.head == salt && rest == wire[CHECKED_LEN..]);
    check_accepted(hop, &[relayed.head, rest].concat(), payload);
    let mut bad = wire.clone();
    let at = alter_byte(&mut bad, place, flip);
    match relay_split_stream(sizes, &bad) {
        Ok(Some((relayed, rest))) => {
            assert!(at >= CHECKED_LEN, "an altered header was accepted");
            assert!(relayed.next == hop && relayed.head == salt && rest == bad[CHECKED_LEN..]);
        }
        other => assert!(at < CHECKED_LEN && other == Err(ProtocolError::Unauthentic)),
    }
}

/// The same for packets.
fn check_packets(script: &mut ActionScript<'_>) {
    let (hop, place, flip) = (script.read_below(2), script.read_u16(), script.read_u8());
    let payload = script.take_rest();
    let mut client = ClientSession::new(&FIXTURE.chains[hop], &mut FixedEntropy::new([0, 0, 0, 5]));
    let wire = seal_packet(&mut client, payload);
    let mut bytes = wire.clone();
    let forwarded = relay_packet(&FIXTURE.table, &mut bytes).expect("genuine");
    assert_eq!((forwarded.next, forwarded.session), (hop, 5 << 32));
    let out = &mut bytes[forwarded.packet];
    // New ids, and the rest as before.
    assert!(out.len() + HEADER_LEN == wire.len() && out[HEADER_LEN..] == wire[CHECKED_LEN..]);
    let mut server = ServerOpener::new(&FIXTURE.servers[hop]);
    let incoming = server.open_packet(out, NOW).expect("the server refused it");
    assert_eq!(
        (incoming.session, incoming.target),
        (Some(5 << 32), test_target())
    );
    assert_eq!(&out[incoming.payload], payload);

    let mut bad = wire;
    let at = alter_byte(&mut bad, place, flip);
    let before = bad.clone();
    match relay_packet(&FIXTURE.table, &mut bad) {
        Ok(to) => {
            assert!(
                at >= CHECKED_LEN && to.next == hop,
                "an altered header was accepted"
            );
            assert!(bad[to.packet][HEADER_LEN..] == before[CHECKED_LEN..]);
        }
        Err(_) => assert!(
            at < CHECKED_LEN && bad == before,
            "a refused packet was changed"
        ),
    }
}

fuzz_target!(|input: &[u8]| {
    let (flags, input) = split_flags(input);
    match flags % 4 {
        0 => {
            let SplitInput { sizes, bytes } = SplitInput::new(input);
            let found = relay_split_stream(&sizes, bytes);
            assert!(
                !matches!(found, Ok(Some(_))),
                "a header without a key was accepted"
            );
        }
        1 => {
            let mut bytes = input.to_vec();
            let found = relay_packet(&FIXTURE.table, &mut bytes);
            assert!(found.is_err(), "a header without a key was accepted");
            assert_eq!(bytes, input, "a refused packet was changed");
        }
        2 => {
            let SplitInput { sizes, bytes } = SplitInput::new(input);
            check_streams(&mut ActionScript::new(bytes), &sizes);
        }
        _ => check_packets(&mut ActionScript::new(input)),
    }
});
