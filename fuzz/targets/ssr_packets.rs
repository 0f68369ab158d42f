//! Packets of ShadowsocksR, both sides: raw, and genuine except for one byte.

#![no_main]

use adit_fuzz::ssr_pair::{UID, new_pair};
use adit_fuzz::{ActionScript, SeededRng, alter_byte};
use adit_shadowsocksr::{PACKET_TAIL, ProtocolKind};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let mut script = ActionScript::new(input);
    let kind = script.pick_one(&ProtocolKind::ALL);
    let flags = script.read_u8();
    let (client, server) = new_pair(kind.into(), flags & 1 != 0);
    let mut rng = SeededRng(u64::from(flags >> 4));
    let association = client.new_association(&mut rng);
    let uid = (flags & 1 != 0 && kind.has_users()).then_some(UID);
    // The tag of an auth_chain packet is a single byte: one value in 256 passes.
    let guessed = kind >= ProtocolKind::AuthChainA || !kind.has_users();
    let known = |found: Option<u32>| found == uid || (uid.is_some() && found == Some(7));
    if flags & 2 != 0 {
        let bytes = script.take_rest();
        if let Ok((found, payload)) = server.open_packet(&mut bytes.to_vec()) {
            assert!(guessed, "a packet without a key was opened");
            assert!(known(found) && payload.start <= payload.end && payload.end <= bytes.len());
        }
        if let Ok(payload) = association.open_packet(&mut bytes.to_vec()) {
            assert!(guessed, "a packet without a key was opened");
            assert!(payload.start <= payload.end && payload.end <= bytes.len());
        }
        return;
    }
    let (place, flip) = (script.read_u16(), script.read_u8());
    let data = [&[1, 127, 0, 0, 1, 0, 80][..], script.take_rest()].concat();
    let mut packet = data.clone();
    packet.resize(data.len() + PACKET_TAIL, 0);
    if flags & 4 == 0 {
        let range = association.seal_packet(&mut packet, 0..data.len(), &mut rng);
        let wire = packet[range.expect("sealed")].to_vec();
        let mut whole = wire.clone();
        let (found, payload) = server.open_packet(&mut whole).expect("genuine");
        assert_eq!((found, &whole[payload]), (uid, &data[..]));
        let mut bad = wire;
        alter_byte(&mut bad, place, flip);
        if let Ok((found, payload)) = server.open_packet(&mut bad) {
            assert!(guessed, "an altered packet was opened");
            assert!(known(found) && payload.end <= bad.len());
        }
    } else {
        let range = server.seal_packet(uid, &mut packet, 0..data.len(), &mut rng);
        let wire = packet[range.expect("sealed")].to_vec();
        let mut whole = wire.clone();
        let payload = association.open_packet(&mut whole).expect("genuine");
        assert_eq!(&whole[payload], &data[..]);
        let mut bad = wire;
        alter_byte(&mut bad, place, flip);
        if let Ok(payload) = association.open_packet(&mut bad) {
            assert!(guessed, "an altered packet was opened");
            assert!(payload.end <= bad.len());
        }
    }
});
