//! A Shadowsocks server over arbitrary sequences of packets, raw or sealed around arbitrary
//! content; and over sequences of a legacy method.

#![no_main]

use adit_fuzz::forged_wire::{ForgedEdition, forge_packet, legacy_key};
use adit_fuzz::{NOW, split_flags};
use adit_shadowsocks::Users;
use adit_shadowsocks::udp::ServerOpener;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let (flags, mut rest) = split_flags(input);
    if let Some(key) = legacy_key(flags) {
        let mut opener = ServerOpener::new(&Users::with_single_key(key.clone()));
        let mut wire = rest.to_vec();
        if let Ok(incoming) = opener.open_packet(&mut wire, NOW) {
            assert!(wire.get(incoming.payload).is_some());
        }
        return;
    }
    let edition = ForgedEdition::from_lowest_bit(flags);
    let mut opener = ServerOpener::new(&Users::with_single_key(edition.key()));
    let mut opened = 0;
    while rest.len() > 3 {
        let (len, after) = split_flags(rest);
        let (kind, after) = split_flags(after);
        let (number, after) = split_flags(after);
        let (bytes, after) = after.split_at(usize::from(len).min(after.len()));
        rest = after;
        let mut ids = [0; 16];
        ids[7] = kind >> 4;
        ids[15] = number;
        let stamp = NOW.0.to_be_bytes();
        let mut wire = match (kind % 3, edition) {
            (0, _) => bytes.to_vec(),
            (1, ForgedEdition::Aead2022) => {
                forge_packet(edition, ids, &[&[0][..], &stamp, bytes].concat())
            }
            _ => forge_packet(edition, ids, bytes),
        };
        let mut replay = wire.clone();
        if let Ok(incoming) = opener.open_packet(&mut wire, NOW) {
            assert_ne!(kind % 3, 0, "a packet without a key was opened");
            assert!(
                incoming.payload.start <= incoming.payload.end
                    && incoming.payload.end <= wire.len()
            );
            assert_eq!(
                incoming.session.is_some(),
                edition == ForgedEdition::Aead2022
            );
            opened += usize::from(incoming.new);
            if edition == ForgedEdition::Aead2022 {
                assert!(
                    opener.open_packet(&mut replay, NOW).is_err(),
                    "a replay was opened"
                );
            }
        }
        assert_eq!(
            opener.session_count(),
            opened,
            "a refused packet left a session"
        );
    }
});
