//! Rule sets of sing-box. Real `.srs` files are in the integration tests; here are one that was compiled by
//! sing-box 1.14.1, and documents that it does not write.

use super::{assert_matches, matches, noted};
use crate::AddError;
use crate::read::{Limits, NoteKind, Place, ReadError, read_sing_box_json, read_srs};

const SOURCE: &str = r#"{
  // comments are allowed
  "version": 3,
  "rules": [
    {
      "domain": ["a.example"],
      "domain_suffix": ["b.example", ".c.example"],
      "domain_keyword": "ads",
      "domain_regex": ["^x[0-9]+"],
      "ip_cidr": ["10.0.0.0/8", "2001:db8::/32"],
    },
    {"domain_suffix": "port.example", "port": [80, 443], "port_range": ["1000:2000", ":10"]},
    {"type": "logical", "mode": "and", "rules": [
      {"domain_suffix": "q.example"},
      {"port": 443, "invert": true}
    ]},
    {"type": "logical", "mode": "or", "rules": [
      {"domain": "one.example"},
      {"domain": "two.example", "network": "tcp"}
    ]},
    {"process_name": "curl", "domain": "curl.example"},
    {"domain": ["bad name", "good.example"]},
    {},
    {"type": "logical", "mode": "and", "rules": [{"domain": "z.example"}, {"wifi_ssid": "x"}]}
  ]
}"#;

#[test]
fn source_documents_are_read() {
    let loaded = read_sing_box_json(SOURCE.as_bytes(), &Limits::default()).unwrap();
    assert_eq!(loaded.accepted, 18);
    assert_eq!(noted(&loaded), [21, 22, 23, 24]);
    assert_eq!(
        loaded.notes[0].kind,
        NoteKind::Unsupported("process_name".to_owned())
    );
    assert_eq!(
        loaded.notes[1].kind,
        NoteKind::Value {
            text: "bad name".to_owned(),
            why: AddError::Name
        }
    );
    assert_eq!(loaded.notes[2].kind, NoteKind::Empty);
    assert_matches(
        &loaded.set,
        &[
            "a.example",
            "b.example",
            "x.b.example",
            "x.c.example",
            "myads",
            "x7.example",
            "10.1.1.1",
            "[2001:db8::1]",
            "port.example",
            "one.example",
            "good.example",
        ],
        &[
            "c.example",
            "x.a.example",
            "q.example",
            "two.example",
            "curl.example",
            "z.example",
        ],
    );
    for (target, expected) in [
        ("port.example:1500", true),
        ("port.example:10", true),
        ("port.example:11", false),
        ("q.example:80", true),
        ("x.example:80", false),
    ] {
        assert_eq!(matches(&loaded.set, target), expected, "{target}");
    }
}

/// A rule whose only port, or whose excepted name, is not understood would match more than it says.
#[test]
fn a_rule_never_loses_a_condition() {
    let source = r#"{"version":3,"rules":[
        {"domain":"a.example","port_range":"x"},
        {"domain":["b.example","b b"],"invert":true},
        {"domain":"c.example","port_range":["x",":443"]},
        {"type":"logical","mode":"and","rules":[{"domain":["d d","d.example"]}],"invert":true}]}"#;
    let loaded = read_sing_box_json(source.as_bytes(), &Limits::default()).unwrap();
    assert_eq!(loaded.accepted, 2);
    assert_eq!(noted(&loaded), [2, 2, 3, 3, 4, 5, 5]);
    assert_eq!(loaded.notes[1].kind, NoteKind::Incomplete);
    assert_matches(
        &loaded.set,
        &["c.example"],
        &["a.example", "b.example", "other.example"],
    );
}

#[test]
fn wrong_source_documents_are_refused() {
    let read = |text: &str| read_sing_box_json(text.as_bytes(), &Limits::default()).unwrap_err();
    assert_eq!(
        read(r#"{"version": 9, "rules": []}"#),
        ReadError::Version(9)
    );
    assert!(matches!(read(r#"{"rules": []}"#), ReadError::Syntax { .. }));
    let place = Place::Line(2);
    let expected = "an object";
    assert_eq!(
        read("{\"version\": 1, \"rules\": [\n7]}"),
        ReadError::Syntax { place, expected }
    );
    let deep = format!(r#"{{"version":1,"rules":[{}"#, r#"{"rules":["#.repeat(100));
    assert_eq!(read(&deep), ReadError::TooDeep(16));
}

fn srs(version: u8, content: &[u8]) -> Vec<u8> {
    let packed = miniz_oxide::deflate::compress_to_vec_zlib(content, 6);
    [b"SRS", &[version][..], &packed].concat()
}

/// The names `a.example`, `b.example` with all below, and those below `c.example`, by sing-box.
const NAMES: &[u8] = b"\x02\x00\x01\x00\x00\x00\x00\x00\x00R\x00\x01\x00\x00\x00\x00\x1bX\xaa\xaa\x0eelpmaxe.abc\n.\r";

#[test]
fn binary_documents_are_read() {
    let rule = [b"\x01\x00", NAMES, b"\x03\x01\x03ads\xff\x00"].concat();
    let loaded = read_srs(&srs(2, &rule), &Limits::default()).unwrap();
    assert_eq!((loaded.accepted, loaded.notes.len()), (4, 0));
    assert_matches(
        &loaded.set,
        &[
            "a.example",
            "b.example",
            "x.b.example",
            "x.c.example",
            "myads",
        ],
        &["x.a.example", "c.example", "example"],
    );
}

#[test]
fn wrong_binary_documents_are_refused() {
    let read = |document: &[u8]| read_srs(document, &Limits::default());
    let rule = [b"\x01\x00", NAMES, b"\xff\x00"].concat();
    let good = srs(3, &rule);
    assert!(read(&good).is_ok());
    for len in 0..good.len() - 4 {
        assert!(read(&good[..len]).is_err(), "{len}");
    }
    assert_eq!(read(&srs(9, &rule)).unwrap_err(), ReadError::Version(9));
    for len in 0..rule.len() {
        assert!(read(&srs(3, &rule[..len])).is_err(), "{len}");
    }
    // Every bit of the set's shape.
    for at in 2..rule.len() {
        for bit in 0..8 {
            let mut bad = rule.clone();
            bad[at] ^= 1 << bit;
            let _ = read(&srs(3, &bad));
        }
    }
    let unknown = read(&srs(3, b"\x01\x00\x63\xff\x00"));
    assert_eq!(
        unknown.unwrap_err(),
        ReadError::Format("a rule set of sing-box")
    );
    let deep = [&b"\x01"[..], &b"\x01\x00\x01".repeat(1000)].concat();
    assert_eq!(read(&srs(3, &deep)).unwrap_err(), ReadError::TooDeep(16));
    let limits = Limits {
        bytes: 1000,
        ..Limits::default()
    };
    let bomb = srs(3, &[0; 100_000]);
    assert!(bomb.len() < 1000);
    assert_eq!(
        read_srs(&bomb, &limits).unwrap_err(),
        ReadError::TooLong(1000)
    );
}
