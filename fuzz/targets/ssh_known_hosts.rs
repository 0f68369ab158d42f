//! Known-hosts files: any text is lines and problems, and a line of ours after it is found unless
//! the text revokes or contradicts it.

#![no_main]

use adit_fuzz::NOW;
use adit_ssh_proto::algorithm::KeyAlgorithm;
use adit_ssh_proto::key::{AnyKey, HostKeyVerdict, HostName, KnownHosts, PublicKey};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let mut known = KnownHosts::default();
    let problems = known.add_file("fuzz", input).expect("not too long");
    let lines = input.split(|b| *b == b'\n').count();
    assert!(problems.len() + known.len() <= lines);
    assert!(problems.iter().all(|p| (1..=lines).contains(&p.place.line)));
    let key = PublicKey::Ed25519([0x5a; 32]);
    let shown = AnyKey::Plain(key.clone());
    for (host, port) in [
        ("host.example.org", 22),
        ("host.example.org", 2222),
        ("192.0.2.1", 22),
    ] {
        let name = HostName::new(host, port).expect("a host");
        let before = known.check_host(&name, &shown, NOW);
        let offered = KeyAlgorithm::ALL;
        let mut preferred = known.prefer_known(&name, offered);
        assert_eq!(preferred.len(), offered.len());
        preferred.retain(|a| !offered.contains(a));
        assert!(preferred.is_empty());
        for salt in [None, Some([9; 20])] {
            let mut more = known.clone();
            let line = name.known_hosts_line(&key, salt);
            assert_eq!(more.add_file("ours", line.as_bytes()), Ok(vec![]));
            let after = more.check_host(&name, &shown, NOW);
            match before {
                HostKeyVerdict::Revoked(_) | HostKeyVerdict::Known(_) => assert_eq!(after, before),
                _ => assert!(matches!(after, HostKeyVerdict::Known(_))),
            }
        }
    }
    // Any word as a host makes a line of its own, or is not a host.
    let word = String::from_utf8_lossy(input);
    if let Some(name) = HostName::new(&word, 22) {
        let line = name.known_hosts_line(&key, None);
        assert!(!line.contains('\n'));
        let mut one = KnownHosts::default();
        assert_eq!(one.add_file("ours", line.as_bytes()), Ok(vec![]));
        assert!(matches!(
            one.check_host(&name, &shown, NOW),
            HostKeyVerdict::Known(_)
        ));
    }
});
