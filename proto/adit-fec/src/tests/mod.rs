//! Tests of the whole crate: golden bytes, properties of the code, and sender against receiver.

mod framing;
mod golden;
mod laws;
mod sparse;

use adit_wire::Time;

use crate::{Decoder, Encoder, ErasureCode, HEADER};

fn hex(text: &serde_json::Value) -> Vec<u8> {
    let text = text.as_str().unwrap();
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(core::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// A small generator (SplitMix64), so that failures are reproducible.
struct TestRng(u64);

impl TestRng {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.roll() % bound as u64).unwrap()
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        let words = (0..len.div_ceil(8)).flat_map(|_| self.roll().to_le_bytes());
        words.take(len).collect()
    }
}

fn encoder(data: usize, parity: usize) -> Encoder {
    Encoder::new(ErasureCode::vandermonde(data, parity).unwrap(), 1400).unwrap()
}

fn decoder(data: usize, parity: usize) -> Decoder {
    Decoder::new(ErasureCode::vandermonde(data, parity).unwrap(), 1400)
}

fn seal(encoder: &mut Encoder, now: u64, datagram: &[u8]) -> Vec<u8> {
    let mut packet = [&[0xee; HEADER], datagram].concat();
    encoder.seal(Time(now), &mut packet).unwrap();
    packet
}

fn drain(encoder: &mut Encoder) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    let mut out = vec![0; encoder.max_packet()];
    while let Some(len) = encoder.poll_output(&mut out) {
        packets.push(out[..len].to_vec());
    }
    packets
}

fn recovered(decoder: &mut Decoder, packet: &[u8]) -> Vec<Vec<u8>> {
    decoder.handle_input(packet);
    let mut datagrams = Vec::new();
    while let Some(datagram) = decoder.poll_recovered() {
        datagrams.push(datagram.to_vec());
    }
    datagrams
}

/// Returns `groups` full groups of shards, and the datagrams in them.
fn groups(
    encoder: &mut Encoder,
    rng: &mut TestRng,
    data: usize,
    groups: usize,
) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let (mut packets, mut datagrams) = (Vec::new(), Vec::new());
    for _ in 0..groups * data {
        let len = 24 + rng.below(200);
        let datagram = rng.bytes(len);
        packets.push(seal(encoder, 0, &datagram));
        packets.append(&mut drain(encoder));
        datagrams.push(datagram);
    }
    (packets, datagrams)
}
