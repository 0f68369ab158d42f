//! The traits of RustCrypto, against the vectors and the inherent methods.

use std::format;
use std::vec::Vec;

use digest::common::{InnerIvInit, KeyIvInit};
use digest::{Key, KeyInit, Mac, Output, OutputSizeUser};
use serde_json::Value;

use super::golden::message;
use super::{hex, vectors};
use crate::{Nonce, NoncedUmac, Umac, UmacSession};

/// Computes and verifies the tag as a program does that is generic over MACs.
fn check_mac<M: Mac>(new: impl Fn() -> M, message: &[u8], right: &[u8]) {
    assert_eq!(<M as OutputSizeUser>::output_size(), right.len());
    for piece in [1000, 1024, 65_536] {
        let mut mac = new();
        message.chunks(piece).for_each(|part| mac.update(part));
        assert_eq!(mac.finalize().into_bytes().as_slice(), right);
    }
    let with_message = || new().chain_update(message);
    let tag = Output::<M>::try_from(right).unwrap();
    assert!(with_message().verify(&tag).is_ok());
    assert!(with_message().verify_slice(right).is_ok());
    assert!(new().chain_update(b"?").verify(&tag).is_err());
    for place in 0..right.len() {
        let mut wrong = tag.clone();
        wrong[place] ^= 0x80;
        assert!(with_message().verify(&wrong).is_err());
        assert!(with_message().verify_slice(&wrong).is_err());
        assert!(with_message().verify_slice(&right[..place]).is_err());
    }
}

fn check<const TAG: usize>(case: &Value, message: &[u8], name: &str)
where
    [u8; TAG]: digest::array::AssocArraySize,
{
    let (key, nonce, right) = (hex(&case["key"]), hex(&case["nonce"]), hex(&case[name]));
    let umac = <Umac<TAG> as KeyInit>::new_from_slice(&key).unwrap();
    let number = Nonce::new(&nonce).unwrap();
    check_mac(|| NoncedUmac::with_nonce(&umac, number), message, &right);
    check_mac(
        || NoncedUmac::with_nonce(umac.clone(), number),
        message,
        &right,
    );
    if nonce.len() == 8 {
        check_mac(
            || <NoncedUmac<TAG> as KeyIvInit>::new_from_slices(&key, &nonce).unwrap(),
            message,
            &right,
        );
        check_mac(
            || NoncedUmac::inner_iv_slice_init(&umac, &nonce).unwrap(),
            message,
            &right,
        );
    }
    let mut session = <UmacSession<TAG> as KeyInit>::new_from_slice(&key).unwrap();
    assert_eq!(session.compute_tag(number, message).as_ref(), right);
    assert!(session.clone().verify_tag(number, message, &right).is_ok());
}

#[test]
fn golden_vectors_through_the_traits() {
    let all = vectors();
    let lists = ["rfc4418_appendix", "generated"].map(|list| all[list].as_array().unwrap());
    let mut count = 0;
    for case in lists.into_iter().flatten() {
        let message: Vec<u8> = message(case);
        // Longer ones differ in nothing that the traits touch.
        if message.len() > 100_000 {
            continue;
        }
        check::<4>(case, &message, "umac32");
        check::<8>(case, &message, "umac64");
        check::<12>(case, &message, "umac96");
        check::<16>(case, &message, "umac128");
        count += 1;
    }
    assert!(count >= 60, "{count}");
}

#[test]
fn keys_and_nonces_of_other_lengths_are_refused() {
    assert!(<Umac<8> as KeyInit>::new_from_slice(&[0; 15]).is_err());
    assert!(<UmacSession<8> as KeyInit>::new_from_slice(&[0; 17]).is_err());
    assert!(<NoncedUmac<8> as KeyIvInit>::new_from_slices(&[0; 16], &[0; 7]).is_err());
    assert!(<NoncedUmac<8> as KeyIvInit>::new_from_slices(&[0; 15], &[0; 8]).is_err());
    let key = Key::<Umac<8>>::from([7; 16]);
    let by_trait = <Umac<8> as KeyInit>::new(&key);
    let nonce = Nonce::from(1);
    assert_eq!(
        by_trait.compute_tag(nonce, b"x"),
        Umac::new(&[7; 16]).compute_tag(nonce, b"x")
    );
}

#[test]
fn secrets_are_cleared_and_not_shown() {
    fn is_cleared<T: zeroize::ZeroizeOnDrop>(_: &T) {}
    let umac = Umac::<8>::new(&[7; 16]);
    is_cleared(&umac);
    is_cleared(&umac.new_hasher());
    is_cleared(&UmacSession::from(umac.clone()));
    let nonced = NoncedUmac::with_nonce(umac, Nonce::from(1));
    is_cleared(&nonced);
    assert_eq!(format!("{nonced:?}"), "NoncedUmac<8>(***)");
}
