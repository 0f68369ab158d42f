//! The vectors of RFC 8439 and the golden ones, on every path.

use super::{ChaCha, ChaChaRounds, CpuPath, key};
use crate::{
    chacha,
    tests::{hex, vectors},
};

const SUNSCREEN: &[u8] = b"Ladies and Gentlemen of the class of '99: If I could offer you only \
one tip for the future, sunscreen would be it.";

fn bytes(text: &str) -> Vec<u8> {
    hex(&text.split_whitespace().collect::<String>().into())
}

fn counting_from<const N: usize>(first: u8) -> [u8; N] {
    core::array::from_fn(|i| first + u8::try_from(i).unwrap())
}

/// Section 2.3.2.
#[test]
fn rfc_8439_block() {
    let mut nonce = [0; 12];
    (nonce[3], nonce[7]) = (9, 0x4a);
    let mut state = chacha::initial_state(&counting_from(0), &nonce);
    state[12] = 1;
    let expected = bytes(
        "10 f1 e7 e4 d1 3b 59 15 50 0f dd 1f a3 20 71 c4 c7 d1 f4 c7 33 c0 68 03 04 22 aa 9a c3 d4
         6c 4e d2 82 64 46 07 9f aa 09 14 c2 d7 05 d9 8b 02 a2 b5 12 9c d1 de 16 4e b9 cb d0 83 e8
         a2 50 3c 4e",
    );
    for path in CpuPath::available() {
        let mut block = [0; 64];
        path.run_task(ChaCha(&state, ChaChaRounds::TWENTY, &mut block));
        assert_eq!(block[..], expected, "{path:?}");
    }
}

/// Section 2.4.2.
#[test]
fn rfc_8439_encryption() {
    let mut nonce = [0; 12];
    nonce[7] = 0x4a;
    let mut state = chacha::initial_state(&counting_from(0), &nonce);
    state[12] = 1;
    let expected = bytes(
        "6e 2e 35 9a 25 68 f9 80 41 ba 07 28 dd 0d 69 81 e9 7e 7a ec 1d 43 60 c2 0a 27 af cc fd 9f
         ae 0b f9 1b 65 c5 52 47 33 ab 8f 59 3d ab cd 62 b3 57 16 39 d6 24 e6 51 52 ab 8f 53 0c 35
         9f 08 61 d8 07 ca 0d bf 50 0d 6a 61 56 a3 8e 08 8a 22 b6 5e 52 bc 51 4d 16 cc f8 06 81 8c
         e9 1a b7 79 37 36 5a f9 0b bf 74 a3 5b e6 b4 0b 8e ed f2 78 5e 42 87 4d",
    );
    for path in CpuPath::available() {
        let mut buf = SUNSCREEN.to_vec();
        path.run_task(ChaCha(&state, ChaChaRounds::TWENTY, &mut buf));
        assert_eq!(buf, expected, "{path:?}");
    }
}

/// Section 2.8.2 except for the associated data, which is not supported: the ciphertext is that of the
/// document, and the one-time key that of its block 0.
#[test]
fn rfc_8439_aead_without_its_data() {
    let secret = counting_from(0x80);
    let nonce = [7, 0, 0, 0, 0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47];
    let expected = bytes(
        "d3 1a 8d 34 64 8e 60 db 7b 86 af bc 53 ef 7e c2 a4 ad ed 51 29 6e 08 fe a9 e2 b5 a7 36 ee
         62 d6 3d be a4 5e 8c a9 67 12 82 fa fb 69 da 92 72 8b 1a 71 de 0a 9e 06 0b 29 05 d6 a5 b6
         7e cd 3b 36 92 dd bd 7f 2d 77 8b 8c 98 03 ae e3 28 09 1b 58 fa b3 24 e4 fa d6 75 94 55 85
         80 8b 48 31 d7 bc 3f f4 de f0 8e 4b 7a 9d e5 76 d2 65 86 ce c6 4b 61 16",
    );
    let one_time = bytes(
        "7b ac 2b 25 2d b4 47 af 09 b6 7a 55 a4 e9 55 84 0a e1 d6 73 10 75 d9 eb 2a 93 75 78 3e d5
         53 ff",
    );
    for path in CpuPath::available() {
        let mut buf = SUNSCREEN.to_vec();
        key(path, ChaChaRounds::TWENTY, &secret).seal(&nonce, &mut buf);
        assert_eq!(buf, expected, "{path:?}");
        let mut block = [0; 32];
        path.run_task(ChaCha(
            &chacha::initial_state(&secret, &nonce),
            ChaChaRounds::TWENTY,
            &mut block,
        ));
        assert_eq!(block[..], one_time, "{path:?}");
    }
}

/// Vectors of the other implementations, with 8, 12 and 20 rounds and both nonce lengths.
#[test]
fn golden_vectors_on_every_path() {
    let all = vectors("primitives");
    let mut checked = 0;
    for list in ["chacha_poly1305", "xchacha_poly1305"] {
        for case in all[list].as_array().unwrap() {
            let rounds = match case["rounds"].as_u64().unwrap() {
                8 => ChaChaRounds::EIGHT,
                12 => ChaChaRounds::TWELVE,
                _ => ChaChaRounds::TWENTY,
            };
            let of = |name: &str| hex(&case[name]);
            let (secret, nonce) = (of("key").try_into().unwrap(), of("nonce"));
            for path in CpuPath::available() {
                let mut used = key(path, rounds, &secret);
                let short = match nonce[..].try_into() {
                    Ok(short) => short,
                    Err(_) => {
                        let (derived, short) =
                            used.derive_for_xnonce(nonce[..].try_into().unwrap());
                        used = derived;
                        short
                    }
                };
                let mut buf = of("plaintext");
                let tag = used.seal(&short, &mut buf);
                buf.extend_from_slice(&tag);
                assert_eq!(buf, of("sealed"), "{path:?}, {rounds:?}");
            }
            checked += 1;
        }
    }
    assert_eq!(checked, 6);
}
