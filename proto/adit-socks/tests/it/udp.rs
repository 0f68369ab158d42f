//! The datagram header.

use adit_socks::udp::{MAX_HEADER, header_len, parse_header, put_header, write_in_place};
use adit_wire::{Host, ProtocolError, Target};
use proptest::prelude::*;

use crate::split::hex;

fn targets() -> Vec<Target> {
    let long = format!("{}:1", "x".repeat(255));
    ["8.8.8.8:53", "[2001:db8::1]:443", "example.test:80", &long]
        .iter()
        .map(|text| text.parse().unwrap())
        .collect()
}

#[test]
fn the_vector() {
    let packet = hex("00000001 08080808 0035 aa");
    let header = parse_header(&packet).unwrap();
    assert_eq!(header.frag, 0);
    assert_eq!(header.target, "8.8.8.8:53".parse().unwrap());
    assert_eq!(packet[header.payload], [0xaa]);
    let mut out = Vec::new();
    put_header(&"8.8.8.8:53".parse().unwrap(), &mut out);
    assert_eq!(out, packet[..10]);
}

#[test]
fn both_writers_and_the_parser_agree() {
    for target in targets() {
        let mut out = vec![0xee];
        put_header(&target, &mut out);
        assert_eq!(out.len(), 1 + header_len(&target));
        let mut packet = vec![0xcc; MAX_HEADER];
        packet.extend_from_slice(b"data");
        let start = write_in_place(&mut packet, MAX_HEADER, &target).unwrap();
        assert_eq!(packet[start..MAX_HEADER], out[1..]);
        assert!(packet[..start].iter().all(|b| *b == 0xcc));
        let header = parse_header(&packet[start..]).unwrap();
        assert_eq!((header.frag, &header.target), (0, &target));
        assert_eq!(&packet[start..][header.payload], b"data");
        // An empty payload is valid, a truncated header is not.
        assert!(parse_header(&out[1..]).unwrap().payload.is_empty());
        for cut in 1..out.len() {
            assert_eq!(
                parse_header(&out[1..cut]),
                Err(ProtocolError::Truncated("the SOCKS datagram header"))
            );
        }
        let room = header_len(&target);
        assert!(write_in_place(&mut packet, room - 1, &target).is_err());
        assert_eq!(write_in_place(&mut packet, room, &target), Ok(0));
        assert!(write_in_place(&mut packet, 9_999, &target).is_err());
    }
}

#[test]
fn mapped_addresses_are_written_as_ipv4() {
    let mapped = Target::new(Host::Ip("::ffff:8.8.8.8".parse().unwrap()), 53);
    let mut out = Vec::new();
    put_header(&mapped, &mut out);
    assert_eq!(out, hex("00000001 08080808 0035"));
}

#[test]
fn refuses_what_must_be_dropped() {
    for packet in [
        "00010001 08080808 0035 aa",
        "01000001 08080808 0035 aa",
        "00000002 08080808 0035 aa",
        "00000003 00 0035",
        "00000003 01 20 0035",
        "",
        "00",
    ] {
        assert!(parse_header(&hex(packet)).is_err(), "{packet}");
    }
    assert_eq!(
        parse_header(&hex("000083 01 08080808 0035")).unwrap().frag,
        0x83
    );
}

proptest! {
    #[test]
    fn any_packet_is_handled(
        start in proptest::sample::select(vec!["", "0000", "00000003", "00000001"]),
        noise in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let packet = [hex(start), noise].concat();
        if let Ok(header) = parse_header(&packet) {
            let mut again = Vec::new();
            put_header(&header.target, &mut again);
            again.extend_from_slice(&packet[header.payload.clone()]);
            let back = parse_header(&again).unwrap();
            prop_assert_eq!(back.target, header.target);
            prop_assert_eq!(&again[back.payload], &packet[header.payload]);
        }
    }
}
