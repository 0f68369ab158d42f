//! The header of SOCKS datagrams, and the reassembly of fragments over arbitrary sequences.

#![no_main]

use std::time::Duration;

use adit_fuzz::split_flags;
use adit_socks::udp::{
    MAX_DATAGRAM, Reassembly, ReassemblyResult, header_len, parse_header, put_header,
    write_in_place,
};
use adit_wire::Time;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let mut queue = Reassembly::new();
    let mut now = Time(0);
    let mut rest = input;
    let mut seen = 0;
    // Consecutive packets: a length, a step of the clock in seconds, the bytes.
    while rest.len() > 2 {
        let (len, after) = split_flags(rest);
        let (step, after) = split_flags(after);
        let (packet, after) = after.split_at(usize::from(len).min(after.len()));
        rest = after;
        now = now + Duration::from_secs(u64::from(step % 8));
        let Ok(header) = parse_header(packet) else {
            continue;
        };
        let data = &packet[header.payload.clone()];
        seen += data.len();

        let mut again = Vec::new();
        put_header(&header.target, &mut again);
        assert_eq!(again.len(), header_len(&header.target));
        again.extend_from_slice(data);
        let read = parse_header(&again).expect("an encoded datagram parses");
        assert_eq!((&read.target, read.frag), (&header.target, 0));
        assert_eq!(&again[read.payload], data);

        let room = header_len(&header.target);
        let mut inside = [vec![0xee; room + 3], data.to_vec()].concat();
        let start = write_in_place(&mut inside, room + 3, &header.target).expect("there is room");
        assert_eq!(inside[start..], again);
        assert!(write_in_place(&mut inside, room - 1, &header.target).is_err());

        if let ReassemblyResult::Datagram(whole) = queue.handle_packet(now, &header, packet) {
            assert!(whole.len() <= seen && whole.len() <= MAX_DATAGRAM);
            assert!(whole.ends_with(data));
        }
        assert!(queue.poll_timeout().is_none_or(|at| at > now));
    }
});
