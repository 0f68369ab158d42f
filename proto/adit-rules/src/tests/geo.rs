//! `geosite.dat` and `geoip.dat`, written by an encoder of these tests.

use super::{assert_matches, noted};
use crate::read::{Limits, ReadError, read_geoip, read_geosite};

fn varint(mut number: u64, out: &mut Vec<u8>) {
    while number > 0x7f {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn bytes(field: u64, value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    varint(field << 3 | 2, &mut out);
    varint(value.len() as u64, &mut out);
    out.extend_from_slice(value);
    out
}

fn number(field: u64, value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    varint(field << 3, &mut out);
    varint(value, &mut out);
    out
}

fn domain(kind: u64, value: &str, attributes: &[&str]) -> Vec<u8> {
    let mut out = number(1, kind);
    out.extend(bytes(2, value.as_bytes()));
    for key in attributes {
        let attribute = [bytes(1, key.as_bytes()), number(2, 1)].concat();
        out.extend(bytes(3, &attribute));
    }
    bytes(2, &out)
}

fn category(code: &str, entries: &[Vec<u8>]) -> Vec<u8> {
    bytes(1, &[bytes(1, code.as_bytes()), entries.concat()].concat())
}

fn cidr(ip: &str, prefix: u64) -> Vec<u8> {
    let ip: Vec<u8> = match ip.parse().unwrap() {
        core::net::IpAddr::V4(ip) => ip.octets().to_vec(),
        core::net::IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    bytes(2, &[bytes(1, &ip), number(2, prefix)].concat())
}

fn geosite() -> Vec<u8> {
    let google = category(
        "GOOGLE",
        &[
            domain(2, "google.example", &[]),
            domain(2, "google.cn", &["cn"]),
            domain(3, "full.example", &["ads", "cn"]),
            domain(0, "gstatic", &[]),
            domain(1, r"^g\d+\.example$", &[]),
            domain(7, "later", &[]),
            domain(1, "(", &[]),
        ],
    );
    [category("CN", &[domain(2, "cn", &[])]), google].concat()
}

#[test]
fn categories_of_names_are_read() {
    let document = geosite();
    let loaded = read_geosite(&document, "google", &Limits::default()).unwrap();
    assert_eq!((loaded.accepted, noted(&loaded)), (5, vec![6, 7]));
    assert_matches(
        &loaded.set,
        &[
            "www.google.example",
            "google.cn",
            "full.example",
            "x.gstatic.test",
            "g12.example",
        ],
        &["www.full.example", "g.example", "other.cn"],
    );
    let cn = read_geosite(&document, "Google@CN", &Limits::default()).unwrap();
    assert_eq!(cn.accepted, 2);
    assert_matches(&cn.set, &["google.cn", "full.example"], &["google.example"]);
    let both = read_geosite(&document, "google@cn@ads", &Limits::default()).unwrap();
    assert_matches(&both.set, &["full.example"], &["google.cn"]);
    let missing = read_geosite(&document, "nowhere", &Limits::default());
    assert_eq!(
        missing.unwrap_err(),
        ReadError::Category("nowhere".to_owned())
    );
}

#[test]
fn countries_are_read() {
    let document = [
        category("US", &[cidr("8.8.8.0", 24)]),
        category(
            "CN",
            &[
                cidr("1.0.1.0", 24),
                cidr("1.0.2.0", 23),
                cidr("2001:250::", 35),
                cidr("1.1.1.1", 33),
            ],
        ),
        category("NOT", &[cidr("10.0.0.0", 8), number(3, 1)]),
    ]
    .concat();
    let cn = read_geoip(&document, "cn", &Limits::default()).unwrap();
    assert_eq!((cn.accepted, noted(&cn)), (3, vec![4]));
    assert_matches(
        &cn.set,
        &["1.0.1.7", "1.0.3.7", "[2001:250::1]"],
        &["1.0.4.1", "8.8.8.8"],
    );
    let other = read_geoip(&document, "!cn", &Limits::default()).unwrap();
    assert_matches(&other.set, &["8.8.8.8"], &["1.0.1.7"]);
    let not = read_geoip(&document, "not", &Limits::default()).unwrap();
    assert_matches(&not.set, &["8.8.8.8"], &["10.1.1.1"]);
    assert!(read_geoip(&document, "de", &Limits::default()).is_err());
}

#[test]
fn cut_documents_are_refused() {
    let document = geosite();
    for len in 1..document.len() {
        assert!(
            read_geosite(&document[..len], "google", &Limits::default()).is_err(),
            "{len}"
        );
    }
}
