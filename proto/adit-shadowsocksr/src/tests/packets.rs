//! Packets of every protocol, with and without users.

use adit_wire::ProtocolError;
use proptest::prelude::*;

use super::{TestRng, pair};
use crate::{PACKET_TAIL, ProtocolKind};

/// True if the protocol's packets have a tag.
fn tagged(kind: ProtocolKind) -> bool {
    kind.has_users()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn both_ways(
        kind in proptest::sample::select(ProtocolKind::ALL.to_vec()), user in any::<bool>(),
        data in proptest::collection::vec(any::<u8>(), 7..1500), seed in any::<u64>(),
    ) {
        let (client, server) = pair(kind, user);
        let mut rng = TestRng(seed);
        let association = client.new_association(&mut rng);
        let mut packet = data.clone();
        packet.resize(data.len() + PACKET_TAIL, 0);
        let range = association.seal_packet(&mut packet, 0..data.len(), &mut rng).unwrap();
        let wire = &mut packet[range];
        let (uid, payload) = server.open_packet(wire).unwrap();
        prop_assert_eq!(&wire[payload], &data);
        prop_assert_eq!(uid, (user && tagged(kind)).then_some(42));

        let mut packet = data.clone();
        packet.resize(data.len() + PACKET_TAIL, 0);
        let range = server.seal_packet(uid, &mut packet, 0..data.len(), &mut rng).unwrap();
        let wire = &mut packet[range];
        let payload = association.open_packet(wire).unwrap();
        prop_assert_eq!(&wire[payload], &data);
    }

    #[test]
    fn any_bytes_are_handled(
        kind in proptest::sample::select(ProtocolKind::ALL.to_vec()),
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let (client, server) = pair(kind, false);
        let inside = |end| end <= bytes.len();
        if let Ok((_, payload)) = server.open_packet(&mut bytes.clone()) {
            prop_assert!(inside(payload.end));
        }
        let association = client.new_association(&mut TestRng(1));
        if let Ok(payload) = association.open_packet(&mut bytes.clone()) {
            prop_assert!(inside(payload.end));
        }
    }
}

#[test]
fn strangers_and_altered_packets_are_dropped() {
    for kind in ProtocolKind::ALL.into_iter().filter(|kind| tagged(*kind)) {
        let (stranger, _) = pair(kind, false);
        let (client, server) = pair(kind, true);
        let mut rng = TestRng(5);
        let sealed = |client: &crate::ProtocolClient, rng: &mut TestRng| {
            let mut packet = vec![0; 100 + PACKET_TAIL];
            let association = client.new_association(rng);
            let range = association.seal_packet(&mut packet, 0..100, rng).unwrap();
            packet[range].to_vec()
        };
        let mut packet = sealed(&stranger, &mut rng);
        assert_eq!(
            server.open_packet(&mut packet),
            Err(ProtocolError::Unauthentic)
        );
        let packet = sealed(&client, &mut rng);
        let (mut flipped, mut missed) = (0, 0);
        for bit in 0..packet.len() * 8 {
            let mut packet = packet.clone();
            packet[bit / 8] ^= 1 << (bit % 8);
            flipped += 1;
            missed += u32::from(server.open_packet(&mut packet).is_ok());
        }
        // A tag of one byte misses one change in 256; the others none.
        let chain = kind >= ProtocolKind::AuthChainA;
        assert!(
            missed <= if chain { flipped / 64 } else { 0 },
            "{kind} {missed}"
        );
        for len in 0..=8 {
            assert!(server.open_packet(&mut vec![0; len]).is_err());
        }
    }
}
