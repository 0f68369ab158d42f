//! Tests of sender and receiver: losses, order, the end of the numbers, and hostile packets.

use proptest::prelude::*;

use super::{TestRng, decoder, drain, encoder, groups, recovered, seal};
use crate::{CodeMatrix, Decoder, Encoder, ErasureCode, HEADER, Packet};
use adit_wire::Time;

#[test]
fn losses_up_to_the_parity_come_back_in_any_order() {
    for seed in 0..40 {
        let mut rng = TestRng(seed);
        let mut sender = encoder(10, 3);
        let mut receiver = decoder(10, 3);
        let (packets, datagrams) = groups(&mut sender, &mut rng, 10, 3);
        let mut seen = Vec::new();
        let mut lost = Vec::new();
        for group in packets.chunks(13) {
            let mut group = group.to_vec();
            for i in 0..3 {
                let last = group.len() - 1;
                lost.push(group.remove(rng.below(last + 1 - i % 2)));
            }
            for i in (1..group.len()).rev() {
                group.swap(i, rng.below(i + 1));
            }
            for packet in &group {
                if let Some(Packet::Data { datagram, .. }) = Packet::parse(packet) {
                    seen.push(datagram.to_vec());
                }
                seen.append(&mut recovered(&mut receiver, packet));
                // A duplicate changes nothing.
                assert!(recovered(&mut receiver, packet).is_empty());
            }
        }
        seen.sort();
        let mut expected = datagrams.clone();
        expected.sort();
        assert_eq!(seen, expected);
        let lost_data = lost
            .iter()
            .filter(|p| matches!(Packet::parse(p), Some(Packet::Data { .. })));
        assert_eq!(receiver.counters().recovered, lost_data.count() as u64);
        assert_eq!(receiver.counters().errors, 0);
    }
}

#[test]
fn four_groups_may_be_mixed() {
    let mut rng = TestRng(5);
    let (packets, datagrams) = groups(&mut encoder(4, 2), &mut rng, 4, 5);
    let mut receiver = decoder(4, 2);
    // The first two of each group are lost; shards arrive index by index, over four groups.
    let mut restored = Vec::new();
    for place in 2..6 {
        for group in 0..4 {
            restored.append(&mut recovered(&mut receiver, &packets[group * 6 + place]));
        }
    }
    let expected: Vec<_> = datagrams
        .chunks(4)
        .take(4)
        .flat_map(|g| g[..2].to_vec())
        .collect();
    assert_eq!(restored, expected);
    // Of five groups, the first is dropped.
    let mut receiver = decoder(4, 2);
    let mut count = 0;
    for place in 2..6 {
        for group in 0..5 {
            count += recovered(&mut receiver, &packets[group * 6 + place]).len();
        }
    }
    assert_eq!(count, 8);
}

#[test]
fn groups_around_the_end_of_the_numbers() {
    let mut sender = encoder(3, 2);
    sender.start_at(u32::MAX - 20);
    let (packets, datagrams) = groups(&mut sender, &mut TestRng(3), 3, 8);
    let mut receiver = decoder(3, 2);
    let mut restored = Vec::new();
    for group in packets.chunks(5) {
        for packet in &group[1..] {
            restored.append(&mut recovered(&mut receiver, packet));
        }
    }
    let expected: Vec<_> = datagrams.iter().step_by(3).cloned().collect();
    assert_eq!(restored, expected);
}

#[test]
fn a_pause_within_a_group_costs_its_parity() {
    let mut sender = encoder(2, 1);
    seal(&mut sender, 0, b"one");
    seal(&mut sender, 499_999, b"two");
    assert_eq!(drain(&mut sender).len(), 1);
    seal(&mut sender, 500_000, b"three");
    let last = seal(&mut sender, 1_000_000, b"four");
    assert_eq!(drain(&mut sender).len(), 0);
    assert_eq!(last[0], 4, "the numbers of the first parity were used");
    assert_eq!(
        seal(&mut sender, 1_000_000, b"five")[0],
        6,
        "and so were the second's"
    );
}

#[test]
fn shard_numbers_are_measured() {
    for matrix in [CodeMatrix::Vandermonde, CodeMatrix::Cauchy] {
        for (data, parity) in [(10, 3), (3, 1), (1, 1), (20, 5)] {
            let code = ErasureCode::new(matrix, data, parity).unwrap();
            let mut sender = Encoder::new(code, 1400).unwrap();
            let told = Decoder::new(ErasureCode::new(matrix, 7, 2).unwrap(), 1400);
            for mut receiver in [Decoder::with_unknown_shards(matrix, 1400), told] {
                let (packets, _) = groups(&mut sender, &mut TestRng(1), data, 9);
                let mut restored = 0;
                for packet in &packets {
                    restored += recovered(&mut receiver, packet).len();
                }
                assert_eq!(restored, 0, "nothing was lost");
                assert_eq!(receiver.known_shards(), Some((data, parity)));
                let (packets, datagrams) = groups(&mut sender, &mut TestRng(2), data, 1);
                let restored: Vec<_> = packets[1..]
                    .iter()
                    .flat_map(|p| recovered(&mut receiver, p))
                    .collect();
                assert_eq!(restored, datagrams[..1]);
            }
        }
    }
}

#[test]
fn one_wrong_kind_does_not_lose_what_was_known() {
    let mut sender = encoder(10, 3);
    let mut receiver = decoder(10, 3);
    let (packets, datagrams) = groups(&mut sender, &mut TestRng(1), 10, 20);
    for packet in &packets[..130] {
        assert_eq!(recovered(&mut receiver, packet).len(), 0);
    }
    let mut wrong = packets[131].clone();
    wrong[4] = 0xf2;
    recovered(&mut receiver, &wrong);
    assert_eq!(receiver.known_shards(), Some((10, 3)));
    let restored: Vec<_> = packets[131..143]
        .iter()
        .flat_map(|p| recovered(&mut receiver, p))
        .collect();
    assert_eq!(restored, datagrams[100..101]);
}

#[test]
fn a_number_far_ahead_is_forgiven() {
    let mut sender = encoder(3, 2);
    let (packets, datagrams) = groups(&mut sender, &mut TestRng(1), 3, 10);
    let mut receiver = decoder(3, 2);
    for packet in &packets[..5] {
        recovered(&mut receiver, packet);
    }
    let mut far = packets[5].clone();
    far[..4].copy_from_slice(&(5u32 << 24).to_le_bytes());
    recovered(&mut receiver, &far);
    let restored: Vec<_> = packets[5..]
        .chunks(5)
        .flat_map(|group| {
            group[1..]
                .iter()
                .flat_map(|p| recovered(&mut receiver, p))
                .collect::<Vec<_>>()
        })
        .collect();
    assert!(!restored.is_empty());
    assert_eq!(restored.last(), datagrams.get(27));
}

#[test]
fn parity_that_does_not_belong_restores_nothing() {
    let mut sender = encoder(3, 2);
    let (packets, _) = groups(&mut sender, &mut TestRng(1), 3, 2);
    // Shorter than a data shard of its group.
    let mut receiver = decoder(3, 2);
    recovered(&mut receiver, &packets[0]);
    recovered(&mut receiver, &packets[1]);
    assert_eq!(recovered(&mut receiver, &packets[3][..8]).len(), 0);
    assert_eq!(receiver.counters().errors, 1);
    // Parity of two lengths.
    let mut receiver = decoder(3, 2);
    recovered(&mut receiver, &packets[0]);
    recovered(&mut receiver, &packets[3]);
    assert_eq!(recovered(&mut receiver, &packets[4][..20]).len(), 0);
    assert_eq!(receiver.counters().errors, 1);
    // With other bytes: the restored size is wrong.
    let mut receiver = decoder(3, 2);
    recovered(&mut receiver, &packets[0]);
    recovered(&mut receiver, &packets[1]);
    let mut wrong = packets[3].clone();
    wrong[7] ^= 0xff;
    assert_eq!(recovered(&mut receiver, &wrong).len(), 0);
    assert_eq!(receiver.counters().errors, 1);
    // Longer than a datagram may be.
    let mut receiver = decoder(3, 2);
    wrong.resize(1500, 0);
    assert_eq!(recovered(&mut receiver, &wrong).len(), 0);
    assert_eq!(receiver.counters().errors, 1);
}

#[test]
fn memory_is_bounded_and_reused() {
    let mut sender = encoder(10, 3);
    let mut receiver = decoder(10, 3);
    let (packets, _) = groups(&mut sender, &mut TestRng(1), 10, 300);
    for group in packets.chunks(13) {
        for packet in &group[..9] {
            recovered(&mut receiver, packet);
        }
        assert!(receiver.buffers() <= 4 * 9);
    }
    receiver.release_memory();
    assert_eq!(receiver.buffers(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn any_packets_are_handled(packets in proptest::collection::vec(
        (prop_oneof![0u32..60, any::<u32>()], 0u8..4, proptest::collection::vec(any::<u8>(), 0..40), any::<bool>()), 0..120,
    ), data in 1usize..6, parity in 1usize..5) {
        let mut receiver = decoder(data, parity);
        for (seqid, kind, body, honest) in packets {
            let size = if honest { body.len() + 2 } else { 77 };
            let mut packet = seqid.to_le_bytes().to_vec();
            packet.extend([0xf0 + kind, 0]);
            packet.extend(u16::try_from(size).unwrap().to_le_bytes());
            packet.extend(&body);
            for datagram in recovered(&mut receiver, &packet) {
                prop_assert!(datagram.len() <= 1400);
            }
            prop_assert!(receiver.buffers() <= 4 * (data + parity));
        }
    }
}

#[test]
fn an_encoder_goes_on_where_another_stood() {
    let code = ErasureCode::vandermonde(3, 2).unwrap();
    let mut numbers = Vec::new();
    let mut parity = 0;
    let mut encoder = Encoder::new(code.clone(), 100).unwrap();
    for at in 0..11_u8 {
        // Closed and created again in the middle of the second group.
        if at == 4 {
            let position = encoder.position();
            encoder = Encoder::resume(code.clone(), 100, position).unwrap();
            assert_eq!(encoder.position(), position);
        }
        let mut packet = [0; HEADER + 5];
        encoder.seal(Time(0), &mut packet).unwrap();
        numbers.push(u32::from_le_bytes([
            packet[0], packet[1], packet[2], packet[3],
        ]));
        let mut out = [0; 200];
        while encoder.poll_output(&mut out).is_some() {
            parity += 1;
        }
    }
    assert_eq!(numbers, [0, 1, 2, 5, 6, 7, 10, 11, 12, 15, 16]);
    // The first group of an encoder gets its parity only if its datagrams are continuous; the group that
    // was open gets none.
    assert_eq!(parity, 4);
}
