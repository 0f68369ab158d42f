//! Tests of empty chunks, which peers send and adit never does, at all positions where they may
//! occur.

use std::sync::Arc;

use adit_crypto::TAG_LEN;
use adit_wire::codec_laws::{open_all, run_handshake};
use adit_wire::{
    FixedEntropy, HandshakeProgress, Open, ProtocolError, Seal, Target, UnixTime, encode_addr,
};

use super::chunk::{ChunkSeal, LENGTH_LEN, MAX_EMPTY_CHUNKS};
use super::{AcceptedRequest, ClientOpen, ClientSeal, ServerHandshake, client_codecs};
use crate::{Edition, Key, KeyChain, Method, RestartPolicy, SaltPool, Users};

const NOW: UnixTime = UnixTime(1_700_000_000);
const TOO_MANY: ProtocolError = ProtocolError::Malformed("chunk: more than 64 empty ones in a row");
const METHODS: [Method; 4] = [
    Method::Aes128Gcm,
    Method::ChaCha20IetfPoly1305,
    Method::Blake3Aes128Gcm,
    Method::Blake3ChaCha20Poly1305,
];

fn target() -> Target {
    "example.com:443".parse().unwrap()
}

fn key(method: Method) -> Key {
    Key::generate(method, &mut FixedEntropy::new(vec![9; 64])).0
}

fn ends(key: &Key) -> (ClientSeal, ClientOpen) {
    let mut entropy = FixedEntropy::new(vec![1; 64]);
    let chain = KeyChain::from(key.clone());
    client_codecs(&chain, &target(), Arc::new(NOW), &mut entropy).unwrap()
}

fn sealed(seal: &mut dyn Seal, payload: &[u8]) -> Vec<u8> {
    adit_wire::codec_laws::seal_all(seal, payload, usize::MAX).unwrap()
}

fn chunk(seal: &mut ChunkSeal, payload: &[u8]) -> Vec<u8> {
    let mut record = [&[0; LENGTH_LEN][..], payload, &[0; TAG_LEN]].concat();
    let at = LENGTH_LEN..LENGTH_LEN + payload.len();
    seal.seal_chunk(&mut record, at).unwrap();
    record
}

/// Continues sealing after the first record of a direction, which has two blocks in both editions.
fn behind(key: &Key, wire: &[u8]) -> ChunkSeal {
    let mut seal = start(key, wire);
    for _ in 0..2 {
        seal.seal_block(&mut [0; TAG_LEN], 0..0).unwrap();
    }
    seal
}

fn start(key: &Key, wire: &[u8]) -> ChunkSeal {
    let salt = &wire[..key.method().salt_len()];
    ChunkSeal::new(key.material().derive_session_key(salt).unwrap())
}

/// Opens a request as a server and returns it with all plaintext.
fn served(
    key: &Key,
    wire: &[u8],
    pieces: &[usize],
) -> Result<(AcceptedRequest, Vec<u8>), ProtocolError> {
    let users = Users::with_single_key(key.clone());
    let salts = Arc::new(SaltPool::new([3; 16], UnixTime(0), RestartPolicy::Strict));
    let mut entropy = FixedEntropy::new(vec![2; 64]);
    let mut server = ServerHandshake::new(&users, Arc::new(NOW), salts, &mut entropy);
    let (step, _, rest) = run_handshake(&mut server, wire, pieces).map_err(|(why, _)| why)?;
    let HandshakeProgress::Done(mut accepted) = step else {
        panic!("the server waits for more bytes");
    };
    let (more, unread) = open_all(&mut accepted.open, &rest, pieces)?;
    assert!(accepted.open.is_at_boundary(unread) && accepted.target == target());
    let plain = [&accepted.first[..], &more].concat();
    Ok((accepted, plain))
}

fn splits(len: usize) -> impl Iterator<Item = Vec<usize>> {
    (1..len).map(move |at| vec![at, len - at]).chain([vec![1]])
}

/// Appends `count` empty chunks, "more", `count` empty chunks again, and "end".
fn interspersed(mut seal: ChunkSeal, mut wire: Vec<u8>, count: usize) -> Vec<u8> {
    for payload in [&b"more"[..], b"end"] {
        for _ in 0..count {
            wire.extend(chunk(&mut seal, b""));
        }
        wire.extend(chunk(&mut seal, payload));
    }
    wire
}

#[test]
fn they_are_skipped_in_both_directions_however_they_are_split() {
    for method in METHODS {
        let key = key(method);
        let (mut seal, _) = ends(&key);
        let first = sealed(&mut seal, b"first,");
        for (count, pieces) in [(2, None), (MAX_EMPTY_CHUNKS, Some(usize::MAX))] {
            let up = interspersed(behind(&key, &first), first.clone(), count);
            let pieces = |len| match pieces {
                Some(all) => vec![vec![all]],
                None => splits(len).collect(),
            };
            for pieces in pieces(up.len()) {
                let (_, plain) = served(&key, &up, &pieces).unwrap();
                assert_eq!(plain, b"first,moreend", "{method} {pieces:?}");
            }
            let (mut accepted, _) = served(&key, &first, &[usize::MAX]).unwrap();
            let answer = sealed(&mut accepted.seal, b"answer,");
            let down = interspersed(behind(&key, &answer), answer, count);
            for pieces in pieces(down.len()) {
                let (_, mut open) = ends(&key);
                let opened = open_all(&mut open, &down, &pieces);
                assert_eq!(opened, Ok((b"answer,moreend".to_vec(), 0)), "{method}");
                assert!(open.is_authenticated() && open.is_at_boundary(0));
            }
        }
    }
}

#[test]
fn the_65th_in_a_row_is_an_error() {
    for method in METHODS {
        let key = key(method);
        let (mut seal, _) = ends(&key);
        let first = sealed(&mut seal, b"first,");
        let up = interspersed(behind(&key, &first), first.clone(), MAX_EMPTY_CHUNKS + 1);
        assert_eq!(
            served(&key, &up, &[usize::MAX]).unwrap_err(),
            TOO_MANY,
            "{method}"
        );
        let (mut accepted, _) = served(&key, &first, &[usize::MAX]).unwrap();
        let answer = sealed(&mut accepted.seal, b"answer,");
        let down = interspersed(behind(&key, &answer), answer, MAX_EMPTY_CHUNKS + 1);
        let (_, mut open) = ends(&key);
        let opened = open_all(&mut open, &down, &[usize::MAX]);
        assert_eq!(opened, Err(TOO_MANY), "{method}");
    }
}

/// As Xray's client: a lone request header, then an empty chunk, then the application's data.
#[test]
fn behind_a_request_without_payload() {
    for method in METHODS {
        let key = key(method);
        let (mut seal, _) = ends(&key);
        let alone = sealed(&mut seal, b"");
        let up = interspersed(behind(&key, &alone), alone, 1);
        for pieces in splits(up.len()) {
            let (_, plain) = served(&key, &up, &pieces).unwrap();
            assert_eq!(plain, b"moreend", "{method} {pieces:?}");
        }
    }
}

/// In the AEAD edition they may also precede the address and the first answer.
#[test]
fn at_the_very_front() {
    let methods = METHODS.into_iter();
    for method in methods.filter(|method| method.edition() == Edition::Aead) {
        let key = key(method);
        let salt = vec![6; method.salt_len()];
        let mut address = Vec::new();
        encode_addr(&target(), &mut address);
        for (count, fine) in [
            (1, true),
            (MAX_EMPTY_CHUNKS, true),
            (MAX_EMPTY_CHUNKS + 1, false),
        ] {
            let (mut seal, mut wire) = (start(&key, &salt), salt.clone());
            for _ in 0..count {
                wire.extend(chunk(&mut seal, b""));
            }
            let answer = [&wire[..], &chunk(&mut seal, &address)].concat();
            let request = [&answer[..], &chunk(&mut seal, b"data")].concat();
            let (_, mut open) = ends(&key);
            let opened = open_all(&mut open, &answer, &[7]);
            let plain = served(&key, &request, &[7]).map(|(_, plain)| plain);
            if fine {
                assert_eq!(opened, Ok((address.clone(), 0)));
                assert_eq!(plain, Ok(b"data".to_vec()));
            } else {
                assert_eq!((opened, plain), (Err(TOO_MANY), Err(TOO_MANY)));
            }
        }
    }
}
