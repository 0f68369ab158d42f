//! Bytes that were altered, or never were a packet.

use proptest::prelude::*;

use super::*;
use crate::packet::MAX_PACKET_LENGTH;

/// Number of bytes for which an opener may wait when it conceals the failure.
const LONGEST: usize = 4 + MAX_PACKET_LENGTH + 64;

/// True if the opener conceals the failure.
fn hides((_, mac): Suite) -> bool {
    mac.is_some_and(|mac| !mac.is_etm())
}

#[test]
fn every_flipped_bit_is_told() {
    for suite in suites() {
        let good = sealed(&mut pair(suite, Compression::None).0, &bytes(40));
        for bit in 0..good.len() * 8 {
            let (_, mut opener) = pair(suite, Compression::None);
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            match opener.open(&mut bad) {
                // In the length, which increased: the opener waits for the missing bytes.
                Ok(Opened::NeedMore { total }) => {
                    assert!(bit < 32 || hides(suite), "{suite:?}: waits at bit {bit}");
                    assert!(total > bad.len() && total <= LONGEST);
                    // The MAC over the longest packet is slow, so not every bit is tested.
                    if hides(suite) && bit % 13 != 0 {
                        continue;
                    }
                    bad.resize(LONGEST, 0x55);
                    let told = opener.open(&mut bad);
                    assert_eq!(told, Err(SshError::BadTag), "{suite:?}, bit {bit}");
                }
                Ok(Opened::Packet { .. }) => panic!("{suite:?}: bit {bit} went through"),
                Err(SshError::BadTag) => {}
                Err(_) => assert!(
                    bit < 32 && !hides(suite),
                    "{suite:?}: reported at bit {bit}"
                ),
            }
            // The error persists.
            let mut good = good.clone();
            assert!(opener.open(&mut good).is_err());
        }
    }
}

/// Another key, a missing packet, and a repeated packet: each causes a bad tag.
#[test]
fn packets_are_bound_to_key_and_place() {
    for suite in suites() {
        let (mut sealer, mut opener) = pair(suite, Compression::None);
        let (mut one, mut two) = (
            sealed(&mut sealer, b"1234567"),
            sealed(&mut sealer, b"7654321"),
        );
        let told = |opener: &mut Opener, wire: &[u8]| {
            let mut wire = wire.to_vec();
            wire.resize(LONGEST, 0);
            opener.open(&mut wire).is_err()
        };
        assert!(
            told(&mut pair(suite, Compression::None).1, &two),
            "left out: {suite:?}"
        );
        let mut other = Opener::new();
        other
            .set_keys(keys(suite, 2, Compression::None), false)
            .unwrap();
        assert!(told(&mut other, &one), "another key: {suite:?}");
        let again = one.clone();
        open_one(&mut opener, &mut one).unwrap();
        open_one(&mut opener, &mut two).unwrap();
        assert!(told(&mut opener, &again), "twice: {suite:?}");
    }
}

/// A peer learns the same from a bad length as from a bad tag: no response until the same number of
/// bytes was read, and then the same error.
#[test]
fn plain_macs_hide_what_is_wrong() {
    for suite in suites().filter(|suite| hides(*suite)) {
        let good = sealed(&mut pair(suite, Compression::None).0, &bytes(100));
        let tag = suite.1.map_or(0, |mac| mac.key_tag_len().1);
        let longest = 4 + MAX_PACKET_LENGTH + tag;
        let last = good.len() - 1;
        // The length: above the limit, not a multiple, zero; the padding; the tag.
        let changes = [
            (0, 0xff),
            (3, 0x01),
            (3, good[3] ^ 0x7f),
            (4, 0xff),
            (last, 1),
        ];
        for (at, flip) in changes {
            let (_, mut opener) = pair(suite, Compression::None);
            let mut bad = good.clone();
            bad[at] ^= flip;
            let mut asked = 0;
            while let Opened::NeedMore { total } = opener.open(&mut bad).unwrap_or(Opened::Packet {
                consumed: 0,
                payload: PayloadPosition::Inflated,
            }) {
                assert!(
                    total > bad.len() && total <= longest,
                    "{suite:?}, octet {at}"
                );
                asked = total;
                bad.resize(total - 1, 7);
                assert_eq!(opener.open(&mut bad), Ok(Opened::NeedMore { total }));
                bad.push(7);
            }
            assert_eq!(asked, longest, "{suite:?}, octet {at}");
            assert_eq!(opener.open(&mut bad), Err(SshError::BadTag));
        }
    }
}

/// Readable lengths are rejected immediately, without waiting for the bytes that they announce.
#[test]
fn lengths_out_of_bounds() {
    let too_much = SshError::TooMuch {
        what: "packet length",
        limit: MAX_PACKET_LENGTH,
    };
    let malformed = SshError::Malformed("packet length");
    let suites = suites()
        .filter(|suite| !hides(*suite) && suite.0 != Cipher::ChaCha20Poly1305)
        .map(Some)
        .chain([None]);
    for suite in suites {
        let (apart, block) = if suite.is_some() { (0, 16) } else { (4, 8) };
        let opener = || suite.map_or_else(Opener::new, |suite| pair(suite, Compression::None).1);
        let told = |length: u32| opener().open(&mut length.to_be_bytes()[..]).unwrap_err();
        for length in [MAX_PACKET_LENGTH as u32 + 1, 1 << 31, u32::MAX] {
            assert_eq!(told(length), too_much);
        }
        for length in (0..200).filter(|length| (length + apart) % block != 0 || *length < 6) {
            assert_eq!(told(length), malformed, "{suite:?}, {length}");
        }
        let most = (MAX_PACKET_LENGTH as u32 + apart) / block * block - apart;
        for length in [2 * block - apart, most] {
            let tag = suite.map_or(0, |(_, mac)| mac.map_or(16, |mac| mac.key_tag_len().1));
            let total = 4 + length as usize + tag;
            let waits = opener().open(&mut length.to_be_bytes()[..]);
            assert_eq!(waits, Ok(Opened::NeedMore { total }));
        }
    }
}

/// Authentic packets with invalid contents: padding too short or too long, no payload.
#[test]
fn padding_out_of_bounds() {
    for padding in 0..=255u8 {
        let mut wire = [0, 0, 0, 28, padding].to_vec();
        wire.resize(32, 1);
        let told = Opener::new().open(&mut wire);
        match padding {
            4..=26 => {
                let payload = PayloadPosition::Wire(5..32 - usize::from(padding));
                let consumed = 32;
                assert_eq!(told, Ok(Opened::Packet { consumed, payload }));
            }
            _ => assert_eq!(told, Err(SshError::Malformed("padding")), "{padding}"),
        }
    }
}

#[test]
fn what_is_printed_tells_no_secret() {
    for suite in suites() {
        let (sealer, opener) = pair(suite, Compression::None);
        let text = format!(
            "{sealer:?} {opener:?} {:?}",
            keys(suite, 0xab, Compression::None)
        );
        assert!(
            text.contains("***") && !text.contains("171") && !text.contains("[1"),
            "{text}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Any bytes in any parts with any keys: no panic, no waiting beyond the limit, and no payload
    /// unless unencrypted.
    #[test]
    fn no_bytes_panic(
        which in 0usize..40,
        mut wire in proptest::collection::vec(any::<u8>(), 0..400),
        small in any::<bool>(),
        cuts in proptest::collection::vec(0usize..400, 0..6),
    ) {
        let suite = suites().nth(which);
        let mut opener = suite.map_or_else(Opener::new, |suite| pair(suite, Compression::None).1);
        if let (true, Some(length)) = (small, wire.get_mut(..3)) {
            length.copy_from_slice(&[0, 0, 0]);
        }
        let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(wire.len())).collect();
        cuts.sort_unstable();
        cuts.push(wire.len());
        for cut in cuts {
            match opener.open(&mut wire[..cut]) {
                Ok(Opened::NeedMore { total }) => prop_assert!(total > cut && total <= LONGEST),
                Ok(Opened::Packet { consumed, payload }) => {
                    prop_assert!(suite.is_none(), "{:?} opened anything", suite);
                    prop_assert!(!opener.payload(&wire, &payload).is_empty());
                    prop_assert!(consumed <= cut);
                    break;
                }
                Err(_) => break,
            }
        }
    }
}
