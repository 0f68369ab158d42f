//! Stacks against each other, and against the reference implementation with its obfs.

mod golden;

use std::sync::Arc;

use adit_crypto::{StreamKey, StreamKind};
use adit_wire::codec_laws::{run_handshake, seal_all};
use adit_wire::{HandshakeProgress, ProtocolError, Seal, Target};
use proptest::prelude::*;

use super::{ClientStack, ServerStack, StackAccepted, StackOpen};
use crate::tests::{NOW, TestRng};
use crate::{ClientParam, OpenedFrame, PACKET_TAIL, ProtocolKind, ReplayStore, ServerParam};

const PASSWORD: &[u8] = b"barfoo!";

/// Returns a matching client and server.
fn pair(method: StreamKind, kind: ProtocolKind) -> (ClientStack, Arc<ServerStack>) {
    let (client, server) = if kind.has_users() {
        ("42:userpw", "64#42:userpw,7:other")
    } else {
        ("", "")
    };
    let client = ClientParam::parse(kind, client).unwrap();
    let server = ServerParam::parse(kind, server).unwrap();
    let replays = ReplayStore::new([7; 16], NOW).into();
    let server = ServerStack::new(method, PASSWORD, kind.into(), &server, 0, replays);
    (
        ClientStack::new(method, PASSWORD, kind, client, 0).unwrap(),
        Arc::new(server.unwrap()),
    )
}

/// Opens a stream that arrives in chunks; returns the data and the number of remaining bytes.
fn open_all(open: &mut StackOpen, held: &mut Vec<u8>, wire: &[u8], piece: usize) -> Vec<u8> {
    let (mut plain, mut pieces) = (Vec::new(), wire.chunks(piece));
    loop {
        match open.open_frame(held).unwrap() {
            OpenedFrame::NeedMore { total } => {
                assert!(
                    total > held.len(),
                    "NeedMore must ask for more than there is"
                );
                match pieces.next() {
                    Some(piece) => held.extend_from_slice(piece),
                    None => return plain,
                }
            }
            OpenedFrame::Plain { consumed, payload } => {
                assert!(consumed > 0 && payload.end <= consumed);
                plain.extend_from_slice(&held[payload]);
                held.drain(..consumed);
            }
            OpenedFrame::Inflated { consumed } => {
                plain.extend_from_slice(open.inflated());
                held.drain(..consumed);
            }
        }
    }
}

/// Runs a server over a request; returns the target, all of the data, and the codec of its answers.
fn serve(
    server: &Arc<ServerStack>,
    wire: &[u8],
    piece: usize,
) -> Result<(StackAccepted, Vec<u8>), ProtocolError> {
    let mut handshake = server.new_handshake(1460, Arc::new(NOW), &mut TestRng(77));
    let (step, sent, mut held) =
        run_handshake(&mut handshake, wire, &[piece]).map_err(|(why, _)| why)?;
    assert!(
        sent.is_empty(),
        "nothing is sent before the request was read"
    );
    let HandshakeProgress::Done(mut accepted) = step else {
        return Err(ProtocolError::Truncated("the request"));
    };
    let mut plain = core::mem::take(&mut accepted.first);
    plain.extend(open_all(&mut accepted.open, &mut held, &[], 1));
    assert!(held.is_empty(), "a frame is truncated");
    Ok((accepted, plain))
}

fn data(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 % 251).to_le_bytes()[0]).collect()
}

fn kinds() -> impl Strategy<Value = ProtocolKind> {
    proptest::sample::select(ProtocolKind::ALL.to_vec())
}

/// One method for each length of IV, including none.
fn methods() -> impl Strategy<Value = StreamKind> {
    use StreamKind as K;
    proptest::sample::select(vec![
        K::None,
        K::Rc4,
        K::Rc4Md56,
        K::BfCfb,
        K::ChaCha20Ietf,
        K::XChaCha20,
        K::Aes256Ctr,
        K::Aes128Cfb,
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]
    #[test]
    fn both_ways(
        method in methods(), kind in kinds(), up in 0usize..50_000, down in 0usize..50_000,
        piece in 1usize..9000, seed in any::<u64>(),
        host in proptest::sample::select(vec!["192.0.2.7", "[2001:db8::1]", "a.example"]),
    ) {
        let (client, server) = pair(method, kind);
        let target: Target = format!("{host}:443").parse().unwrap();
        let (mut seal, mut open) = client.connect_codecs(&target, NOW, &mut TestRng(seed)).unwrap();
        prop_assert!(seal.must_send_head());
        let wire = seal_all(&mut seal, &data(up), usize::MAX).unwrap();
        prop_assert!(!seal.must_send_head());
        let (mut accepted, plain) = serve(&server, &wire, piece).unwrap();
        prop_assert_eq!(&accepted.target, &target);
        prop_assert_eq!(accepted.uid, kind.has_users().then_some(42));
        prop_assert!(plain == data(up), "{} {} up", method, kind);

        prop_assert!(!open.progress().is_answered());
        let wire = seal_all(&mut accepted.seal, &data(down), usize::MAX).unwrap();
        let mut held = Vec::new();
        prop_assert!(open_all(&mut open, &mut held, &wire, piece) == data(down), "{} down", kind);
        prop_assert!(held.is_empty());
        prop_assert_eq!(open.progress().is_answered(), !wire.is_empty());
    }

    #[test]
    fn packets_both_ways(
        method in methods(), kind in kinds(), len in 0usize..1500, seed in any::<u64>(),
    ) {
        let (client, server) = pair(method, kind);
        let mut rng = TestRng(seed);
        let room = 300;
        let framed = || [&vec![0; room][..], &data(len), &[0; PACKET_TAIL]].concat();
        let to: Target = "a.example:53".parse().unwrap();
        let mut association = client.new_association(&mut rng);
        let mut packet = framed();
        let wire = association.seal_packet(&mut packet, room..room + len, &to, &mut rng).unwrap();
        let wire = &mut packet[wire];
        let (uid, target, payload) = server.open_packet(wire).unwrap();
        prop_assert_eq!((uid, target), (kind.has_users().then_some(42), to));
        prop_assert_eq!(&wire[payload], &data(len)[..]);

        let from: Target = "[2001:db8::1]:53".parse().unwrap();
        let mut answers = server.answer_codec(uid);
        let mut packet = framed();
        let wire = answers.seal_packet(&mut packet, room..room + len, &from, &mut rng).unwrap();
        let wire = &mut packet[wire];
        let (source, payload) = association.open_packet(wire).unwrap();
        prop_assert_eq!(source, from);
        prop_assert_eq!(&wire[payload], &data(len)[..]);
    }

    #[test]
    fn any_bytes_are_handled(
        method in methods(), kind in kinds(),
        bytes in proptest::collection::vec(any::<u8>(), 0..2000), piece in 1usize..2000,
    ) {
        let (client, server) = pair(method, kind);
        let _ = serve_some(&server, &bytes, piece);
        let _ = server.open_packet(&mut bytes.clone());
        let _ = client.new_association(&mut TestRng(1)).open_packet(&mut bytes.clone());
        let target = "a.example:1".parse().unwrap();
        let (_, mut open) = client.connect_codecs(&target, NOW, &mut TestRng(2)).unwrap();
        let mut rest = bytes;
        while let Ok(OpenedFrame::Plain { consumed, .. } | OpenedFrame::Inflated { consumed }) =
            open.open_frame(&mut rest)
        {
            rest.drain(..consumed);
        }
    }
}

/// Runs a server over bytes that may not be a request.
fn serve_some(server: &Arc<ServerStack>, wire: &[u8], piece: usize) -> Option<Target> {
    let mut handshake = server.new_handshake(1460, Arc::new(NOW), &mut TestRng(3));
    match run_handshake(&mut handshake, wire, &[piece]) {
        Ok((HandshakeProgress::Done(accepted), ..)) => Some(accepted.target),
        _ => None,
    }
}

/// Every cipher, with the shortest exchange.
#[test]
fn all_ciphers() {
    let target: Target = "a.example:80".parse().unwrap();
    for method in StreamKind::ALL {
        let (client, server) = pair(method, ProtocolKind::AuthAes128Md5);
        let (mut seal, mut open) = client
            .connect_codecs(&target, NOW, &mut TestRng(4))
            .unwrap();
        let wire = seal_all(&mut seal, &data(3000), 1000).unwrap();
        let (mut accepted, plain) = serve(&server, &wire, 100).unwrap();
        assert!(plain == data(3000) && accepted.target == target, "{method}");
        let wire = seal_all(&mut accepted.seal, &data(3000), 1000).unwrap();
        let back = open_all(&mut open, &mut Vec::new(), &wire, 7);
        assert!(back == data(3000), "{method}");
    }
}

/// A wrong password, method or protocol is detected if the protocol authenticates.
#[test]
fn strangers_are_refused() {
    let target: Target = "a.example:80".parse().unwrap();
    for kind in ProtocolKind::ALL
        .into_iter()
        .filter(|k| k.is_authenticated())
    {
        let (_, server) = pair(StreamKind::Aes128Ctr, kind);
        let strangers = [
            (StreamKind::Aes128Ctr, b"barfoo?", kind),
            (StreamKind::Aes128Cfb, b"barfoo!", kind),
            (StreamKind::Aes128Ctr, b"barfoo!", ProtocolKind::Origin),
        ];
        for (method, password, kind) in strangers {
            let param = ClientParam::default();
            let client = ClientStack::new(method, password, kind, param, 0).unwrap();
            let (mut seal, _) = client
                .connect_codecs(&target, NOW, &mut TestRng(5))
                .unwrap();
            let wire = seal_all(&mut seal, &data(3000), 1000).unwrap();
            assert_eq!(serve_some(&server, &wire, 9000), None, "{method} {kind}");
        }
    }
}

/// The IV and the header are written once, even if the caller makes mistakes in between.
#[test]
fn a_seal_without_room_changes_nothing() {
    let (client, server) = pair(StreamKind::Aes128Ctr, ProtocolKind::AuthSha1V4);
    let target: Target = "a.example:80".parse().unwrap();
    let (mut seal, _) = client
        .connect_codecs(&target, NOW, &mut TestRng(6))
        .unwrap();
    let room = seal.overhead();
    let mut short = vec![0; room.head + 10];
    assert!(seal.seal(&mut short, 3..10).is_err());
    assert!(seal.must_send_head());
    let wire = seal_all(&mut seal, b"hello", 99).unwrap();
    assert_eq!(serve(&server, &wire, 50).unwrap().1, b"hello");
    let mut record = vec![0; 99];
    assert_eq!(
        seal.seal(&mut record, 30..30),
        Ok(30..30),
        "no empty frames"
    );
}

/// The protocols' key for a method without a cipher has 16 bytes too.
#[test]
fn methods_without_a_cipher_have_a_key() {
    let key = StreamKind::None.key_from_password(PASSWORD);
    assert_eq!(key.expose().len(), 16);
    assert!(StreamKey::new(StreamKind::None, key.expose()).is_ok());
}
