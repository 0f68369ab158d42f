//! Private key files: any text is a key that signs, or an error. Behind the armour, which random
//! text does not produce, the document is the input's own.

#![no_main]

use adit_fuzz::split_flags;
use adit_ssh_proto::key::{MAX_KEY_FILE, PrivateKey};
use adit_wire::FixedEntropy;
use libfuzzer_sys::fuzz_target;

const LABELS: [&str; 4] = [
    "OPENSSH PRIVATE KEY",
    "RSA PRIVATE KEY",
    "EC PRIVATE KEY",
    "PRIVATE KEY",
];

fuzz_target!(|input: &[u8]| {
    let (flags, input) = split_flags(input);
    let text = match LABELS.get(usize::from(flags & 7)) {
        // Arbitrary bytes as a document.
        Some(label) => encode_pem(label, input),
        None => String::from_utf8_lossy(input).into_owned(),
    };
    // Without a passphrase: the KDF may take up to half a minute.
    let _ = PrivateKey::public_from_text(&text);
    let Ok(key) = PrivateKey::from_text(&text, None) else {
        return;
    };
    assert!(text.len() <= MAX_KEY_FILE);
    let algorithm = key.public_key().algorithms()[0];
    let signature = key.sign(algorithm, b"data").expect("a key that signs");
    let verified = key
        .public_key()
        .verify_signature(algorithm, b"data", &signature);
    assert!(verified.is_ok(), "{verified:?}");
    // A written key parses as the same.
    let mut rng = FixedEntropy::new([7; 4]);
    let written = key.to_openssh(None, &mut rng).expect("a file");
    let again = PrivateKey::from_text(written.expose(), None).expect("our own file");
    assert_eq!(again.public_key(), key.public_key());
    assert_eq!(again.comment(), key.comment());
});

/// Encodes the document in base64, independently of the reader's own code.
fn encode_pem(label: &str, document: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = format!("-----BEGIN {label}-----\n");
    for chunk in document.chunks(3) {
        let mut bits = [0u8; 3];
        bits[..chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes([0, bits[0], bits[1], bits[2]]);
        for at in 0..=chunk.len() {
            let index = (bits >> (18 - 6 * at)) & 63;
            text.push(char::from(ALPHABET[index as usize]));
        }
    }
    format!("{text}\n-----END {label}-----\n")
}
