//! MaxMind databases.

use ipnet::IpNet;
use proptest::prelude::*;

use super::assert_matches;
use super::mmdb_writer::{Item, database, finish};
use crate::read::{Limits, ReadError, read_mmdb};

fn country(code: &'static str) -> Item {
    Item::Map(vec![
        ("geoname_id", Item::Number(7)),
        ("iso_code", Item::Text(code)),
    ])
}

/// Returns a database of countries.
fn countries(bits: usize, v6: bool) -> Vec<u8> {
    let mut data = Vec::new();
    let mut offsets = Vec::new();
    let records = [
        Item::Map(vec![
            ("city", Item::Array(vec![Item::Number(1)])),
            ("country", country("CN")),
        ]),
        Item::Map(vec![("registered_country", country("CN"))]),
        Item::Map(vec![
            ("country", country("US")),
            ("registered_country", country("CN")),
        ]),
        // The country of the first record, by a pointer to its data.
        Item::Map(vec![("country", Item::Pointer(0))]),
        Item::Text("cn"),
        Item::Array(vec![Item::Text("private"), Item::Text("CN")]),
    ];
    for record in records {
        offsets.push(data.len());
        if let Item::Map(pairs) = &record
            && let [(key, Item::Pointer(_))] = &pairs[..]
        {
            let first = Item::Map(vec![("city", Item::Array(vec![Item::Number(1)]))]);
            let mut head = Vec::new();
            first.write(&mut head);
            let at = head.len() + 1 + "country".len();
            Item::Map(vec![(key, Item::Pointer(at as u32))]).write(&mut data);
            continue;
        }
        record.write(&mut data);
    }
    let nets = [
        "1.0.0.0/24",
        "2.0.0.0/8",
        "3.0.0.0/8",
        "4.0.0.0/16",
        "5.5.5.5/32",
        "6.0.0.0/7",
    ];
    let mut nets: Vec<(IpNet, usize)> = nets
        .iter()
        .map(|net| net.parse().unwrap())
        .zip(offsets.iter().copied())
        .collect();
    if v6 {
        nets.push(("2001:250::/32".parse().unwrap(), offsets[0]));
    }
    database(bits, v6, &data, &nets)
}

#[test]
fn countries_are_read() {
    for (bits, v6) in [(24, false), (28, true), (32, true)] {
        let loaded = read_mmdb(&countries(bits, v6), "cn", &Limits::default()).unwrap();
        let inside = ["1.0.0.9", "2.9.9.9", "4.0.9.9", "5.5.5.5", "7.1.1.1"];
        assert_matches(
            &loaded.set,
            &inside,
            &["1.0.1.0", "3.1.1.1", "4.1.0.0", "5.5.5.4", "8.8.8.8"],
        );
        assert_eq!(super::matches(&loaded.set, "[2001:250::1]:1"), v6);
        assert_eq!(loaded.accepted, if v6 { 6 } else { 5 });
        let us = read_mmdb(&countries(bits, v6), "US", &Limits::default()).unwrap();
        assert_matches(&us.set, &["3.1.1.1"], &["1.0.0.9"]);
        let none = read_mmdb(&countries(bits, v6), "DE", &Limits::default());
        assert_eq!(none.unwrap_err(), ReadError::Category("DE".to_owned()));
    }
}

/// Each of 100 nodes leads to the next one twice: 2¹⁰⁰ ways.
#[test]
fn a_tree_that_joins_again_ends() {
    let mut tree = Vec::new();
    for node in 1..=100_u32 {
        tree.extend(&node.to_be_bytes()[1..]);
        tree.extend(&node.to_be_bytes()[1..]);
    }
    let document = finish(tree, &[], 100, 24, true);
    assert!(read_mmdb(&document, "CN", &Limits::default()).is_err());
}

proptest! {
    #[test]
    fn damage_does_not_panic(at in any::<prop::sample::Index>(), byte in any::<u8>(), len in any::<prop::sample::Index>()) {
        let mut document = countries(28, true);
        let place = at.index(document.len());
        document[place] = byte;
        let _ = read_mmdb(&document, "CN", &Limits::default());
        document.truncate(len.index(document.len()));
        let _ = read_mmdb(&document, "CN", &Limits::default());
    }
}
