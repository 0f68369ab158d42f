//! Sealed packets can be opened: every cipher and MAC, every length, any parts, new keys.

use super::*;
use crate::packet::{HEAD_LEN, MAX_PACKET_LENGTH, MAX_PAYLOAD};

fn there_and_back(sealer: &mut Sealer, opener: &mut Opener, lens: impl Iterator<Item = usize>) {
    let mut wire = Vec::new();
    for len in lens {
        let payload = bytes(len);
        wire.clear();
        sealer.seal(&payload, &mut wire).unwrap();
        // Bytes after the packet are not touched.
        wire.extend_from_slice(b"behind");
        let (found, consumed) = open_one(opener, &mut wire).unwrap();
        assert!(found == payload, "{opener:?}, {len}");
        assert_eq!(&wire[consumed..], b"behind");
    }
}

#[test]
fn every_suite_at_every_length() {
    for suite in suites() {
        let (mut sealer, mut opener) = pair(suite, Compression::None);
        let lens = (1..=600).chain([1023, 4096, 32 * 1024 + 9, 65_536, MAX_PAYLOAD]);
        there_and_back(&mut sealer, &mut opener, lens);
        assert_eq!(sealer.sequence(), 605);
        let told = |packets, bytes| (packets, bytes);
        assert_eq!(
            told(sealer.packets(), sealer.bytes()),
            told(opener.packets(), opener.bytes())
        );
    }
    let lens = (1..=600).chain([4096, MAX_PAYLOAD]);
    there_and_back(&mut Sealer::new(), &mut Opener::new(), lens);
}

/// RFC 4253 section 6: the padding, and the multiple that it completes.
#[test]
fn packets_have_the_form_of_the_rfc() {
    for suite in suites() {
        let (cipher, mac) = suite;
        let (mut sealer, mut opener) = pair(suite, Compression::None);
        let apart = cipher.is_aead() || mac.is_some_and(Mac::is_etm);
        let tag = mac.map_or(16, |mac| mac.key_tag_len().1);
        for len in 1..100 {
            let mut wire = sealed(&mut sealer, &bytes(len));
            let padded = wire.len() - tag - if apart { 4 } else { 0 };
            assert_eq!(padded % cipher.block_len(), 0, "{suite:?}");
            assert!(wire.len() - tag < 4 + 1 + len + 4 + cipher.block_len());
            let whole = wire.len();
            let Opened::Packet { consumed, payload } = opener.open(&mut wire).unwrap() else {
                panic!("whole");
            };
            assert_eq!(
                (consumed, payload),
                (whole, PayloadPosition::Wire(5..5 + len))
            );
            let padding = usize::from(wire[4]);
            assert!(padding >= 4 && padding + len + 1 + 4 == whole - tag);
        }
    }
}

#[test]
fn byte_by_byte() {
    for suite in suites() {
        let (mut sealer, mut opener) = pair(suite, Compression::None);
        for len in [1, 17, 300] {
            let payload = bytes(len);
            let wire = sealed(&mut sealer, &payload);
            // The caller's buffer, part of which the opener may have changed.
            let mut buffer = Vec::new();
            let mut wanted = 0;
            for (i, byte) in wire.iter().enumerate() {
                match opener.open(&mut buffer).unwrap() {
                    Opened::NeedMore { total } => {
                        assert!(total > i && total <= wire.len() && total >= wanted);
                        wanted = total;
                    }
                    Opened::Packet { .. } => panic!("{suite:?}: opened at {i} of {}", wire.len()),
                }
                buffer.push(*byte);
            }
            assert_eq!(wanted, wire.len());
            assert_eq!(
                open_one(&mut opener, &mut buffer),
                Ok((payload, wire.len()))
            );
        }
    }
}

/// Many packets in one buffer, one after the other.
#[test]
fn packets_in_a_row() {
    for suite in suites() {
        let (mut sealer, mut opener) = pair(suite, Compression::None);
        let mut wire = b"before".to_vec();
        for len in 1..50 {
            let start = sealer.begin_packet(&mut wire);
            assert_eq!(wire.len(), start + HEAD_LEN);
            wire.extend_from_slice(&bytes(len));
            sealer.seal_begun(start, &mut wire).unwrap();
        }
        assert_eq!(&wire[..6], b"before");
        let mut rest = &mut wire[6..];
        for len in 1..50 {
            let (payload, consumed) = open_one(&mut opener, rest).unwrap();
            assert_eq!(payload, bytes(len));
            rest = &mut rest[consumed..];
        }
        assert!(rest.is_empty());
        assert_eq!(opener.open(rest), opener.open(&mut []));
    }
}

/// A key exchange between two packets of one buffer: bytes after NEWKEYS are not read before the
/// new keys are set. With strict kex, the sequence numbers restart; otherwise, they continue.
#[test]
fn new_keys_take_over() {
    let all: Vec<_> = suites().collect();
    for (i, &suite) in all.iter().enumerate() {
        let next = all[(i + 7) % all.len()];
        for reset in [false, true] {
            let (mut sealer, mut opener) = pair(suite, Compression::None);
            let mut wire = sealed(&mut sealer, b"one");
            sealer.seal(b"two", &mut wire).unwrap();
            sealer
                .set_keys(keys(next, 9, Compression::None), reset)
                .unwrap();
            assert_eq!((sealer.packets(), sealer.bytes()), (0, 0));
            sealer.seal(b"three", &mut wire).unwrap();
            let (one, n) = open_one(&mut opener, &mut wire).unwrap();
            let (two, m) = open_one(&mut opener, &mut wire[n..]).unwrap();
            opener
                .set_keys(keys(next, 9, Compression::None), reset)
                .unwrap();
            let (three, _) = open_one(&mut opener, &mut wire[n + m..]).unwrap();
            assert_eq!([one, two, three], [&b"one"[..], b"two", b"three"]);
            let sequence = if reset { 1 } else { 3 };
            assert_eq!((sealer.sequence(), opener.sequence()), (sequence, sequence));
            assert_eq!(opener.packets(), 1);
        }
    }
}

#[test]
fn sequence_numbers_wrap() {
    for suite in suites() {
        let (mut sealer, mut opener) = pair(suite, Compression::None);
        (sealer.count.sequence, opener.count.sequence) = (u32::MAX - 3, u32::MAX - 3);
        there_and_back(&mut sealer, &mut opener, 1..20);
        assert_eq!((sealer.sequence(), opener.sequence()), (15, 15));
    }
}

#[test]
fn keys_are_used_up() {
    let suite = (Cipher::Aes128Ctr, Some(Mac::Umac64Etm));
    let (mut sealer, mut opener) = pair(suite, Compression::None);
    (sealer.count.packets, opener.count.packets) = (u64::from(u32::MAX), u64::from(u32::MAX));
    there_and_back(&mut sealer, &mut opener, 5..6);
    let mut out = b"before".to_vec();
    let used_up = SshError::Crypto("keys are exhausted");
    assert_eq!(sealer.seal(b"payload", &mut out), Err(used_up.clone()));
    assert_eq!(out, b"before");
    assert_eq!(opener.open(&mut [0; 100]), Err(used_up));
    // The first exchange is unencrypted.
    let mut clear = Sealer::new();
    clear.count.packets = 1 << 32;
    assert!(clear.seal(b"payload", &mut out).is_err());
}

#[test]
fn payloads_out_of_bounds_are_not_sealed() {
    let mut sealer = Sealer::new();
    let mut out = b"before".to_vec();
    assert!(matches!(
        sealer.seal(&[], &mut out),
        Err(SshError::Malformed(_))
    ));
    let long = vec![0; MAX_PAYLOAD + 1];
    assert!(matches!(
        sealer.seal(&long, &mut out),
        Err(SshError::TooMuch { .. })
    ));
    assert!(
        sealer.seal_begun(100, &mut out).is_err(),
        "nothing was begun there"
    );
    assert_eq!(
        (&out[..], sealer.sequence(), sealer.packets()),
        (&b"before"[..], 0, 0)
    );
    for suite in suites() {
        let (mut sealer, _) = pair(suite, Compression::None);
        let wire = sealed(&mut sealer, &long[1..]);
        assert!(wire.len() <= 4 + MAX_PACKET_LENGTH + 64);
    }
}

#[test]
fn keys_of_wrong_lengths_are_refused() {
    for suite in suites() {
        let wrong: [fn(&mut DirectionKeys); 4] = [
            |keys| keys.key.expose_mut().push(0),
            |keys| keys.iv.expose_mut().push(0),
            |keys| _ = keys.key.expose_mut().pop(),
            |keys| _ = keys.mac_key.expose_mut().pop(),
        ];
        let aead = suite.0.is_aead();
        for change in wrong.iter().take(if aead { 3 } else { 4 }) {
            let (mut sealer, mut opener) = pair((Cipher::Aes128Gcm, None), Compression::None);
            let changed = || {
                let mut keys = keys(suite, 1, Compression::None);
                change(&mut keys);
                keys
            };
            assert!(matches!(
                sealer.set_keys(changed(), true),
                Err(SshError::Crypto(_))
            ));
            assert!(matches!(
                opener.set_keys(changed(), true),
                Err(SshError::Crypto(_))
            ));
            // The old keys are still in use.
            there_and_back(&mut sealer, &mut opener, 1..3);
        }
    }
    let bare = keys((Cipher::Aes128Ctr, None), 1, Compression::None);
    assert!(Sealer::new().set_keys(bare, false).is_err());
}
