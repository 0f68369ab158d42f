//! Opens and rebuilds every packet of the reference implementation.

use adit_wire::{FixedEntropy, UnixTime};

use super::{hex, text, vectors};
use crate::protocol_kind::ProtocolFamily;
use crate::{
    ClientParam, PACKET_TAIL, ProtocolClient, ProtocolKind, ProtocolServer, ReplayStore,
    ServerParam,
};

#[test]
fn packets() {
    for case in vectors("udp") {
        let kind: ProtocolKind = text(&case["name"]).parse().unwrap();
        let key = hex(&case["key"]);
        let param = ClientParam::parse(kind, text(&case["client_protocol_param"])).unwrap();
        let client = ProtocolClient::new(kind, &key, param, 0);
        let param = ServerParam::parse(kind, text(&case["server_protocol_param"])).unwrap();
        let replays = ReplayStore::new([7; 16], UnixTime(0)).into();
        let server = ProtocolServer::new(kind.into(), &key, &param, 0, replays);

        let (plain, wire) = (hex(&case["c2s_plain"]), hex(&case["c2s_wire"]));
        let mut packet = wire.clone();
        let (uid, payload) = server.open_packet(&mut packet).unwrap();
        assert_eq!(packet[payload.clone()], plain);
        assert_eq!(uid, (!case["uid_seen_by_server"].is_null()).then_some(42));
        let noise = &wire[payload.len()..];
        let (rng, id) = match kind.family() {
            // a, then the noise; the id was masked.
            ProtocolFamily::Chain(_) => {
                let (noise, fields) = noise.split_at(noise.len() - 8);
                let m = adit_crypto::hmac_md5(&key, &[&fields[..3]]);
                let id: Vec<u8> = (0..4).map(|i| fields[3 + i] ^ m[i]).collect();
                ([&fields[..3], noise].concat(), id)
            }
            _ => (Vec::new(), noise[..4].to_vec()),
        };
        let association = client.new_association(&mut FixedEntropy::new(id));
        let again = |sealed: &mut dyn FnMut(&mut [u8]) -> core::ops::Range<usize>, plain: &[u8]| {
            let mut packet = plain.to_vec();
            packet.resize(plain.len() + PACKET_TAIL, 0);
            let range = sealed(&mut packet);
            packet[range].to_vec()
        };
        let mut rng = FixedEntropy::new(rng);
        let mut seal = |p: &mut [u8]| {
            association
                .seal_packet(p, 0..plain.len(), &mut rng)
                .unwrap()
        };
        assert_eq!(again(&mut seal, &plain), wire);

        let (plain, wire) = (hex(&case["s2c_plain"]), hex(&case["s2c_wire"]));
        let mut packet = wire.clone();
        let payload = association.open_packet(&mut packet).unwrap();
        assert_eq!(packet[payload], plain);
        let rng = match kind.family() {
            ProtocolFamily::Chain(_) => {
                let (noise, fields) = wire[plain.len()..].split_at(wire.len() - plain.len() - 8);
                [&fields[..7], noise].concat()
            }
            _ => Vec::new(),
        };
        let mut rng = FixedEntropy::new(rng);
        let mut seal = |p: &mut [u8]| {
            let all = 0..plain.len();
            server.seal_packet(uid, p, all, &mut rng).unwrap()
        };
        assert_eq!(again(&mut seal, &plain), wire);
    }
}
