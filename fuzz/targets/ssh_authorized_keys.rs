//! Files of authorised keys: any text is lines and problems; options in front of a key never accept
//! more than the key without them, and a key that is not in the text is never accepted.

#![no_main]

use adit_fuzz::{NOW, split_flags};
use adit_ssh_proto::key::{AnyKey, AuthorizedKeys, KeyDenied, KeyOffer, PublicKey};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let (flags, input) = split_flags(input);
    let key = PublicKey::Ed25519([0x5a; 32]);
    let line = key.to_line("");
    let text = String::from_utf8_lossy(input);
    // As options of one line, or as a file.
    let text = match flags & 1 {
        0 => format!("{} {line}", text.replace('\n', " ")),
        _ => text.into_owned(),
    };
    let mut keys = AuthorizedKeys::default();
    let problems = keys
        .add_file("fuzz", text.as_bytes())
        .expect("not too long");
    let lines = text.split('\n').count();
    assert!(problems.len() + keys.len() <= lines);
    let shown = AnyKey::Plain(key);
    let offer = KeyOffer {
        user: "alice",
        key: &shown,
        presence: None,
        from: "192.0.2.1".parse().expect("an address"),
        from_name: Some("client.example.org"),
        now: NOW,
    };
    match keys.find_grant(&offer) {
        Ok(grant) => {
            let blob = line.split(' ').nth(1).expect("a blob");
            assert!(
                text.contains(blob.trim_end_matches('=')),
                "a key that is not in the text"
            );
            assert!(grant.environment.len() <= 64);
            assert!(grant.port_forwarding || !grant.may_open("host", 22));
        }
        Err(KeyDenied::Unknown) => {}
        Err(why) => assert!(!why.to_string().is_empty()),
    }
});
