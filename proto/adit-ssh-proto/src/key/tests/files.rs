//! Key files and signatures.

use super::*;
use crate::algorithm::KeyAlgorithm;
use crate::wire::MessageReader;
use adit_crypto::NistCurve;
use adit_wire::{Entropy, FixedEntropy};
use proptest::prelude::*;

/// A deterministic and endless random source.
struct Steps(u8);

impl Entropy for Steps {
    fn fill(&mut self, out: &mut [u8]) {
        for byte in out {
            self.0 = self.0.wrapping_mul(77).wrapping_add(13);
            *byte = self.0;
        }
    }
}

const FILES: [(&str, &str); 5] = [
    (vector!("ed25519"), vector!("ed25519.pub")),
    (vector!("ecdsa256"), vector!("ecdsa256.pub")),
    (vector!("ecdsa384"), vector!("ecdsa384.pub")),
    (vector!("ecdsa521"), vector!("ecdsa521.pub")),
    (vector!("rsa2048"), vector!("rsa2048.pub")),
];

/// The check number of an unencrypted OpenSSH file: its only random value.
fn check_of(text: &str) -> Vec<u8> {
    let body: String = text.lines().filter(|l| !l.starts_with('-')).collect();
    let document = base64::decode(&body).unwrap();
    let mut r = MessageReader::new(&document[15..], "x");
    for _ in 0..3 {
        r.read_string().unwrap();
    }
    r.read_u32().unwrap();
    r.read_string().unwrap();
    r.read_string().unwrap()[..4].to_vec()
}

#[test]
fn files_are_read_and_written_as_openssh_does() {
    for (text, line) in FILES {
        let key = PrivateKey::from_text(text, None).unwrap();
        let (public, comment) = PublicKey::from_line(line).unwrap();
        assert_eq!((key.public_key(), key.comment()), (&public, comment));
        assert_eq!(PrivateKey::public_from_text(text), Ok(public.clone()));
        assert_eq!(public.to_line(comment), line.trim_end());
        let mut rng = FixedEntropy::new(check_of(text));
        let written = key.to_openssh(None, &mut rng).unwrap();
        assert_eq!(written.expose(), text, "{comment}: octet by octet");
        assert!(!format!("{key:?}").contains("seed: ["));
    }
}

#[test]
fn fingerprints_are_those_of_ssh_keygen() {
    let lines = [
        vector!("ca.pub"),
        vector!("ed25519.pub"),
        vector!("ecdsa256.pub"),
        vector!("ecdsa384.pub"),
        vector!("ecdsa521.pub"),
        vector!("rsa1024.pub"),
        vector!("rsa2048.pub"),
        vector!("rsa9216.pub"),
    ];
    let mut told: Vec<_> = lines
        .iter()
        .map(|line| {
            let (key, comment) = PublicKey::from_line(line).unwrap();
            format!("{comment} {}", key.fingerprint())
        })
        .collect();
    told.sort();
    assert_eq!(told, vector!("fingerprints").lines().collect::<Vec<_>>());
}

#[test]
fn encrypted_files() {
    for text in [
        vector!("enc_aes256ctr"),
        vector!("enc_aes128ctr"),
        vector!("enc_aes256gcm"),
        vector!("enc_aes128gcm"),
        vector!("enc_aes256cbc"),
        vector!("enc_rsa2048"),
    ] {
        let key = PrivateKey::from_text(text, Some(PASSPHRASE)).unwrap();
        assert_eq!(
            PrivateKey::public_from_text(text).as_ref(),
            Ok(key.public_key())
        );
        let error = |passphrase| PrivateKey::from_text(text, passphrase).unwrap_err();
        assert_eq!(error(None), KeyError::Encrypted);
        assert_eq!(error(Some(b"battery staple")), KeyError::WrongPassphrase);
        assert_eq!(error(Some(b"")), KeyError::WrongPassphrase);
    }
    let other = PrivateKey::from_text(vector!("enc_chacha20poly1305"), Some(PASSPHRASE));
    assert!(matches!(other.unwrap_err(), KeyError::Unsupported(_)));
}

#[test]
fn what_is_encrypted_here_is_read_here() {
    let key = PrivateKey::from_text(FILES[0].0, None).unwrap();
    let encryption = |rounds| {
        Some(Encryption {
            passphrase: PASSPHRASE,
            rounds,
        })
    };
    let text = key.to_openssh(encryption(2), &mut Steps(1)).unwrap();
    assert!(text.expose().lines().all(|line| line.len() <= 70));
    let again = PrivateKey::from_text(text.expose(), Some(PASSPHRASE)).unwrap();
    assert_eq!(
        (again.public_key(), again.comment()),
        (key.public_key(), key.comment())
    );
    assert!(PrivateKey::from_text(text.expose(), None).is_err());
    assert!(key.to_openssh(encryption(1 << 20), &mut Steps(1)).is_err());
    assert!(key.to_openssh(encryption(0), &mut Steps(1)).is_err());
}

#[test]
fn pem_forms() {
    for (pem1, p8, line) in [
        (vector!("rsa2048.pem1"), vector!("rsa2048.p8"), FILES[4].1),
        (vector!("ecdsa256.pem1"), vector!("ecdsa256.p8"), FILES[1].1),
        (vector!("ecdsa384.pem1"), vector!("ecdsa384.p8"), FILES[2].1),
        (vector!("ecdsa521.pem1"), vector!("ecdsa521.p8"), FILES[3].1),
    ] {
        for text in [pem1, p8] {
            let key = PrivateKey::from_text(text, None).unwrap();
            assert_eq!(*key.public_key(), public(line));
        }
    }
    let key = PrivateKey::from_text(vector!("ed25519.p8"), None).unwrap();
    let start = [0xd2, 0x2e, 0x9e, 0x93, 0xa4, 0x3f, 0xce, 0x74];
    assert!(matches!(key.public_key(), PublicKey::Ed25519(k) if k.starts_with(&start)));
    let old = vector!("rsa2048.pemenc");
    let key = PrivateKey::from_text(old, Some(PASSPHRASE)).unwrap();
    assert_eq!(*key.public_key(), public(FILES[4].1));
    assert_eq!(
        PrivateKey::from_text(old, None).unwrap_err(),
        KeyError::Encrypted
    );
    assert!(PrivateKey::from_text(old, Some(b"battery staple")).is_err());
    assert!(PrivateKey::public_from_text(old).is_err());
}

#[test]
fn files_that_lie() {
    assert!(
        PrivateKey::from_text(vector!("rsa1024"), None).is_err(),
        "too short to sign"
    );
    let text = FILES[0].0;
    let cut = &text[..text.len() - 40];
    assert!(PrivateKey::from_text(cut, None).is_err());
    assert!(PrivateKey::from_text("", None).is_err());
    let long = text.to_owned() + &" ".repeat(MAX_KEY_FILE);
    assert!(matches!(
        PrivateKey::from_text(&long, None),
        Err(KeyError::TooMuch { .. })
    ));
    // The public key in front belongs to another key.
    let body: String = text.lines().filter(|l| !l.starts_with('-')).collect();
    let mut document = base64::decode(&body).unwrap();
    for at in 0..document.len() {
        document[at] ^= 1;
        let text = pem::encode_pem("OPENSSH PRIVATE KEY", &document);
        if let Ok(key) = PrivateKey::from_text(text.expose(), None) {
            assert_ne!(key.comment(), "ed25519@adit", "octet {at} is not looked at");
        }
        document[at] ^= 1;
    }
}

#[test]
fn generated_keys_sign() {
    for kind in [
        KeyType::Ed25519,
        KeyType::Ecdsa(NistCurve::P256),
        KeyType::Ecdsa(NistCurve::P384),
        KeyType::Ecdsa(NistCurve::P521),
        KeyType::Rsa { bits: 2048 },
    ] {
        let key = PrivateKey::generate(kind, &mut Steps(3)).unwrap();
        let key = key.with_comment("made here");
        let text = key.to_openssh(None, &mut Steps(4)).unwrap();
        let again = PrivateKey::from_text(text.expose(), None).unwrap();
        assert_eq!(again.comment(), "made here");
        for algorithm in key.public_key().algorithms().iter().copied() {
            let signature = again.sign(algorithm, b"data").unwrap();
            let verify = |data: &[u8], signature: &[u8]| {
                key.public_key()
                    .verify_signature(algorithm, data, signature)
            };
            assert_eq!(verify(b"data", &signature), Ok(None));
            assert!(verify(b"date", &signature).is_err());
            for at in 0..signature.len() {
                let mut forged = signature.clone();
                forged[at] ^= 0x10;
                assert!(verify(b"data", &forged).is_err(), "{algorithm} at {at}");
            }
            let mut longer = signature.clone();
            longer.push(0);
            assert!(verify(b"data", &longer).is_err());
        }
        let other = match kind {
            KeyType::Ed25519 => KeyAlgorithm::EcdsaP256,
            _ => KeyAlgorithm::Ed25519,
        };
        assert_eq!(key.sign(other, b"x"), Err(KeyError::WrongAlgorithm));
    }
    let bits = KeyType::Rsa { bits: 1024 };
    assert!(PrivateKey::generate(bits, &mut Steps(0)).is_err());
}

#[test]
fn rsa_hashes_are_not_exchanged() {
    let key = PrivateKey::from_text(FILES[4].0, None).unwrap();
    let signature = key.sign(KeyAlgorithm::RsaSha256, b"data").unwrap();
    let verify = |algorithm| {
        key.public_key()
            .verify_signature(algorithm, b"data", &signature)
    };
    assert_eq!(verify(KeyAlgorithm::RsaSha256), Ok(None));
    assert_eq!(verify(KeyAlgorithm::RsaSha256Cert), Ok(None));
    assert_eq!(
        verify(KeyAlgorithm::RsaSha512),
        Err(KeyError::WrongAlgorithm)
    );
    assert_eq!(verify(KeyAlgorithm::Ed25519), Err(KeyError::WrongAlgorithm));
}

#[test]
fn blobs_have_one_form() {
    let key = public(vector!("rsa2048.pub"));
    let blob = key.to_blob();
    // A leading zero in the exponent.
    let mut padded = blob[..11].to_vec();
    padded.extend([0, 0, 0, 4, 0]);
    padded.extend(&blob[15..]);
    assert!(PublicKey::parse(&padded).is_err());
    let mut longer = blob.clone();
    longer.push(0);
    assert!(PublicKey::parse(&longer).is_err());
    assert!(PublicKey::from_line(&key.to_line("").replace("ssh-rsa", "ssh-dss")).is_err());
    let dss = PublicKey::parse(b"\0\0\0\x07ssh-dss");
    assert!(matches!(dss, Err(KeyError::Unsupported(_))));
}

/// x/crypto/ssh, CVE-2020-9283: a public key of a wrong length crashed the process.
#[test]
fn key_len() {
    use crate::wire::SshBufMut;
    for len in [0, 1, 31, 33, 64, 65, 66, 97, 133] {
        for name in ["ssh-ed25519", "sk-ssh-ed25519@openssh.com"] {
            let mut blob = Vec::new();
            blob.put_string(name.as_bytes());
            blob.put_string(&vec![4; len]);
            if name.starts_with("sk-") {
                blob.put_string(b"ssh:");
            }
            assert!(PublicKey::parse(&blob).is_err(), "{name} {len}");
        }
        for (curve, right) in [("nistp256", 65), ("nistp384", 97), ("nistp521", 133)] {
            let mut blob = Vec::new();
            blob.put_string(format!("ecdsa-sha2-{curve}").as_bytes());
            blob.put_string(curve.as_bytes());
            blob.put_string(&vec![4; len]);
            let parsed = PublicKey::parse(&blob);
            assert_eq!(parsed.is_ok(), len == right, "{curve} {len}");
            // Of the right format, but not on the curve.
            if let Ok(key) = parsed {
                let algorithm = key.algorithms()[0];
                let mut signature = Vec::new();
                signature.put_string(algorithm.name().as_bytes());
                signature.put_nested(|out| {
                    out.put_mpint(&[1; 32]);
                    out.put_mpint(&[2; 32]);
                });
                let got = key.verify_signature(algorithm, b"data", &signature);
                assert_eq!(got, Err(KeyError::BadSignature));
            }
        }
    }
}

proptest! {
    #[test]
    fn no_blob_panics(mut blob: Vec<u8>, at: prop::sample::Index) {
        let _ = AnyKey::parse(&blob);
        let mut real = public(FILES[1].1).to_blob();
        let at = at.index(real.len());
        real.truncate(at);
        real.append(&mut blob);
        if let Ok(key) = AnyKey::parse(&real) {
            prop_assert_eq!(key.to_blob(), real);
        }
    }

    #[test]
    fn no_file_panics(text in "(?s).{0,200}", document: Vec<u8>) {
        let _ = PrivateKey::from_text(&text, None);
        for label in ["OPENSSH PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "PRIVATE KEY"] {
            let text = pem::encode_pem(label, &document);
            prop_assert!(PrivateKey::from_text(text.expose(), None).is_err());
        }
    }
}
