//! A Shadowsocks client over arbitrary sequences of packets, raw or sealed around arbitrary
//! content; and over sequences of a legacy method.

#![no_main]

use adit_fuzz::forged_wire::{ForgedEdition, forge_packet, legacy_key};
use adit_fuzz::{NOW, ZeroEntropy, split_flags};
use adit_shadowsocks::udp::ClientSession;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let (flags, mut rest) = split_flags(input);
    if let Some(key) = legacy_key(flags) {
        let mut session = ClientSession::new(&key.clone().into(), &mut ZeroEntropy);
        let mut wire = rest.to_vec();
        if let Ok((_, payload)) = session.open(&mut wire, NOW) {
            assert!(wire.get(payload).is_some());
        }
        return;
    }
    let edition = ForgedEdition::from_lowest_bit(flags);
    // The randomness is zeros, so the client's session id is 0.
    let mut session = ClientSession::new(&edition.key().into(), &mut ZeroEntropy);
    while rest.len() > 3 {
        let (len, after) = split_flags(rest);
        let (kind, after) = split_flags(after);
        let (number, after) = split_flags(after);
        let (bytes, after) = after.split_at(usize::from(len).min(after.len()));
        rest = after;
        let mut ids = [0; 16];
        ids[7] = kind >> 4;
        ids[15] = number;
        let head = [&[1][..], &NOW.0.to_be_bytes(), &[0; 8]].concat();
        let mut wire = match (kind % 3, edition) {
            (0, _) => bytes.to_vec(),
            (1, ForgedEdition::Aead2022) => forge_packet(edition, ids, &[&head, bytes].concat()),
            _ => forge_packet(edition, ids, bytes),
        };
        let mut replay = wire.clone();
        if let Ok((_, payload)) = session.open(&mut wire, NOW) {
            assert_ne!(kind % 3, 0, "a packet without a key was opened");
            assert!(payload.start <= payload.end && payload.end <= wire.len());
            if edition == ForgedEdition::Aead2022 {
                assert!(
                    session.open(&mut replay, NOW).is_err(),
                    "a replay was opened"
                );
            }
        }
    }
});
