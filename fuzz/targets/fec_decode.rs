//! The receiver of forward error correction: arbitrary packets, and a sender's own over a path that
//! loses, duplicates and reorders them. Whatever it restores of those was sent; from a group that
//! lost no more than its parity, it restores everything.

#![no_main]

use std::collections::BTreeSet;

use adit_fec::{
    CodeMatrix, Decoder, Encoder, ErasureCode, FecLevel, HEADER, Packet, effective_level,
};
use adit_fuzz::ActionScript;
use adit_wire::Time;
use libfuzzer_sys::fuzz_target;

const MAX_DATAGRAM: usize = 300;

fn erasure_code(matrix: CodeMatrix, data: usize, parity: usize, plain: bool) -> ErasureCode {
    let code = ErasureCode::new(matrix, data, parity).expect("few shards");
    code.with_level(if plain {
        FecLevel::Portable
    } else {
        effective_level()
    })
}

fn feed_decoder(decoder: &mut Decoder, packet: &[u8]) -> Vec<Vec<u8>> {
    decoder.handle_input(packet);
    let mut datagrams = Vec::new();
    while let Some(datagram) = decoder.poll_recovered() {
        datagrams.push(datagram.to_vec());
    }
    datagrams
}

/// Arbitrary packets; two decoders with different kernels interpret them in the same way.
fn check_arbitrary_packets(script: &mut ActionScript<'_>, matrix: CodeMatrix) {
    let (data, parity) = (script.read_below(6) + 1, script.read_below(5) + 1);
    let known = script.read_flag();
    let decoder = |plain| match known {
        true => Decoder::new(erasure_code(matrix, data, parity, plain), MAX_DATAGRAM),
        false => Decoder::with_unknown_shards(matrix, MAX_DATAGRAM),
    };
    let (mut fast, mut plain) = (decoder(false), decoder(true));
    while !script.is_empty() {
        let shape = script.read_u8();
        let seqid = match shape & 1 {
            0 => u32::from(script.read_u8()),
            _ => script.read_u32(),
        };
        let mut packet = seqid.to_le_bytes().to_vec();
        packet.extend([0xf0 + (shape >> 1) % 4, 0]);
        let body = script.read_bytes();
        let size = if shape & 8 == 0 {
            body.len() + 2
        } else {
            script.read_u8().into()
        };
        packet.extend(u16::try_from(size).unwrap_or(0).to_le_bytes());
        packet.extend_from_slice(body);
        if shape & 16 != 0 {
            packet.truncate(script.read_u8().into());
        }
        let found = feed_decoder(&mut fast, &packet);
        assert!(
            found
                .iter()
                .all(|d| !d.is_empty() && d.len() <= MAX_DATAGRAM)
        );
        assert_eq!(found, feed_decoder(&mut plain, &packet));
        assert_eq!(fast.counters(), plain.counters());
        assert_eq!(fast.known_shards(), plain.known_shards());
        if shape & 224 == 224 {
            fast.release_memory();
            plain.release_memory();
        }
    }
}

/// A sender, its clock and its packets.
struct FecSender {
    encoder: Encoder,
    now: u64,
    count: u8,
    /// Every datagram that was ever sealed, and the filler.
    sealed: BTreeSet<Vec<u8>>,
    packets: Vec<Vec<u8>>,
}

impl FecSender {
    fn send_datagram(&mut self, len: usize) {
        self.count = self.count.wrapping_add(1);
        let datagram: Vec<u8> = (0..len).map(|n| self.count ^ n.to_le_bytes()[0]).collect();
        let mut packet = [&[0; HEADER], &datagram[..]].concat();
        self.encoder
            .seal(Time(self.now), &mut packet)
            .expect("short");
        self.sealed.insert(datagram);
        self.packets.push(packet);
        self.collect_output();
    }

    fn collect_output(&mut self) {
        let mut out = vec![0; self.encoder.max_packet()];
        while let Some(len) = self.encoder.poll_output(&mut out) {
            self.packets.push(out[..len].to_vec());
        }
    }
}

/// A sender and its losses. The decoder knows the numbers of shards, or detects them.
fn check_lossy_path(script: &mut ActionScript<'_>, matrix: CodeMatrix) {
    let (data, parity) = (script.read_below(6) + 1, script.read_below(4) + 1);
    let flags = script.read_u8();
    let mut decoder = match flags & 1 {
        0 => Decoder::new(
            erasure_code(matrix, data, parity, flags & 2 != 0),
            MAX_DATAGRAM,
        ),
        _ => Decoder::with_unknown_shards(matrix, MAX_DATAGRAM),
    };
    let encoder = Encoder::new(erasure_code(matrix, data, parity, false), MAX_DATAGRAM);
    let mut sender = FecSender {
        encoder: encoder.expect("a sender"),
        now: 0,
        count: 0,
        sealed: BTreeSet::from([vec![0xf1; 24]]),
        packets: Vec::new(),
    };
    if flags & 4 != 0 {
        let wait = core::time::Duration::from_millis(5);
        sender.encoder.set_early(Some(wait));
    }
    let mut late: Vec<Vec<u8>> = Vec::new();
    while !script.is_empty() {
        let act = script.read_u8();
        match act % 4 {
            0 => {
                sender.now += u64::from(script.read_u8()) << (act >> 4);
                sender.encoder.handle_timeout(Time(sender.now), &[0xf1; 24]);
                sender.collect_output();
            }
            1 => sender.send_datagram(MAX_DATAGRAM - usize::from(act >> 2)),
            _ => sender.send_datagram(usize::from(act >> 2) + 1),
        }
        for packet in core::mem::take(&mut sender.packets) {
            let fate = script.read_u8() % 8;
            let arriving = match fate {
                1 | 2 => vec![],
                3 => {
                    late.push(packet);
                    vec![]
                }
                4 => vec![packet.clone(), packet],
                5 => late.drain(..).chain([packet]).collect(),
                _ => vec![packet],
            };
            for packet in arriving {
                for datagram in feed_decoder(&mut decoder, &packet) {
                    assert!(
                        sender.sealed.contains(&datagram),
                        "restored a datagram that was never sent"
                    );
                }
            }
        }
    }
}

/// Whole groups that lose no more than their parity compensates.
fn check_full_recovery(script: &mut ActionScript<'_>, matrix: CodeMatrix) {
    let (data, parity) = (script.read_below(10) + 1, script.read_below(6) + 1);
    let plain = script.read_flag();
    let mut decoder = Decoder::new(erasure_code(matrix, data, parity, plain), MAX_DATAGRAM);
    let encoder = Encoder::new(erasure_code(matrix, data, parity, !plain), MAX_DATAGRAM);
    let mut sender = FecSender {
        encoder: encoder.expect("a sender"),
        now: 0,
        count: 0,
        sealed: BTreeSet::new(),
        packets: Vec::new(),
    };
    while !script.is_empty() {
        for _ in 0..data {
            sender.send_datagram(script.read_below(MAX_DATAGRAM) + 1);
        }
        let mut group = core::mem::take(&mut sender.packets);
        assert!(group.len() >= data, "a group without its data");
        if group.len() < data + parity {
            // The first group has no parity if its datagrams were not consecutive.
            continue;
        }
        let datagrams = |packets: &[Vec<u8>]| -> BTreeSet<Vec<u8>> {
            let all = packets.iter().filter_map(|packet| Packet::parse(packet));
            all.filter_map(|packet| match packet {
                Packet::Data { datagram, .. } => Some(datagram.to_vec()),
                _ => None,
            })
            .collect()
        };
        let sent = datagrams(&group);
        for _ in 0..script.read_below(parity + 1) {
            group.remove(script.read_below(group.len()));
        }
        let at = script.read_below(group.len());
        group.rotate_left(at);
        let mut seen = datagrams(&group);
        for packet in &group {
            // A packet that is only late may be restored before it arrives.
            seen.extend(feed_decoder(&mut decoder, packet));
        }
        assert_eq!(
            seen, sent,
            "lost datagrams were not restored, or other datagrams were"
        );
    }
    assert_eq!(decoder.counters().errors, 0);
}

fuzz_target!(|input: &[u8]| {
    let mut script = ActionScript::new(input);
    let flags = script.read_u8();
    let matrix = match flags & 1 {
        0 => CodeMatrix::Vandermonde,
        _ => CodeMatrix::Cauchy,
    };
    match (flags >> 1) % 3 {
        0 => check_arbitrary_packets(&mut script, matrix),
        1 => check_lossy_path(&mut script, matrix),
        _ => check_full_recovery(&mut script, matrix),
    }
});
