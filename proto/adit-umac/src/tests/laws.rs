//! Properties of all messages: splits do not matter, every bit does.

use std::format;
use std::vec::Vec;

use proptest::prelude::*;

use super::{levels, noise};
use crate::{Nonce, Tag, Umac, UmacSession, WrongTag};

fn pieces<const TAG: usize>(umac: &Umac<TAG>, nonce: Nonce, parts: &[&[u8]]) -> Tag<TAG> {
    let mut hasher = umac.new_hasher();
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finish_tag(nonce)
}

fn splits_agree<const TAG: usize>(key: &[u8; 16], message: &[u8], cuts: &[usize]) {
    let umac = Umac::<TAG>::new(key);
    let nonce = Nonce::from(1);
    let (mut parts, mut rest) = (Vec::new(), message);
    for cut in cuts {
        // Includes empty parts.
        let (part, tail) = rest.split_at((*cut).min(rest.len()));
        parts.push(part);
        rest = tail;
    }
    parts.push(rest);
    assert_eq!(
        pieces(&umac, nonce, &parts),
        umac.compute_tag(nonce, message)
    );
}

proptest! {
    #[test]
    fn splits_do_not_matter(
        key: [u8; 16],
        message in prop::collection::vec(any::<u8>(), 0..5000),
        cuts in prop::collection::vec(prop_oneof![0..40usize, 0..2000usize], 0..40),
    ) {
        splits_agree::<4>(&key, &message, &cuts);
        splits_agree::<8>(&key, &message, &cuts);
        splits_agree::<12>(&key, &message, &cuts);
        splits_agree::<16>(&key, &message, &cuts);
    }

    #[test]
    fn a_session_gives_the_tags_of_its_key(
        key: [u8; 16],
        numbers in prop::collection::vec(0..12u64, 1..40),
        message in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        fn check<const TAG: usize>(key: &[u8; 16], numbers: &[u64], message: &[u8]) {
            let (umac, mut session) = (Umac::<TAG>::new(key), UmacSession::<TAG>::new(key));
            for number in numbers {
                let nonce = Nonce::from(*number);
                let right = umac.compute_tag(nonce, message);
                assert_eq!(session.compute_tag(nonce, message), right);
                let mut hasher = session.new_hasher();
                hasher.update(message);
                assert_eq!(hasher.verify_tag(nonce, right.as_ref()), Ok(()));
            }
        }
        check::<4>(&key, &numbers, &message);
        check::<8>(&key, &numbers, &message);
        check::<12>(&key, &numbers, &message);
        check::<16>(&key, &numbers, &message);
    }
}

#[test]
fn every_bit_matters() {
    fn check<const TAG: usize>(length: usize) {
        let umac = Umac::<TAG>::new(b"abcdefghijklmnop");
        let nonce = Nonce::from(6);
        let mut message = noise(1, length);
        let right = umac.compute_tag(nonce, &message);
        for bit in 0..8 * length {
            message[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(
                umac.verify_tag(nonce, &message, right.as_ref()),
                Err(WrongTag)
            );
            message[bit / 8] ^= 1 << (bit % 8);
        }
        for bit in 0..8 * TAG {
            let mut wrong = right.into_array();
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(umac.verify_tag(nonce, &message, &wrong), Err(WrongTag));
        }
        for other in (0..64).filter(|n| *n != 6) {
            let nonce = Nonce::from(other);
            assert_eq!(
                umac.verify_tag(nonce, &message, right.as_ref()),
                Err(WrongTag)
            );
        }
        for other in [length + 1, length + 31, length + 1024] {
            let mut longer = message.clone();
            longer.resize(other, 0);
            assert_eq!(
                umac.verify_tag(nonce, &longer, right.as_ref()),
                Err(WrongTag)
            );
        }
        assert_eq!(umac.verify_tag(nonce, &message, right.as_ref()), Ok(()));
    }
    for length in [0, 1, 31, 32, 100, 1024, 1025, 2100] {
        check::<4>(length);
        check::<8>(length);
        check::<12>(length);
        check::<16>(length);
    }
}

#[test]
fn tags_of_other_lengths_are_wrong() {
    let umac = Umac::<8>::new(&[3; 16]);
    let nonce = Nonce::from(2);
    let tag = umac.compute_tag(nonce, b"x");
    let long = Umac::<16>::new(&[3; 16]).compute_tag(nonce, b"x");
    for wrong in [
        &[][..],
        &tag.as_ref()[..7],
        &tag.as_ref()[..4],
        long.as_ref(),
    ] {
        assert_eq!(umac.verify_tag(nonce, b"x", wrong), Err(WrongTag));
    }
    assert!(umac.verify_tag(nonce, b"x", tag.as_ref()).is_ok());
}

#[test]
fn a_short_tag_begins_a_long_one_if_its_pad_does() {
    let key = b"0123456789abcdef";
    let message = noise(2, 3000);
    // A multiple of four: the lowest bits select the first pad of the block.
    let nonce = Nonce::from(0x1234);
    let long = Umac::<16>::new(key).compute_tag(nonce, &message);
    let begins = |short: &[u8]| long.as_ref().starts_with(short);
    assert!(begins(
        Umac::<4>::new(key).compute_tag(nonce, &message).as_ref()
    ));
    assert!(begins(
        Umac::<8>::new(key).compute_tag(nonce, &message).as_ref()
    ));
    assert!(begins(
        Umac::<12>::new(key).compute_tag(nonce, &message).as_ref()
    ));
    let odd = Nonce::from(0x1235);
    let long = Umac::<16>::new(key).compute_tag(odd, &message);
    let short = Umac::<8>::new(key).compute_tag(odd, &message);
    assert!(!long.as_ref().starts_with(short.as_ref()));
}

#[test]
fn nothing_secret_is_printed() {
    let umac = Umac::<8>::with_level(&[0xab; 16], crate::SimdLevel::Portable).unwrap();
    assert_eq!(format!("{umac:?}"), "Umac<8>(***, portable)");
    assert_eq!(format!("{:?}", umac.new_hasher()), "Hasher<8>(***)");
    assert_eq!(
        format!("{:?}", UmacSession::from(umac)),
        "UmacSession<8>(***, portable)"
    );
}

#[test]
fn the_best_level_is_the_last_that_is_there() {
    assert_eq!(levels().last(), Some(crate::SimdLevel::best_available()));
    assert_eq!(
        Umac::<16>::new(&[0; 16]).level(),
        crate::SimdLevel::best_available()
    );
}
