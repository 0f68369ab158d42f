//! Snapshots of the UDP sessions of the 2022 edition: arbitrary parts, and snapshots of what they restore.

#![no_main]

use adit_fuzz::NOW;
use adit_shadowsocks::udp::SessionRegistry;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let parts: Vec<&[u8]> = match input.split_first() {
        Some((cut, rest)) => {
            let (one, other) = rest.split_at(rest.len().min(usize::from(*cut)));
            vec![one, other]
        }
        None => Vec::new(),
    };
    for parts in [&parts[..], &[input], &[]] {
        let Ok(registry) = SessionRegistry::from_snapshot(parts, NOW) else {
            continue;
        };
        let mut snapshot = registry.snapshot(NOW);
        let mut again = SessionRegistry::from_snapshot(&snapshot, NOW)
            .expect("valid")
            .snapshot(NOW);
        // The order of the entries is not defined.
        let bytes = |parts: &mut Vec<Vec<u8>>| {
            let mut entries: Vec<Vec<u8>> = parts
                .iter()
                .flat_map(|part| part[18..].chunks(25).map(<[u8]>::to_vec))
                .collect();
            entries.sort();
            entries
        };
        assert_eq!(bytes(&mut again), bytes(&mut snapshot));
        registry.merge_snapshot(&snapshot, NOW).expect("valid");
        registry.end_previous_process(NOW);
    }
});
