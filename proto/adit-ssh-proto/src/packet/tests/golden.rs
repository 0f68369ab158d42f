//! Packets and streams of other implementations; see `vectors/ssh/README.md`.

use serde_json::Value;

use super::*;
use crate::algorithm::{AlgorithmPreferences, CpuFeatures};
use crate::packet::packet_cipher::PacketCipher;

fn vectors() -> Value {
    serde_json::from_str(include_str!("../../../vectors/ssh/packets.json")).unwrap()
}

fn hex(value: &Value) -> Vec<u8> {
    let digits = value.as_str().unwrap().as_bytes();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(core::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn golden_keys(case: &Value) -> DirectionKeys {
    DirectionKeys {
        cipher: Cipher::by_name(case["cipher"].as_str().unwrap()).unwrap(),
        mac: case["mac"].as_str().map(|name| Mac::by_name(name).unwrap()),
        compression: Compression::None,
        key: Secret::new(hex(&case["key"])),
        iv: Secret::new(hex(&case["iv"])),
        mac_key: Secret::new(hex(&case["mac_key"])),
    }
}

fn array<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().unwrap()
}

#[test]
fn packets_of_every_suite() {
    let vectors = vectors();
    let mut found: Vec<Suite> = Vec::new();
    for case in array(&vectors, "cases") {
        let keys = golden_keys(case);
        let suite = (keys.cipher, keys.mac);
        found.push(suite);
        let mut cover = PacketCipher::new(&keys).unwrap();
        let mut opener = Opener::new();
        opener.set_keys(keys, false).unwrap();
        for packet in array(case, "packets") {
            let (plain, mut wire) = (hex(&packet["plain"]), hex(&packet["wire"]));
            let sequence = u32::try_from(packet["sequence"].as_u64().unwrap()).unwrap();
            let mut ours = plain.clone();
            let mut tag = vec![0; cover.tag_len()];
            cover.seal(sequence, &mut ours, &mut tag).unwrap();
            ours.extend_from_slice(&tag);
            assert!(ours == wire, "{suite:?}, packet {sequence}");
            opener.count.sequence = sequence;
            let end = plain.len() - usize::from(plain[4]);
            let (payload, consumed) = open_one(&mut opener, &mut wire).unwrap();
            assert!(payload == plain[5..end], "{suite:?}, packet {sequence}");
            assert_eq!(consumed, wire.len());
        }
    }
    // Only the offered MACs; the others use the same code with shorter tags, and OpenSSH reads them
    // in the tests of the program.
    let offered = AlgorithmPreferences::for_machine(CpuFeatures {
        aes: true,
        clmul: true,
    });
    let is_offered = |mac: Option<Mac>| mac.is_none_or(|mac| offered.mac.contains(&mac));
    let usual: Vec<Suite> = suites().filter(|(_, mac)| is_offered(*mac)).collect();
    assert_eq!(found.len(), usual.len());
    assert!(usual.iter().all(|suite| found.contains(suite)));
}

/// zlib's partial flush, which OpenSSH sends, does not end on a byte boundary.
#[test]
fn streams_of_zlib() {
    let vectors = vectors();
    let suite = (Cipher::Aes128Gcm, None);
    for stream in array(&vectors, "streams") {
        let mut sealer = pair(suite, Compression::None).0;
        let mut opener = pair(suite, Compression::Zlib).1;
        for packet in array(stream, "packets") {
            let mut wire = sealed(&mut sealer, &hex(&packet["deflated"]));
            let (payload, _) = open_one(&mut opener, &mut wire).unwrap();
            assert!(payload == hex(&packet["payload"]), "{}", stream["flush"]);
        }
    }
}
