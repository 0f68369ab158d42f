//! Tests of datagrams that do not fill a group: repeats, fillers, and their effect on a receiver.

use core::time::Duration;

use adit_wire::Time;

use super::{decoder, drain, encoder, recovered, seal};
use crate::{Encoder, Packet};

const FILLER: &[u8] = b"a segment that does nothing";

fn early(data: usize, parity: usize) -> Encoder {
    let mut encoder = encoder(data, parity);
    encoder.set_early(Some(Duration::from_millis(10)));
    encoder
}

/// Lets the time run out, and returns the packets sent.
fn time_out(encoder: &mut Encoder) -> Vec<Vec<u8>> {
    let due = encoder.poll_timeout().unwrap();
    encoder.handle_timeout(Time(due.0 - 1), FILLER);
    assert!(drain(encoder).is_empty(), "not yet");
    encoder.handle_timeout(due, FILLER);
    drain(encoder)
}

fn datagrams(packets: &[Vec<u8>]) -> Vec<(u32, &[u8])> {
    let data = packets
        .iter()
        .filter_map(|packet| match Packet::parse(packet) {
            Some(Packet::Data {
                seqid, datagram, ..
            }) => Some((seqid, datagram)),
            _ => None,
        });
    data.collect()
}

#[test]
fn a_lone_datagram_is_sent_twice() {
    let mut sender = early(10, 3);
    assert_eq!(sender.poll_timeout(), None);
    seal(&mut sender, 0, b"move left");
    assert_eq!(sender.poll_timeout(), Some(Time(10_000)));
    seal(&mut sender, 5_000, b"move right");
    assert_eq!(
        sender.poll_timeout(),
        Some(Time(10_000)),
        "the first one decides"
    );
    let packets = time_out(&mut sender);
    assert_eq!(
        datagrams(&packets),
        [(2, &b"move left"[..]), (3, b"move right")]
    );
    assert_eq!(packets.len(), 2);
    assert_eq!(sender.poll_timeout(), None);
    assert_eq!(
        seal(&mut sender, 20_000, b"fire")[0],
        4,
        "the group stays open"
    );
}

#[test]
fn a_group_that_was_sent_twice_needs_no_parity() {
    let mut sender = early(4, 2);
    for now in [0, 50_000] {
        seal(&mut sender, now, b"state");
        assert_eq!(time_out(&mut sender).len(), 1);
    }
    assert_eq!(seal(&mut sender, 100_000, b"state")[0], 6, "the next group");
}

#[test]
fn a_group_that_fills_up_has_its_parity_at_once() {
    let mut sender = early(3, 1);
    for now in [0, 1_000, 2_000] {
        seal(&mut sender, now, b"burst");
    }
    assert_eq!(sender.poll_timeout(), None);
    assert_eq!(drain(&mut sender).len(), 1);
    let mut single = early(1, 1);
    for now in [0, 10_000_000] {
        seal(&mut single, now, b"however late");
        assert_eq!(drain(&mut single).len(), 1);
    }
}

#[test]
fn a_group_without_room_is_filled_up() {
    let mut sender = early(10, 3);
    let sent: Vec<Vec<u8>> = (0..7u8).map(|n| seal(&mut sender, 0, &[n; 100])).collect();
    let packets = time_out(&mut sender);
    assert_eq!(packets.len(), 3 + 3);
    assert_eq!(datagrams(&packets), [(7, FILLER), (8, FILLER), (9, FILLER)]);
    // Any three of the seven may be lost.
    let mut receiver = decoder(10, 3);
    let mut restored = Vec::new();
    for packet in sent[3..].iter().chain(&packets) {
        restored.append(&mut recovered(&mut receiver, packet));
    }
    assert_eq!(restored, [[0; 100], [1; 100], [2; 100]]);
    assert_eq!(seal(&mut sender, 0, b"next")[0], 13);
}

#[test]
fn parity_and_repeats_go_together() {
    let mut sender = early(5, 2);
    let first = seal(&mut sender, 0, b"first");
    let again = time_out(&mut sender);
    let rest: Vec<_> = (0..3u8)
        .map(|n| seal(&mut sender, 11_000, &[n; 30]))
        .collect();
    let parity = drain(&mut sender);
    assert_eq!((again.len(), parity.len()), (1, 2));
    let mut receiver = decoder(5, 2);
    let mut restored = Vec::new();
    for packet in [&first, &again[0], &rest[1], &parity[0], &parity[1]] {
        restored.append(&mut recovered(&mut receiver, packet));
    }
    assert_eq!(restored, [[0; 30], [2; 30]]);
}

#[test]
fn fillers_of_nothing_are_not_passed_on() {
    let mut sender = early(3, 2);
    let sent = [seal(&mut sender, 0, b"one"), seal(&mut sender, 0, b"two")];
    sender.handle_timeout(Time(10_000), b"");
    let packets = drain(&mut sender);
    assert_eq!(datagrams(&packets), [(2, &b""[..])]);
    let mut receiver = decoder(3, 2);
    let mut restored = Vec::new();
    for packet in [&sent[0], &packets[1], &packets[2]] {
        restored.append(&mut recovered(&mut receiver, packet));
    }
    assert_eq!(restored, [b"two"]);
    assert_eq!(receiver.counters().errors, 0);
}

#[test]
fn output_that_nobody_took_is_dropped_with_its_group() {
    let mut sender = early(2, 1);
    seal(&mut sender, 0, b"one");
    sender.handle_timeout(Time(10_000), FILLER);
    // The group is full; the repeat stays queued until the next group starts.
    assert_eq!(seal(&mut sender, 20_000, b"two")[0], 3);
    assert_eq!(drain(&mut sender).len(), 0);
    sender.set_early(None);
    assert_eq!(sender.poll_timeout(), None);
}

#[test]
fn a_group_whose_copies_were_given_up_has_no_parity() {
    for mut sender in [encoder(3, 2), early(3, 2)] {
        seal(&mut sender, 0, b"one");
        sender.release_memory();
        assert_eq!(sender.poll_timeout(), None);
        seal(&mut sender, 1, b"two");
        seal(&mut sender, 2, b"three");
        assert!(drain(&mut sender).is_empty());
        assert_eq!(sender.poll_timeout(), None);
        // The slots of its parity stay free.
        let four = seal(&mut sender, 3, b"four");
        assert_eq!(datagrams(std::slice::from_ref(&four)), [(5, &b"four"[..])]);
        seal(&mut sender, 4, b"five");
        seal(&mut sender, 5, b"six");
        let parity = drain(&mut sender);
        assert_eq!(parity.len(), 2);
        let mut receiver = decoder(3, 2);
        let found = [&four, &parity[0], &parity[1]]
            .into_iter()
            .flat_map(|packet| recovered(&mut receiver, packet));
        let mut found: Vec<Vec<u8>> = found.collect();
        found.sort();
        assert_eq!(found, [&b"five"[..], b"six"]);
        // Between two groups this loses nothing.
        sender.release_memory();
        for (now, text) in [(6, &b"a"[..]), (7, b"b"), (8, b"c")] {
            seal(&mut sender, now, text);
        }
        assert_eq!(drain(&mut sender).len(), 2);
    }
}
