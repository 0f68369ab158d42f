//! Streams are the same after sealing and opening.

use adit_wire::Seal;
use proptest::prelude::*;

use super::{NOW, TestRng, open_all, pair, serve, write};
use crate::{OpenedFrame, ProtocolKind};

fn kinds() -> impl Strategy<Value = ProtocolKind> {
    proptest::sample::select(ProtocolKind::ALL.to_vec())
}

/// Sizes around every limit of the protocols, and others.
fn sizes() -> impl Strategy<Value = Vec<usize>> {
    let edges = vec![
        0, 1, 400, 401, 900, 901, 1199, 1300, 1439, 1440, 1441, 4093, 4095, 4096, 8000, 8100, 8101,
    ];
    let size = prop_oneof![
        proptest::sample::select(edges),
        0usize..40_000,
        0usize..1500
    ];
    proptest::collection::vec(size, 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn both_ways(
        kind in kinds(), user in any::<bool>(), iv in proptest::collection::vec(any::<u8>(), 0..24),
        requests in sizes(), answers in sizes(), piece in 1usize..5000, seed in any::<u64>(),
    ) {
        let (client, server) = pair(kind, user);
        let mut rng = TestRng(seed);
        let (mut seal, mut open) = client.connect_codecs(&iv, NOW, &mut rng).unwrap();
        let (sent, wire) = write(&mut seal, &requests);
        prop_assert!(!seal.must_send_head());
        let mut handshake = server.new_handshake(&iv, 1460, &mut rng);
        let (plain, mut accepted) = serve(&mut handshake, &wire, piece, NOW).unwrap();
        prop_assert!(plain == sent, "{} up", kind);
        prop_assert_eq!(accepted.uid, (user && kind.has_users()).then_some(42));

        let (sent, wire) = write(&mut accepted.seal, &answers);
        prop_assert!(open_all(&mut open, &wire, piece).unwrap() == sent, "{} down", kind);
    }
}

#[test]
fn the_least_pieces() {
    for kind in ProtocolKind::ALL {
        let (client, server) = pair(kind, true);
        let mut rng = TestRng(1);
        let (mut seal, _) = client.connect_codecs(&[9; 16], NOW, &mut rng).unwrap();
        let (sent, wire) = write(&mut seal, &[30, 2000]);
        let mut handshake = server.new_handshake(&[9; 16], 1460, &mut rng);
        let (plain, _) = serve(&mut handshake, &wire, 1, NOW).unwrap();
        assert!(plain == sent, "{kind}");
    }
}

#[test]
fn a_server_answers_at_once_where_clients_wait() {
    for kind in ProtocolKind::ALL {
        let (client, server) = pair(kind, false);
        let mut rng = TestRng(2);
        let (mut seal, mut open) = client.connect_codecs(&[], NOW, &mut rng).unwrap();
        let (_, wire) = write(&mut seal, &[3]);
        let mut handshake = server.new_handshake(&[], 536, &mut rng);
        let (_, mut accepted) = serve(&mut handshake, &wire, 9000, NOW).unwrap();
        let owes = kind >= ProtocolKind::AuthSha1V2;
        assert_eq!(accepted.seal.must_send_head(), owes, "{kind}");
        let wire = adit_wire::codec_laws::seal_all(&mut accepted.seal, &[], 1).unwrap();
        assert_eq!(wire.is_empty(), !owes, "{kind}");
        assert!(!accepted.seal.must_send_head());
        assert_eq!(open_all(&mut open, &wire, 1), Ok(Vec::new()));
        let mss = (kind >= ProtocolKind::AuthChainA).then_some(536);
        assert_eq!(open.segment_size(), mss, "{kind}");
        // Nothing is owed: an empty payload is not a frame.
        let room = accepted.seal.overhead();
        let mut record = vec![0; room.head + room.tail];
        let range = accepted.seal.seal(&mut record, room.head..room.head);
        assert_eq!(range.map(|r| r.len()), Ok(0));
    }
}

#[test]
fn data_may_be_as_long_as_the_room_says() {
    for kind in ProtocolKind::ALL {
        let (client, server) = pair(kind, false);
        let mut rng = TestRng(3);
        let (mut seal, _) = client.connect_codecs(&[], NOW, &mut rng).unwrap();
        let mut wire = Vec::new();
        for step in 0..3 {
            let room = seal.overhead();
            let max = room.max_payload.min(50_000);
            let mut record = vec![0x33; room.head + max + room.tail];
            if step == 0 {
                record[room.head] = 1;
            }
            let range = seal.seal(&mut record, room.head..room.head + max).unwrap();
            wire.extend_from_slice(&record[range]);
            // One more byte is refused, and changes nothing.
            let room = seal.overhead();
            let mut record = vec![0; room.head + room.max_payload + 1 + room.tail];
            let all = room.head..room.head + room.max_payload + 1;
            assert!(seal.seal(&mut record, all).is_err(), "{kind}");
        }
        let mut handshake = server.new_handshake(&[], 1460, &mut rng);
        assert!(serve(&mut handshake, &wire, 1 << 20, NOW).is_ok(), "{kind}");
    }
}

/// Implementations disagree about the padding of frames with 1,440 bytes of data.
#[test]
fn a_length_that_peers_misread_is_never_sent() {
    for kind in [ProtocolKind::AuthChainB, ProtocolKind::AuthChainC] {
        let (client, server) = pair(kind, false);
        let mut rng = TestRng(4);
        let (mut seal, mut open) = client.connect_codecs(&[], NOW, &mut rng).unwrap();
        let (_, wire) = write(&mut seal, &[100]);
        let mut handshake = server.new_handshake(&[], 1460, &mut rng);
        let (_, mut accepted) = serve(&mut handshake, &wire, 9000, NOW).unwrap();
        // In the first answer the segment size counts too.
        for size in [1438, 1440] {
            let data = vec![1; size];
            let mut wire =
                adit_wire::codec_laws::seal_all(&mut accepted.seal, &data, size).unwrap();
            let mut lengths = Vec::new();
            while let Ok(OpenedFrame::Plain { consumed, payload }) = open.open_frame(&mut wire) {
                lengths.push(payload.len());
                wire.drain(..consumed);
            }
            assert_eq!(lengths, [size - 1, 1], "{kind}");
        }
    }
}
