//! The receiver of forward error correction: arbitrary packets, and a sender's own over a path that
//! loses, duplicates and reorders them. Whatever it restores of those was sent; from a group that
//! lost no more than its parity, it restores everything.

#![no_main]

use std::collections::BTreeSet;

use adit_fec::{
    CodeMatrix, Decoder, Encoder, ErasureCode, FecLevel, HEADER, Packet, effective_level,
};
use adit_fuzz::Script;
use adit_wire::Time;
use libfuzzer_sys::fuzz_target;

const LONGEST: usize = 300;

fn code(matrix: CodeMatrix, data: usize, parity: usize, plain: bool) -> ErasureCode {
    let code = ErasureCode::new(matrix, data, parity).expect("few shards");
    code.with_level(if plain {
        FecLevel::Portable
    } else {
        effective_level()
    })
}

fn restored(decoder: &mut Decoder, packet: &[u8]) -> Vec<Vec<u8>> {
    decoder.handle_input(packet);
    let mut datagrams = Vec::new();
    while let Some(datagram) = decoder.poll_recovered() {
        datagrams.push(datagram.to_vec());
    }
    datagrams
}

/// Arbitrary packets; two decoders with different kernels interpret them in the same way.
fn hostile(script: &mut Script<'_>, matrix: CodeMatrix) {
    let (data, parity) = (script.below(6) + 1, script.below(5) + 1);
    let known = script.flag();
    let decoder = |plain| match known {
        true => Decoder::new(code(matrix, data, parity, plain), LONGEST),
        false => Decoder::with_unknown_shards(matrix, LONGEST),
    };
    let (mut fast, mut plain) = (decoder(false), decoder(true));
    while !script.is_over() {
        let shape = script.byte();
        let seqid = match shape & 1 {
            0 => u32::from(script.byte()),
            _ => script.word(),
        };
        let mut packet = seqid.to_le_bytes().to_vec();
        packet.extend([0xf0 + (shape >> 1) % 4, 0]);
        let body = script.bytes();
        let size = if shape & 8 == 0 {
            body.len() + 2
        } else {
            script.byte().into()
        };
        packet.extend(u16::try_from(size).unwrap_or(0).to_le_bytes());
        packet.extend_from_slice(body);
        if shape & 16 != 0 {
            packet.truncate(script.byte().into());
        }
        let found = restored(&mut fast, &packet);
        assert!(found.iter().all(|d| !d.is_empty() && d.len() <= LONGEST));
        assert_eq!(found, restored(&mut plain, &packet));
        assert_eq!(fast.counters(), plain.counters());
        assert_eq!(fast.known_shards(), plain.known_shards());
        if shape & 224 == 224 {
            fast.release_memory();
            plain.release_memory();
        }
    }
}

/// A sender, its clock and its packets.
struct Sender {
    encoder: Encoder,
    now: u64,
    count: u8,
    /// Every datagram that was ever sealed, and the filler.
    sealed: BTreeSet<Vec<u8>>,
    packets: Vec<Vec<u8>>,
}

impl Sender {
    fn send(&mut self, len: usize) {
        self.count = self.count.wrapping_add(1);
        let datagram: Vec<u8> = (0..len).map(|n| self.count ^ n.to_le_bytes()[0]).collect();
        let mut packet = [&[0; HEADER], &datagram[..]].concat();
        self.encoder
            .seal(Time(self.now), &mut packet)
            .expect("short");
        self.sealed.insert(datagram);
        self.packets.push(packet);
        self.drain();
    }

    fn drain(&mut self) {
        let mut out = vec![0; self.encoder.max_packet()];
        while let Some(len) = self.encoder.poll_output(&mut out) {
            self.packets.push(out[..len].to_vec());
        }
    }
}

/// A sender and its losses. The decoder knows the numbers of shards, or detects them.
fn lossy(script: &mut Script<'_>, matrix: CodeMatrix) {
    let (data, parity) = (script.below(6) + 1, script.below(4) + 1);
    let flags = script.byte();
    let mut decoder = match flags & 1 {
        0 => Decoder::new(code(matrix, data, parity, flags & 2 != 0), LONGEST),
        _ => Decoder::with_unknown_shards(matrix, LONGEST),
    };
    let encoder = Encoder::new(code(matrix, data, parity, false), LONGEST);
    let mut sender = Sender {
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
    while !script.is_over() {
        let act = script.byte();
        match act % 4 {
            0 => {
                sender.now += u64::from(script.byte()) << (act >> 4);
                sender.encoder.handle_timeout(Time(sender.now), &[0xf1; 24]);
                sender.drain();
            }
            1 => sender.send(LONGEST - usize::from(act >> 2)),
            _ => sender.send(usize::from(act >> 2) + 1),
        }
        for packet in core::mem::take(&mut sender.packets) {
            let fate = script.byte() % 8;
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
                for datagram in restored(&mut decoder, &packet) {
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
fn mended(script: &mut Script<'_>, matrix: CodeMatrix) {
    let (data, parity) = (script.below(10) + 1, script.below(6) + 1);
    let plain = script.flag();
    let mut decoder = Decoder::new(code(matrix, data, parity, plain), LONGEST);
    let encoder = Encoder::new(code(matrix, data, parity, !plain), LONGEST);
    let mut sender = Sender {
        encoder: encoder.expect("a sender"),
        now: 0,
        count: 0,
        sealed: BTreeSet::new(),
        packets: Vec::new(),
    };
    while !script.is_over() {
        for _ in 0..data {
            sender.send(script.below(LONGEST) + 1);
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
        for _ in 0..script.below(parity + 1) {
            group.remove(script.below(group.len()));
        }
        let at = script.below(group.len());
        group.rotate_left(at);
        let mut seen = datagrams(&group);
        for packet in &group {
            // A packet that is only late may be restored before it arrives.
            seen.extend(restored(&mut decoder, packet));
        }
        assert_eq!(
            seen, sent,
            "lost datagrams were not restored, or other datagrams were"
        );
    }
    assert_eq!(decoder.counters().errors, 0);
}

fuzz_target!(|input: &[u8]| {
    let mut script = Script::new(input);
    let flags = script.byte();
    let matrix = match flags & 1 {
        0 => CodeMatrix::Vandermonde,
        _ => CodeMatrix::Cauchy,
    };
    match (flags >> 1) % 3 {
        0 => hostile(&mut script, matrix),
        1 => lossy(&mut script, matrix),
        _ => mended(&mut script, matrix),
    }
});
