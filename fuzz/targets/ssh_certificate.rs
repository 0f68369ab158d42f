//! Certificates and public keys: any bytes are one, whose blob round-trips, or an error; no forged
//! one is trusted.

#![no_main]

use adit_fuzz::{NOW, split_flags};
use adit_ssh_proto::key::{AnyKey, CertCheck, CertError, PublicKey};
use libfuzzer_sys::fuzz_target;

/// The authority of the corpus; its private key was discarded.
const AUTHORITY_KEY: &str = include_str!("../../proto/adit-ssh-proto/vectors/ssh/keys/ca.pub");
/// The certificates that it signed, for alice.
const GENUINE_CERTS: [&str; 8] = [
    include_str!("../../proto/adit-ssh-proto/vectors/ssh/keys/user-cert.pub"),
    include_str!("../../proto/adit-ssh-proto/vectors/ssh/keys/user_rsa-cert.pub"),
    include_str!("../../proto/adit-ssh-proto/vectors/ssh/keys/user_p256-cert.pub"),
    include_str!("../../proto/adit-ssh-proto/vectors/ssh/keys/user_p384-cert.pub"),
    include_str!("../../proto/adit-ssh-proto/vectors/ssh/keys/user_p521-cert.pub"),
    include_str!("../../proto/adit-ssh-proto/vectors/ssh/keys/verify-cert.pub"),
    include_str!("../../proto/adit-ssh-proto/vectors/ssh/keys/extension-cert.pub"),
    include_str!("../../proto/adit-ssh-proto/vectors/ssh/keys/window-cert.pub"),
];

fuzz_target!(|input: &[u8]| {
    let (flags, input) = split_flags(input);
    if flags & 1 != 0 {
        let text = String::from_utf8_lossy(input);
        if let Ok((key, comment)) = PublicKey::from_line(&text) {
            let line = key.to_line(comment);
            let again = PublicKey::from_line(&line).expect("our own line");
            assert_eq!(again.0, key);
        }
        return;
    }
    let Ok(key) = AnyKey::parse(input) else {
        return;
    };
    assert_eq!(key.to_blob(), input);
    assert!(!key.algorithms().is_empty());
    let Some(certificate) = key.certificate() else {
        return;
    };
    let authority = PublicKey::from_line(AUTHORITY_KEY)
        .expect("the authority")
        .0;
    let check = CertCheck::user(&["alice"], NOW, None);
    match certificate.check_validity(&check, |by| *by == authority) {
        Ok(_) => {
            let genuine = |line: &&str| {
                let (other, _) =
                    adit_ssh_proto::key::Certificate::from_line(line).expect("genuine");
                other.blob() == input
            };
            assert!(
                GENUINE_CERTS.iter().any(|line| genuine(&line)),
                "a forged certificate"
            );
        }
        Err(CertError::Untrusted) => assert_ne!(*certificate.authority(), authority),
        Err(why) => assert!(!why.to_string().contains('\u{1b}')),
    }
});
