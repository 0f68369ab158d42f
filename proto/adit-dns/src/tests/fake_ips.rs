//! The table of fake addresses.

use core::net::{IpAddr, Ipv4Addr};
use std::collections::HashMap;

use proptest::prelude::*;

use crate::{FakeIpError, FakeIpNetworks, FakeIpTable, RecordType, SnapshotError};

/// A client.
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

fn networks(v4: &str, v6: &str) -> FakeIpNetworks {
    FakeIpNetworks {
        v4: v4.parse().ok(),
        v6: v6.parse().ok(),
    }
}

fn table(v4: &str, v6: &str, capacity: usize) -> FakeIpTable {
    FakeIpTable::new(networks(v4, v6), capacity).unwrap()
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn addresses_stand_for_names() {
    let mut table = table("198.18.3.4/15", "fc00::/18", 1000);
    let v4 = table.address_for("a.test", RecordType::A, CLIENT).unwrap();
    let v6 = table
        .address_for("a.test", RecordType::AAAA, CLIENT)
        .unwrap();
    assert_eq!((v4, v6), (ip("198.18.0.2"), ip("fc00::2")));
    assert_eq!(
        table.address_for("b.test", RecordType::AAAA, CLIENT),
        Some(ip("fc00::3"))
    );
    assert_eq!(table.address_for("a.test", RecordType::A, CLIENT), Some(v4));
    assert_eq!(table.name_of(v4).as_deref(), Some("a.test"));
    assert_eq!(
        table.name_of(ip("::ffff:198.18.0.2")).as_deref(),
        Some("a.test")
    );
    assert_eq!(table.name_of(ip("fc00::3")).as_deref(), Some("b.test"));
    for other in [
        "198.18.0.0",
        "198.18.0.1",
        "198.18.0.9",
        "198.17.255.255",
        "fb00::1",
        "::1",
    ] {
        assert_eq!(table.name_of(ip(other)), None, "{other}");
    }
    assert!(table.contains(ip("198.19.255.255")) && table.contains(ip("fc00::")));
    assert!(!table.contains(ip("198.20.0.0")) && !table.contains(ip("ff00::")));
    assert_eq!(table.address_for("a.test", RecordType::HTTPS, CLIENT), None);
    assert_eq!(table.address_for("", RecordType::A, CLIENT), None);
    assert_eq!(
        table.address_for(&"a".repeat(256), RecordType::A, CLIENT),
        None
    );
    assert_eq!((table.len(), table.changes()), (2, 2));
}

#[test]
fn networks_bound_the_number_of_names() {
    let new = |v4, v6, n| FakeIpTable::new(networks(v4, v6), n).map(|table| table.capacity());
    assert_eq!(new("10.0.0.0/29", "", 1000), Ok(5));
    assert_eq!(new("10.0.0.0/24", "fc00::/125", 1000), Ok(5));
    assert_eq!(new("0.0.0.0/0", "::/0", usize::MAX), Ok(1 << 20));
    assert_eq!(new("10.0.0.0/8", "", 0), Ok(1));
    assert_eq!(new("", "", 5), Err(FakeIpError::NoNetwork));
    for (v4, v6) in [
        ("10.0.0.0/30", ""),
        ("10.0.0.0/32", ""),
        ("10.0.0.0/8", "fc00::/126"),
    ] {
        assert!(matches!(new(v4, v6, 5), Err(FakeIpError::TooSmall(_))));
    }
    // The last address of the smallest network is not used.
    let mut table = table("10.0.0.0/29", "", 1000);
    for n in 0..50 {
        let address = table
            .address_for(&format!("n{n}"), RecordType::A, CLIENT)
            .unwrap();
        assert!(
            address >= ip("10.0.0.2") && address <= ip("10.0.0.6"),
            "{address}"
        );
    }
    assert_eq!(table.len(), 5);
}

#[test]
fn the_least_recently_used_name_loses_its_address() {
    let mut table = table("10.0.0.0/8", "", 3);
    let first = table.address_for("a", RecordType::A, CLIENT).unwrap();
    let second = table.address_for("b", RecordType::A, CLIENT).unwrap();
    table.address_for("c", RecordType::A, CLIENT).unwrap();
    assert!(
        table.name_of(first).is_some(),
        "a connection to it counts as use"
    );
    assert_eq!(table.address_for("d", RecordType::A, CLIENT), Some(second));
    assert_eq!(table.name_of(second).as_deref(), Some("d"));
    assert_eq!(table.name_of(first).as_deref(), Some("a"));
}

#[test]
fn a_greedy_client_pushes_out_its_own_names() {
    let mut table = table("10.0.0.0/8", "", 100);
    let (quiet, greedy) = (ip("192.0.2.1"), ip("192.0.2.2"));
    // Names that both look up count for the quiet client, no matter which came first.
    table.address_for("both", RecordType::A, greedy).unwrap();
    for n in 0..5 {
        table.address_for(&format!("greedy{n}"), RecordType::A, greedy);
    }
    let names = ["a", "b", "c", "both"];
    let known = names.map(|name| table.address_for(name, RecordType::A, quiet).unwrap());
    for name in names {
        table.address_for(name, RecordType::A, greedy).unwrap();
    }
    for n in 0..1000 {
        table.address_for(&format!("n{n}"), RecordType::A, greedy);
    }
    assert_eq!(table.len(), 100);
    for (name, address) in names.iter().zip(known) {
        assert_eq!(table.name_of(address).as_deref(), Some(*name));
    }
    // The last ones of the greedy client are there as well, and a third client has its share.
    let last = table.address_for("n999", RecordType::A, greedy).unwrap();
    assert_eq!(table.name_of(last).as_deref(), Some("n999"));
    let third: Vec<IpAddr> = (0..40)
        .map(|n| table.address_for(&format!("third{n}"), RecordType::A, ip("192.0.2.3")))
        .map(Option::unwrap)
        .collect();
    for n in 0..1000 {
        table.address_for(&format!("m{n}"), RecordType::A, greedy);
    }
    for (n, address) in third.into_iter().enumerate() {
        assert_eq!(table.name_of(address), Some(format!("third{n}").into()));
    }
    // The client of a restored name is unknown until it is looked up.
    let text = table.snapshot();
    assert_eq!(table.restore(&text), Ok(100));
    assert_eq!(table.snapshot(), text);
    assert_eq!(table.address_for("a", RecordType::A, quiet), Some(known[0]));
    for n in 0..1000 {
        table.address_for(&format!("l{n}"), RecordType::A, greedy);
    }
    assert_eq!(table.name_of(known[0]).as_deref(), Some("a"));
}

#[test]
fn snapshots_restore_names_and_their_order() {
    let mut old = table("10.0.0.0/8", "fc00::/64", 3);
    for name in ["a", "b", "c", "a"] {
        old.address_for(name, RecordType::A, CLIENT);
    }
    let text = old.snapshot();
    assert_eq!(text, "adit-fake-ip 1 10.0.0.0/8 fc00::/64\n1 b\n2 c\n0 a\n");
    let mut new = table("10.0.0.0/8", "fc00::/64", 3);
    assert_eq!(new.restore(&text), Ok(3));
    assert_eq!(new.snapshot(), text);
    assert_eq!(new.name_of(ip("10.0.0.3")).as_deref(), Some("b"));
    assert_eq!(
        new.address_for("d", RecordType::A, CLIENT),
        Some(ip("10.0.0.4")),
        "that of c"
    );

    let mut small = table("10.0.0.0/8", "fc00::/64", 2);
    assert_eq!(small.restore(&text), Ok(2));
    assert_eq!(small.name_of(ip("10.0.0.2")).as_deref(), Some("a"));
    assert_eq!(
        table("10.0.0.0/8", "", 3).restore(&text),
        Err(SnapshotError::OtherNetworks)
    );
    assert_eq!(new.restore("something\n"), Err(SnapshotError::Head));
    let head = "adit-fake-ip 1 10.0.0.0/8 fc00::/64\n";
    for bad in ["0", "x a", "0 a b", "0 ", "0 a\n0 b", "0 a\n\n", "-1 a"] {
        let got = new.restore(&format!("{head}{bad}\n"));
        assert!(matches!(got, Err(SnapshotError::Line(_))), "{bad}: {got:?}");
    }
    assert_eq!(new.len(), 3, "unchanged");
    // Places are taken in order: those after a gap are given up.
    assert_eq!(new.restore(&format!("{head}0 a\n2 c\n")), Ok(1));
    assert_eq!(new.restore(&format!("{head}0 a\n1 a\n")), Ok(1));
    assert_eq!(
        new.address_for("b", RecordType::A, CLIENT),
        Some(ip("10.0.0.3"))
    );
}

proptest! {
    /// At each time, names and addresses are one to one, and a restored table answers as the old one.
    #[test]
    fn names_and_addresses_are_one_to_one(steps in proptest::collection::vec((0_u8..20, any::<bool>()), 0..200)) {
        let mut table = table("10.0.0.0/28", "", 7);
        let mut known: HashMap<IpAddr, String> = HashMap::new();
        for (n, by_name) in steps {
            let name = format!("n{n}");
            if by_name {
                let address = table.address_for(&name, RecordType::A, CLIENT).unwrap();
                known.retain(|_, other| *other != name);
                known.insert(address, name);
            } else {
                let address = IpAddr::from([10, 0, 0, n]);
                let found = table.name_of(address);
                prop_assert_eq!(found.as_deref(), known.get(&address).map(String::as_str));
            }
            let mut copy = FakeIpTable::new(table.networks(), 7).unwrap();
            prop_assert_eq!(copy.restore(&table.snapshot()), Ok(known.len()));
            prop_assert_eq!(copy.snapshot(), table.snapshot());
        }
    }
}
