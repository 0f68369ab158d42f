//! Tests for every kind: lengths, batches, paths, damage.

use proptest::prelude::*;

use super::*;

#[test]
fn every_length_comes_back() {
    for (kind, check) in all() {
        let key = PacketKey::from_key(kind, check, &KEY).unwrap();
        assert_eq!(key.overhead_len(), kind.overhead_len(check));
        let mut rng = Counting(1);
        let longest = (1500 - key.overhead_len()).min(key.overhead_layout().max_payload);
        let text = payload(longest);
        let mut memory = vec![0; 1500 + 2];
        for len in 0..=longest {
            let at = 1 + key.overhead_layout().head;
            memory.fill(0x5a);
            memory[at..at + len].copy_from_slice(&text[..len]);
            let end = 1 + len + key.overhead_len();
            let packet = &mut memory[1..end];
            key.seal(packet, &mut rng).unwrap();
            let long = kind != PacketKind::Null && kind != PacketKind::None && len >= 16;
            assert!(
                !long || packet[at - 1..at - 1 + len] != text[..len],
                "{kind}, {len}"
            );
            let range = key.open(packet).unwrap();
            assert!(packet[range] == text[..len], "{kind}, {check:?}, {len}");
            // In place, and nowhere else.
            assert!(memory[0] == 0x5a && memory[end..].iter().all(|byte| *byte == 0x5a));
        }
    }
}

#[test]
fn paths_agree() {
    let text = payload(1470);
    for kind in [
        PacketKind::Salsa20,
        PacketKind::Tea,
        PacketKind::Xtea,
        PacketKind::Xor,
    ] {
        let on = |path| PacketKey::new_on_path(path, kind, PacketCheck::Crc32, &KEY).unwrap();
        let paths: Vec<PacketKey> = CpuPath::available().map(on).collect();
        for len in (0..200).chain([511, 1024, 1470]) {
            let [expected, others @ ..] = &paths[..] else {
                panic!("no path")
            };
            let packet = sealed(expected, &text[..len], &KEY[..16]);
            for other in others {
                assert!(
                    sealed(other, &text[..len], &KEY[..16]) == packet,
                    "{kind}, {len}"
                );
                assert_eq!(opened(other, &packet).unwrap(), text[..len], "{kind}");
            }
        }
    }
}

#[test]
fn damage_and_wrong_keys_are_found() {
    let other = PacketKey::from_key;
    for (kind, check) in all() {
        let key = other(kind, check, &KEY).unwrap();
        let packet = sealed(&key, &payload(60), &KEY[..16]);
        if kind == PacketKind::Null {
            assert_eq!(opened(&key, &packet), Ok(packet));
            continue;
        }
        // Neither the cipher nor the CRC covers the whole nonce.
        let covered = match (kind, check) {
            (PacketKind::Aes128Gcm, _) | (_, PacketCheck::HighwayHash) => 0..packet.len(),
            (_, PacketCheck::Crc32) => 16..packet.len(),
        };
        for bit in covered.start * 8..covered.end * 8 {
            let mut bad = packet.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(
                opened(&key, &bad),
                Err(CryptoError::Unauthentic),
                "{kind}, {bit}"
            );
        }
        for len in 0..packet.len() {
            assert_eq!(
                opened(&key, &packet[..len]),
                Err(CryptoError::Unauthentic),
                "{kind}, {len}"
            );
        }
        let wrong = other(kind, check, &[7; 32]).unwrap();
        if kind != PacketKind::None || check == PacketCheck::HighwayHash {
            assert_eq!(
                opened(&wrong, &packet),
                Err(CryptoError::Unauthentic),
                "{kind}"
            );
        }
    }
}

/// Returns the packets as a batch.
fn slices(packets: &mut [Vec<u8>]) -> Vec<&mut [u8]> {
    packets.iter_mut().map(Vec::as_mut_slice).collect()
}

#[test]
fn packets_without_room_stay_as_they_are() {
    for (kind, check) in all() {
        let key = PacketKey::from_key(kind, check, &KEY).unwrap();
        let mut rng = Counting(3);
        for len in 0..key.overhead_len() {
            let mut packet = vec![9; len];
            assert_eq!(key.seal(&mut packet, &mut rng), Err(CryptoError::NoRoom));
            assert_eq!(packet, vec![9; len]);
            let mut batch = [vec![9; 100], packet];
            let sealed = key.seal_batch(&mut slices(&mut batch), &mut rng);
            assert_eq!(sealed, Err(CryptoError::NoRoom));
            assert_eq!(batch[0], [9; 100]);
        }
    }
    let key = PacketKey::from_key(PacketKind::Xor, PacketCheck::Crc32, &KEY).unwrap();
    assert!(key.seal(&mut [1; 1500], &mut Counting(3)).is_ok());
    assert_eq!(
        key.seal(&mut [1; 1501], &mut Counting(3)),
        Err(CryptoError::TooLong)
    );
    assert_eq!(key.open(&mut [1; 1501]), Err(CryptoError::Unauthentic));
}

#[test]
fn chains_in_step_equal_each_alone() {
    for (path, kind) in CpuPath::available().flat_map(|path| {
        [PacketKind::Aes128, PacketKind::Aes192, PacketKind::Aes].map(|kind| (path, kind))
    }) {
        let key = PacketKey::new_on_path(path, kind, PacketCheck::Crc32, &KEY).unwrap();
        for count in 0..=33 {
            for length in [|_: usize| 1372, |at| 40 + at * 7 % 90, |at| at % 3] {
                let texts: Vec<Vec<u8>> = (0..count).map(length).map(payload).collect();
                let mut together: Vec<_> = texts.iter().map(|text| roomy(&key, text)).collect();
                let mut alone = together.clone();
                let mut rng = Counting(1);
                for packet in &mut alone {
                    key.seal(packet, &mut rng).unwrap();
                }
                key.seal_batch(&mut slices(&mut together), &mut Counting(1))
                    .unwrap();
                assert!(together == alone, "{path:?}, {kind}, {count} packets");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_batch_equals_its_packets(
        kind in prop::sample::select(&PacketKind::ALL[..]), highway in any::<bool>(),
        lengths in proptest::collection::vec(0..700usize, 0..30), seed in any::<u8>(),
    ) {
        let check = if highway { PacketCheck::HighwayHash } else { PacketCheck::Crc32 };
        let key = PacketKey::from_key(kind, check, &[seed; 32]).unwrap();
        let texts: Vec<Vec<u8>> = lengths.into_iter().map(payload).collect();
        let mut rng = Counting(seed);
        let alone: Vec<Vec<u8>> = texts.iter().map(|text| {
            let mut packet = roomy(&key, text);
            key.seal(&mut packet, &mut rng).unwrap();
            packet
        }).collect();
        let mut together: Vec<Vec<u8>> = texts.iter().map(|text| roomy(&key, text)).collect();
        key.seal_batch(&mut slices(&mut together), &mut Counting(seed)).unwrap();
        prop_assert_eq!(&together, &alone);

        // One of them is damaged; the others are opened.
        let bad = together.len() / 2;
        let damaged = kind != PacketKind::Null && !together.is_empty();
        if damaged {
            let last = together[bad].len() - 1;
            together[bad][last] ^= 1;
        }
        let mut seen = 0;
        key.open_batch(&mut slices(&mut together), &mut |place, opened| {
            if damaged && place == bad {
                assert_eq!(opened, Err(CryptoError::Unauthentic));
            } else {
                assert_eq!(opened.unwrap(), &texts[place][..]);
            }
            seen += 1;
        });
        prop_assert_eq!(seen, texts.len());
    }

    #[test]
    fn noise_is_refused(
        kind in prop::sample::select(&PacketKind::ALL[..]), highway in any::<bool>(),
        mut noise in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let check = if highway { PacketCheck::HighwayHash } else { PacketCheck::Crc32 };
        let key = PacketKey::from_key(kind, check, &KEY).unwrap();
        let len = noise.len();
        let opened = key.open(&mut noise);
        if kind == PacketKind::Null {
            prop_assert_eq!(opened, Ok(0..len));
        } else {
            prop_assert_eq!(opened, Err(CryptoError::Unauthentic));
        }
    }
}

#[test]
fn debug_prints_the_kind_alone() {
    let key = PacketKey::from_key(PacketKind::TripleDes, PacketCheck::Crc32, &KEY).unwrap();
    assert_eq!(format!("{key:?}"), "PacketKey(3des)");
    assert_eq!(key.kind(), PacketKind::TripleDes);
}
