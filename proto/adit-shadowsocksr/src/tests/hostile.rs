//! Altered, replayed, late and invented bytes.

use std::sync::Arc;

use adit_wire::{HandshakeProgress, ProtocolError, UnixTime};
use proptest::prelude::*;

use super::{NOW, TestRng, open_some, pair, serve, write};
use crate::{
    AcceptedConnection, ClientParam, OpenedFrame, Protocol, ProtocolClient, ProtocolKind,
    ProtocolServer, ReplayStore, ServerParam,
};

fn authenticated() -> impl Iterator<Item = ProtocolKind> {
    let all = ProtocolKind::ALL.into_iter();
    all.filter(|kind| kind.is_authenticated() && *kind != ProtocolKind::VerifySha1)
}

fn request(client: &ProtocolClient, now: UnixTime) -> Vec<u8> {
    let (mut seal, _) = client
        .connect_codecs(&[9; 16], now, &mut TestRng(1))
        .unwrap();
    write(&mut seal, &[50, 300, 2000]).1
}

fn judge(
    server: &Arc<ProtocolServer>,
    wire: &[u8],
    now: UnixTime,
) -> Result<AcceptedConnection, ProtocolError> {
    let mut handshake = server.new_handshake(&[9; 16], 1460, &mut TestRng(2));
    serve(&mut handshake, wire, 1 << 20, now).map(|(_, accepted)| accepted)
}

#[test]
fn replays_are_refused() {
    for kind in authenticated() {
        let (client, server) = pair(kind, true);
        let wire = request(&client, NOW);
        assert!(judge(&server, &wire, NOW).is_ok(), "{kind}");
        assert_eq!(
            judge(&server, &wire, NOW).unwrap_err(),
            ProtocolError::Replayed
        );
        let later = UnixTime(NOW.0 + 299);
        assert_eq!(
            judge(&server, &wire, later).unwrap_err(),
            ProtocolError::Replayed
        );
        assert!(
            judge(&server, &request(&client, NOW), NOW).is_ok(),
            "{kind}"
        );
    }
}

#[test]
fn a_clock_that_is_a_day_off_is_refused() {
    for kind in authenticated() {
        let (client, server) = pair(kind, false);
        for day in [NOW.0 - 86_401, NOW.0 + 86_401] {
            let refused = judge(&server, &request(&client, UnixTime(day)), NOW);
            // `auth_sha1_v2` has no time.
            if kind == ProtocolKind::AuthSha1V2 {
                assert!(refused.is_ok());
            } else {
                assert!(
                    matches!(refused, Err(ProtocolError::Clock { .. })),
                    "{kind}"
                );
            }
        }
    }
}

#[test]
fn the_wrong_key_and_the_wrong_user_are_refused() {
    for kind in ProtocolKind::ALL
        .into_iter()
        .filter(|k| k.is_authenticated())
    {
        let (_, server) = pair(kind, true);
        let wrong = ProtocolClient::new(kind, &[4; 32], ClientParam::default(), 0);
        assert!(
            judge(&server, &request(&wrong, NOW), NOW).is_err(),
            "{kind}"
        );
        if kind.has_users() {
            for param in ["42:userpx", "43:userpw", "7:userpw", ""] {
                let param = ClientParam::parse(kind, param).unwrap();
                let wrong = ProtocolClient::new(kind, &[3; 32], param, 0);
                let why = judge(&server, &request(&wrong, NOW), NOW).unwrap_err();
                assert_eq!(why, ProtocolError::Unauthentic, "{kind}");
            }
        }
    }
}

/// Frames with a MAC never open to other data; a checksum also detects one flipped bit.
#[test]
fn flipped_bits_of_frames() {
    let kinds = ProtocolKind::ALL.into_iter();
    for kind in kinds.filter(|kind| *kind != ProtocolKind::Origin) {
        let (client, server) = pair(kind, true);
        let accepted = || {
            let mut rng = TestRng(3);
            let (mut seal, _) = client.connect_codecs(&[9; 16], NOW, &mut rng).unwrap();
            let first = write(&mut seal, &[40]).1;
            let second = adit_wire::codec_laws::seal_all(&mut seal, &[0x77; 300], 300).unwrap();
            (judge(&server, &first, NOW).unwrap(), second)
        };
        let (_, second) = accepted();
        let mut bit = 0;
        while bit < second.len() * 8 {
            let (mut accepted, mut wire) = accepted();
            if let Some(byte) = wire.get_mut(bit / 8) {
                *byte ^= 1 << (bit % 8);
            }
            if let Ok((plain, left)) = open_some(&mut accepted.open, Vec::new(), &wire, 1 << 20) {
                // Either it waits for an increased length, or it has opened no wrong data yet.
                assert!(plain.is_empty() && left > 0, "{kind} bit {bit}");
            }
            bit += 37;
        }
    }
}

#[test]
fn compatible_servers_take_others_for_origin() {
    for kind in ProtocolKind::ALL.into_iter().filter(|k| k.has_compatible()) {
        let replays = || Arc::new(ReplayStore::new([7; 16], NOW));
        let param = ServerParam::default();
        let server = |compatible| {
            let protocol = Protocol { kind, compatible };
            Arc::new(ProtocolServer::new(
                protocol,
                &[3; 32],
                &param,
                0,
                replays(),
            ))
        };
        let plain = b"\x01\x7f\x00\x00\x01\x00\x50GET / HTTP/1.0\r\n\r\n";
        assert!(judge(&server(false), plain, NOW).is_err(), "{kind}");
        let mut handshake = server(true).new_handshake(&[], 1460, &mut TestRng(2));
        let (data, accepted) = serve(&mut handshake, plain, 5, NOW).unwrap();
        assert!(accepted.fell_back && data == plain, "{kind}");
        // It still serves its own clients.
        let client = ProtocolClient::new(kind, &[3; 32], ClientParam::default(), 0);
        let accepted = judge(&server(true), &request(&client, NOW), NOW).unwrap();
        assert!(!accepted.fell_back, "{kind}");
    }
}

#[test]
fn a_handshake_ends_once() {
    let (_, server) = pair(ProtocolKind::Origin, false);
    let mut handshake = server.new_handshake(&[], 1460, &mut TestRng(2));
    assert!(matches!(
        handshake.step(&mut [], NOW),
        Ok(HandshakeProgress::Done(_))
    ));
    assert!(handshake.step(&mut [], NOW).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn any_bytes_are_handled(
        kind in proptest::sample::select(ProtocolKind::ALL.to_vec()),
        bytes in proptest::collection::vec(any::<u8>(), 0..3000), piece in 1usize..500,
    ) {
        let (client, server) = pair(kind, false);
        let mut handshake = server.new_handshake(&[9; 16], 1460, &mut TestRng(2));
        let accepted = handshake.step(&mut bytes.clone(), NOW);
        prop_assert!(!kind.is_authenticated() || !matches!(accepted, Ok(HandshakeProgress::Done(_))));
        let (_, mut open) = client.connect_codecs(&[9; 16], NOW, &mut TestRng(3)).unwrap();
        let _ = open_some(&mut open, Vec::new(), &bytes, piece);
    }

    /// After a valid first message, with a valid or invalid length.
    #[test]
    fn any_frames_are_handled(
        kind in proptest::sample::select(ProtocolKind::ALL.to_vec()),
        bytes in proptest::collection::vec(any::<u8>(), 0..200), len in 0u16..300, little in any::<bool>(),
    ) {
        let (client, server) = pair(kind, true);
        let mut accepted = judge(&server, &request(&client, NOW), NOW).unwrap();
        let len = if little { len.to_le_bytes() } else { len.to_be_bytes() };
        let mut wire = [&len[..], &bytes].concat();
        if let Ok(OpenedFrame::Plain { consumed, payload }) = accepted.open.open_frame(&mut wire) {
            prop_assert!(payload.end <= consumed && consumed <= wire.len());
        }
    }
}
