//! The golden vectors, for the tests beside the code.

use core::net::IpAddr;

use adit_wire::{Host, Target};
use serde_json::Value;

macro_rules! file {
    ($name:literal) => {
        include_str!(concat!("../../../vectors/shadowsocks/", $name, ".json"))
    };
}

/// One file's entries.
pub(crate) fn vectors(name: &str) -> Vec<Value> {
    let text = match name {
        "aead" => file!("aead"),
        "none" => file!("none"),
        "tcp2022" => file!("tcp2022"),
        "tcp2022_big" => file!("tcp2022_big"),
        "udp2022" => file!("udp2022"),
        "negative2022" => file!("negative2022"),
        "socks_address" => file!("socks_address"),
        other => panic!("no vectors called {other}"),
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

/// `[host, port]`
pub(crate) fn target(value: &Value) -> Target {
    let host = text(&value[0]);
    let port = u16::try_from(number(&value[1])).unwrap();
    let ip = host.parse::<IpAddr>().map(Host::Ip);
    let host = ip.unwrap_or_else(|_| Host::parse(host).unwrap());
    Target::new(host, port)
}

/// `pattern(n, seed)` of the vectors.
pub(crate) fn pattern(n: usize, seed: usize) -> Vec<u8> {
    (0..n)
        .map(|i| u8::try_from((7 * i + 3 + seed) % 251).unwrap())
        .collect()
}

pub(crate) fn method(case: &Value) -> crate::Method {
    text(&case["method"]).parse().unwrap()
}

/// The key of a vector that gives it as raw bytes.
pub(crate) fn key_of_psk(case: &Value) -> crate::Key {
    use base64::Engine;
    let psk = base64::engine::general_purpose::STANDARD.encode(hex(&case["psk"]));
    crate::Key::parse(method(case), &psk).unwrap()
}

/// The key of a vector that gives it as a password.
pub(crate) fn key_of_password(case: &Value) -> crate::Key {
    crate::Key::parse(method(case), text(&case["password"])).unwrap()
}

#[test]
fn addresses() {
    for case in vectors("socks_address") {
        let expected = target(&serde_json::json!([case["host"], case["port"]]));
        let mut bytes = Vec::new();
        adit_wire::put_addr(&expected, &mut bytes);
        assert_eq!(bytes, hex(&case["bytes"]));
        let len = bytes.len();
        assert_eq!(adit_wire::parse_addr(&bytes), Ok((expected, len)));
    }
}
