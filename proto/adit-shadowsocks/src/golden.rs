//! The golden vectors, for unit tests.

use core::net::IpAddr;
use std::sync::Arc;

use adit_wire::{FixedEntropy, Host, Target};
use serde_json::Value;

use crate::relay::RelayTable;
use crate::{Key, KeyChain, Users};

macro_rules! file {
    ($name:literal) => {
        include_str!(concat!("../vectors/", $name, ".json"))
    };
}

/// Returns the entries of one file.
pub(crate) fn vectors(name: &str) -> Vec<Value> {
    let text = match name {
        "aead" => file!("aead"),
        "none" => file!("none"),
        "stream" => file!("stream"),
        "tcp2022" => file!("tcp2022"),
        "tcp2022_big" => file!("tcp2022_big"),
        "udp2022" => file!("udp2022"),
        "relay" => file!("relay"),
        "negative2022" => file!("negative2022"),
        "socks_address" => file!("socks_address"),
        other => panic!("no vectors named {other}"),
    };
    let all: Value = serde_json::from_str(text).unwrap();
    all.as_array().unwrap().clone()
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

pub(crate) fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

pub(crate) fn hex(value: &Value) -> Vec<u8> {
    let digit = |c: u8| u8::try_from((c as char).to_digit(16).unwrap()).unwrap();
    let pairs = text(value).as_bytes().chunks(2);
    pairs.map(|p| digit(p[0]) << 4 | digit(p[1])).collect()
}

/// Parses `[host, port]`.
pub(crate) fn target(value: &Value) -> Target {
    let host = text(&value[0]);
    let port = u16::try_from(number(&value[1])).unwrap();
    let ip = host.parse::<IpAddr>().map(Host::Ip);
    let host = ip.unwrap_or_else(|_| Host::parse(host).unwrap());
    Target::new(host, port)
}

/// Returns `pattern(n, seed)` of the vectors.
pub(crate) fn pattern(n: usize, seed: usize) -> Vec<u8> {
    (0..n)
        .map(|i| u8::try_from((7 * i + 3 + seed) % 251).unwrap())
        .collect()
}

pub(crate) fn method(case: &Value) -> crate::Method {
    text(&case["method"]).parse().unwrap()
}

/// Returns the configured form of a key that a vector contains as raw bytes.
pub(crate) fn secret(psk: &Value) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(hex(psk))
}

pub(crate) fn key(case: &Value, psk: &Value) -> Key {
    Key::parse(method(case), &secret(psk)).unwrap()
}

/// Returns the key of a vector that contains it as raw bytes.
pub(crate) fn key_of_psk(case: &Value) -> Key {
    key(case, &case["psk"])
}

/// Returns the keys of a vector that contains them as a password.
pub(crate) fn chain(case: &Value) -> KeyChain {
    KeyChain::parse(method(case), text(&case["password"])).unwrap()
}

fn ipsks(case: &Value) -> &[Value] {
    case["ipsks"].as_array().map_or(&[], Vec::as_slice)
}

/// Returns the server of a vector: a single key, or the users `alice` and `bob`; `bob` is the
/// vector's user.
pub(crate) fn users(case: &Value) -> Arc<Users> {
    let Some(identity) = ipsks(case).last() else {
        return Users::with_single_key(chain(case).user_key().clone());
    };
    let decoy = Key::generate(method(case), &mut FixedEntropy::new([1; 32])).1;
    let list = [("alice", decoy), ("bob", secret(&case["psk"]))];
    Users::with_identity_key(&key(case, identity), list).unwrap()
}

/// Returns the relays in front of that server, each with its next hop at index 1.
pub(crate) fn relays(case: &Value) -> Vec<Arc<RelayTable>> {
    let table = |pair: &[Value]| {
        let decoy = Key::generate(method(case), &mut FixedEntropy::new([2; 32])).0;
        RelayTable::new(&key(case, &pair[0]), [decoy, key(case, &pair[1])]).unwrap()
    };
    ipsks(case).windows(2).map(table).collect()
}

#[test]
fn addresses() {
    for case in vectors("socks_address") {
        let expected = target(&serde_json::json!([case["host"], case["port"]]));
        let mut bytes = Vec::new();
        adit_wire::encode_addr(&expected, &mut bytes);
        assert_eq!(bytes, hex(&case["bytes"]));
        let len = bytes.len();
        assert_eq!(adit_wire::parse_addr(&bytes), Ok((expected, len)));
    }
}
