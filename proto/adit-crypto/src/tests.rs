//! Golden vectors and cross-checks of the AEADs; other modules have theirs beside the code.

use chacha20poly1305::{
    ChaCha20Poly1305, KeyInit, XChaCha8Poly1305, XChaCha20Poly1305, aead::Aead,
};
use proptest::prelude::*;
use serde_json::Value;

use crate::{AeadKey, AeadKind, CryptoError, TAG_LEN};

pub(crate) fn vectors(name: &str) -> Value {
    let text = match name {
        "kdf" => include_str!("../vectors/shadowsocks/kdf.json"),
        "kcpcrypt" => include_str!("../vectors/kcpcrypt/kcpcrypt.json"),
        "ciphers" => include_str!("../vectors/streams/ciphers.json"),
        _ => include_str!("../vectors/shadowsocks/primitives.json"),
    };
    serde_json::from_str(text).unwrap()
}

pub(crate) fn hex(value: &Value) -> Vec<u8> {
    let text = value.as_str().unwrap().as_bytes();
    let digit = |c: u8| (c as char).to_digit(16).unwrap() as u8;
    text.chunks(2)
        .map(|p| digit(p[0]) << 4 | digit(p[1]))
        .collect()
}

fn seal(key: &AeadKey, nonce: &[u8], plain: &[u8]) -> Vec<u8> {
    let mut out = plain.to_vec();
    let tag = key.seal_in_place(nonce, &mut out).unwrap();
    out.extend_from_slice(&tag);
    out
}

fn open(key: &AeadKey, nonce: &[u8], sealed: &[u8]) -> Result<Vec<u8>, CryptoError> {
    let (ct, tag) = sealed.split_at(sealed.len() - TAG_LEN);
    let mut plain = ct.to_vec();
    key.open_in_place(nonce, &mut plain, tag).map(|()| plain)
}

#[test]
fn golden_aead_vectors() {
    let all = vectors("primitives");
    let mut checked = 0;
    for (list, eight, twenty) in [
        (
            "chacha_poly1305",
            AeadKind::ChaCha8Poly1305,
            AeadKind::ChaCha20Poly1305,
        ),
        (
            "xchacha_poly1305",
            AeadKind::XChaCha8Poly1305,
            AeadKind::XChaCha20Poly1305,
        ),
    ] {
        for case in all[list].as_array().unwrap() {
            let kind = match case["rounds"].as_u64().unwrap() {
                8 => eight,
                20 => twenty,
                _ => continue,
            };
            let bytes = |name: &str| hex(&case[name]);
            let key = AeadKey::new(kind, &bytes("key")).unwrap();
            let sealed = seal(&key, &bytes("nonce"), &bytes("plaintext"));
            assert_eq!(sealed, bytes("sealed"), "{kind:?}");
            assert_eq!(open(&key, &bytes("nonce"), &sealed), Ok(bytes("plaintext")));
            checked += 1;
        }
    }
    assert_eq!(checked, 4);
}

/// Test cases 2 (128), 8 (192) and 14 (256) of the GCM specification: one zero block, no associated data.
#[test]
fn gcm_specification_vectors() {
    for (kind, first, tag) in [
        (
            AeadKind::Aes128Gcm,
            [0x03, 0x88, 0xda, 0xce],
            [0xab, 0x6e, 0x47, 0xd4],
        ),
        (
            AeadKind::Aes192Gcm,
            [0x98, 0xe7, 0x24, 0x7c],
            [0x2f, 0xf5, 0x8d, 0x80],
        ),
        (
            AeadKind::Aes256Gcm,
            [0xce, 0xa7, 0x40, 0x3d],
            [0xd0, 0xd1, 0xc8, 0xa7],
        ),
    ] {
        let key = AeadKey::new(kind, &vec![0; kind.key_len()]).unwrap();
        let sealed = seal(&key, &[0; 12], &[0; 16]);
        assert_eq!(sealed[..4], first, "{kind:?}");
        assert_eq!(sealed[16..20], tag, "{kind:?}");
    }
}

#[test]
fn lengths_of_keys_nonces_and_tags_are_checked() {
    for kind in AeadKind::ALL {
        let (k, n) = (kind.key_len(), kind.nonce_len());
        for found in [0, k - 1, k + 1] {
            assert_eq!(
                AeadKey::new(kind, &vec![0; found]).err(),
                Some(CryptoError::KeyLength { expected: k, found })
            );
        }
        let key = AeadKey::new(kind, &vec![0; k]).unwrap();
        for found in [0, n - 1, n + 1] {
            let wrong = CryptoError::NonceLength { expected: n, found };
            assert_eq!(key.seal_in_place(&vec![0; found], &mut [0; 4]), Err(wrong));
            assert_eq!(
                key.open_in_place(&vec![0; found], &mut [0; 4], &[0; 16]),
                Err(wrong)
            );
        }
        let mut buf = *b"data";
        let tag = key.seal_in_place(&vec![0; n], &mut buf).unwrap();
        for short in 0..TAG_LEN {
            let cut = key.open_in_place(&vec![0; n], &mut buf.clone(), &tag[..short]);
            assert_eq!(cut, Err(CryptoError::Unauthentic));
        }
        assert_eq!(format!("{key:?}"), format!("AeadKey({kind:?})"));
    }
}

#[test]
fn every_flipped_bit_is_refused() {
    for kind in AeadKind::ALL {
        let key = AeadKey::new(kind, &vec![3; kind.key_len()]).unwrap();
        let nonce = vec![9; kind.nonce_len()];
        let sealed = seal(&key, &nonce, b"a message of some length");
        for bit in 0..sealed.len() * 8 {
            let mut bad = sealed.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(open(&key, &nonce, &bad), Err(CryptoError::Unauthentic));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Compares AWS-LC and this crate's HChaCha with RustCrypto.
    #[test]
    fn two_implementations_agree(
        key in any::<[u8; 32]>(), nonce in any::<[u8; 24]>(),
        plain in proptest::collection::vec(any::<u8>(), 0..4200),
    ) {
        let ours = |kind: AeadKind| {
            let key = AeadKey::new(kind, &key).unwrap();
            let nonce = &nonce[..kind.nonce_len()];
            let sealed = seal(&key, nonce, &plain);
            assert_eq!(open(&key, nonce, &sealed).unwrap(), plain);
            sealed
        };
        let short = nonce.first_chunk::<12>().unwrap();
        prop_assert_eq!(
            ours(AeadKind::ChaCha20Poly1305),
            ChaCha20Poly1305::new(&key.into()).encrypt(short.into(), &plain[..]).unwrap()
        );
        prop_assert_eq!(
            ours(AeadKind::XChaCha20Poly1305),
            XChaCha20Poly1305::new(&key.into()).encrypt(&nonce.into(), &plain[..]).unwrap()
        );
        prop_assert_eq!(
            ours(AeadKind::XChaCha8Poly1305),
            XChaCha8Poly1305::new(&key.into()).encrypt(&nonce.into(), &plain[..]).unwrap()
        );
    }

    #[test]
    fn round_trips(kind in prop::sample::select(&AeadKind::ALL[..]), seed in any::<u8>(),
                   plain in proptest::collection::vec(any::<u8>(), 0..2000)) {
        let key = AeadKey::new(kind, &vec![seed; kind.key_len()]).unwrap();
        let nonce = vec![seed ^ 0x55; kind.nonce_len()];
        let sealed = seal(&key, &nonce, &plain);
        prop_assert_eq!(open(&key, &nonce, &sealed).unwrap(), plain);
    }
}
