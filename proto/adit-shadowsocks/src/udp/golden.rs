//! Every UDP vector, byte for byte, in both directions and both roles.

use adit_wire::{FixedEntropy, ProtocolError, UnixTime};
use serde_json::Value;

use super::sender::PacketSender;
use super::{ClientSession, HEADROOM, PADDING_MAX, ServerOpener, TAILROOM};
use crate::Users;
use crate::golden::{chain, hex, key_of_psk, number, relays, target, text, users, vectors};
use crate::relay;

const ROOM: usize = HEADROOM + PADDING_MAX;

fn buffer(payload: &[u8]) -> Vec<u8> {
    [&[0xee; ROOM][..], payload, &[0xee; TAILROOM]].concat()
}

/// Seals a vector's packet with its id, time, padding and nonce.
fn reproduce(sender: &mut PacketSender, case: &Value, peer: &Value) {
    let payload = hex(&case["payload"]);
    let nonce = case["nonce"].is_string().then(|| hex(&case["nonce"]));
    let nonce = nonce.unwrap_or_else(|| vec![0; 24]).try_into().unwrap();
    let padding = hex(&case["padding"]);
    let mut packet = buffer(&payload);
    sender.set_next(number(&case["packet_id"]));
    let at = ROOM..ROOM + payload.len();
    let stamp = UnixTime(number(&case["timestamp"]));
    let range = sender.seal_as(&mut packet, at, &target(peer), stamp, (&padding, nonce));
    assert_eq!(packet[range.unwrap()], hex(&case["packet"]));
}

#[test]
fn sip022_packets() {
    for case in vectors("udp2022") {
        let (keys, users) = (chain(&case), users(&case));
        let now = UnixTime(number(&case["now"]));
        let ids = |name: &str| FixedEntropy::new(hex(&case[name]));
        let mut client = ClientSession::new(&keys, &mut ids("client_session_id"));
        let mut server = ServerOpener::new(&users);
        let tables = relays(&case);
        let mut session = None;
        for (i, sent) in case["client_to_server"]
            .as_array()
            .unwrap()
            .iter()
            .enumerate()
        {
            reproduce(&mut client.sender, sent, &sent["target"]);
            let mut packet = hex(&sent["packet"]);
            for table in &tables {
                let to = relay::relay_packet(table, &mut packet).unwrap();
                assert_eq!((to.next, to.packet.end), (1, packet.len()));
                assert_eq!(
                    to.session.to_be_bytes(),
                    hex(&case["client_session_id"])[..]
                );
                packet = packet[to.packet].to_vec();
            }
            let again = packet.clone();
            let incoming = server.open_packet(&mut packet, now).unwrap();
            let user = incoming.user.and_then(|id| users.find_user(id));
            let user = user.as_ref().map(|user| user.name());
            assert_eq!(user, (users.len() == 2).then_some("bob"));
            assert_eq!(incoming.new, i == 0);
            assert_eq!(incoming.target, target(&sent["target"]));
            assert_eq!(packet[incoming.payload], hex(&sent["payload"]));
            session = incoming.session;
            let again = server.open_packet(&mut again.clone(), now);
            assert_eq!(again, Err(ProtocolError::Replayed));
        }
        assert_eq!(server.session_count(), 1);
        let mut sealer = server
            .create_sealer(session, &mut ids("server_session_id"))
            .unwrap();
        for sent in case["server_to_client"].as_array().unwrap() {
            reproduce(&mut sealer.0, sent, &sent["source"]);
            let mut packet = hex(&sent["packet"]);
            let (source, payload) = client.open(&mut packet, now).unwrap();
            assert_eq!(source, target(&sent["source"]));
            assert_eq!(packet[payload], hex(&sent["payload"]));
            let again = client.open(&mut hex(&sent["packet"]), now);
            assert_eq!(again, Err(ProtocolError::Replayed));
        }
    }
}

#[test]
fn packets_without_sessions() {
    let all = ["aead", "none", "stream"].map(vectors).concat();
    for case in all {
        if case["udp"].is_null() {
            continue;
        }
        let (keys, users) = (chain(&case), users(&case));
        let now = UnixTime(0);
        let (request, response) = (&case["udp"]["request"], &case["udp"]["response"]);
        let salt = |v: &Value| v.get("salt").or_else(|| v.get("iv")).map(hex);
        let salt = |v: &Value| FixedEntropy::new(salt(v).unwrap_or_default());
        let mut client = ClientSession::new(&keys, &mut FixedEntropy::default());
        let mut server = ServerOpener::new(&users);

        let payload = hex(&request["payload"]);
        let to = target(&request["target"]);
        let mut packet = buffer(&payload);
        let at = ROOM..ROOM + payload.len();
        let range = client
            .seal(&mut packet, at, &to, now, &mut salt(request))
            .unwrap();
        assert_eq!(packet[range.clone()], hex(&request["packet"]));
        let incoming = server.open_packet(&mut packet[range.clone()], now).unwrap();
        assert_eq!((incoming.session, incoming.new), (None, false));
        assert_eq!(incoming.target, to);
        assert_eq!(packet[range][incoming.payload], payload);

        let payload = hex(&response["payload"]);
        let from = target(&response["source"]);
        let mut packet = buffer(&payload);
        let at = ROOM..ROOM + payload.len();
        let mut sealer = server
            .create_sealer(None, &mut FixedEntropy::default())
            .unwrap();
        assert!(
            server
                .create_sealer(Some(1), &mut FixedEntropy::default())
                .is_none()
        );
        let range = sealer
            .seal(&mut packet, at, &from, now, &mut salt(response))
            .unwrap();
        assert_eq!(packet[range.clone()], hex(&response["packet"]));
        let (source, at) = client.open(&mut packet[range.clone()], now).unwrap();
        assert_eq!(source, from);
        assert_eq!(packet[range][at], payload);
    }
}

/// SEC-R5: the sequence runs from packet 0 to 2⁶⁴ - 2 through one window.
#[test]
fn sip022_accepts_and_rejects() {
    let mut seen = 0;
    for case in vectors("negative2022") {
        let now = UnixTime(number(&case["now"]));
        let mut server = ServerOpener::new(&Users::with_single_key(key_of_psk(&case)));
        let packets = match text(&case["kind"]) {
            "udp_c2s" => vec![case.clone()],
            "udp_c2s_sequence" => case["packets"].as_array().unwrap().clone(),
            _ => continue,
        };
        for packet in packets {
            let ok = server.open_packet(&mut hex(&packet["packet"]), now).is_ok();
            assert_eq!(ok, packet["expect"] == "accept", "{}", case["name"]);
            seen += 1;
        }
    }
    assert_eq!(seen, 12);
}

#[test]
fn the_packet_counter_ends_instead_of_wrapping() {
    let case = &vectors("udp2022")[0];
    let keys = chain(case);
    let mut client = ClientSession::new(&keys, &mut FixedEntropy::default());
    client.sender.set_next(u64::MAX - 1);
    let mut seal = || {
        let to = "192.0.2.7:80".parse().unwrap();
        let entropy = &mut FixedEntropy::default();
        client.seal(&mut buffer(b"x"), ROOM..ROOM + 1, &to, UnixTime(0), entropy)
    };
    assert!(seal().is_ok());
    assert_eq!(seal(), Err(ProtocolError::Exhausted("the packet counter")));
    assert_eq!(seal(), Err(ProtocolError::Exhausted("the packet counter")));
}
