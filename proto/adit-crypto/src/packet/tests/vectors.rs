//! Golden bytes of kcp-go, and of the mode kcp9.

use super::*;
use crate::tests::{hex, vectors};

#[test]
fn passwords_become_kcptuns_keys() {
    let all = vectors("kcpcrypt");
    for (password, key) in all["passwords"].as_object().unwrap() {
        let ours = key_from_password(password.as_bytes());
        assert_eq!(ours.expose()[..], hex(key), "{password:?}");
    }
}

#[test]
fn packets_of_kcp_go() {
    let all = &vectors("kcpcrypt")["packets"];
    let password = all["password"].as_str().unwrap();
    let nonce = hex(&all["nonce"]);
    assert_eq!(KEY[..], hex(&all["key"]));
    let mut missing: Vec<PacketKind> = PacketKind::ALL.into();
    for (name, cipher) in all["ciphers"].as_object().unwrap() {
        let kind: PacketKind = name.parse().unwrap();
        missing.retain(|left| *left != kind);
        let key = PacketKey::new(kind, PacketCheck::Crc32, password.as_bytes()).unwrap();
        for case in cipher["cases"].as_array().unwrap() {
            let payload = payload(case["payload_len"].as_u64().unwrap() as usize);
            let packet = sealed(&key, &payload, &nonce);
            if case["packet"].is_string() {
                assert_eq!(packet, hex(&case["packet"]), "{name}, {}", payload.len());
            } else {
                let digest = crate::sha256(&packet);
                assert_eq!(digest[..], hex(&case["packet_sha256"]), "{name}");
            }
            if case["crc32"].is_string() && kind == PacketKind::None {
                let crc = u32::from_le_bytes(packet[16..20].try_into().unwrap());
                assert_eq!(crc.to_be_bytes()[..], hex(&case["crc32"]));
            }
            assert_eq!(opened(&key, &packet), Ok(payload), "{name}");
        }
    }
    assert_eq!(missing, [PacketKind::Null], "without vectors");
}

#[test]
fn pad_of_kcp_go() {
    let all = &vectors("kcpcrypt")["xor_table"];
    let key = PacketKey::from_key(PacketKind::Xor, PacketCheck::Crc32, &KEY).unwrap();
    let mut pad = [0; 1500];
    key.apply_cipher(Direction::Encrypt, &mut pad);
    assert_eq!(pad[..64], hex(&all["first64"]));
    assert_eq!(crate::sha256(&pad)[..], hex(&all["sha256_1500"]));
}

#[test]
fn packets_of_kcp9() {
    let all = &vectors("kcpcrypt")["kcp9"];
    let nonce: Vec<u8> = (0..16).collect();
    let payload = payload(100);
    for (kind, name) in [
        (PacketKind::None, "plain_packet"),
        (PacketKind::Aes, "aes_packet"),
        (PacketKind::Salsa20, "salsa20_packet"),
    ] {
        let key = PacketKey::from_key(kind, PacketCheck::HighwayHash, &KEY).unwrap();
        let packet = sealed(&key, &payload, &nonce);
        assert_eq!(packet, hex(&all[name]), "{kind}");
        assert_eq!(opened(&key, &packet).as_ref(), Ok(&payload));
    }
}
