//! Tests of packets with golden bytes, round trips, and damage.

mod behaviour;
mod sessions;
mod vectors;

use adit_wire::{Entropy, FixedEntropy};

use super::*;

/// A generator whose bytes differ from call to call.
struct Counting(u8);

impl Entropy for Counting {
    fn fill(&mut self, out: &mut [u8]) {
        for byte in out {
            self.0 = self.0.wrapping_mul(77).wrapping_add(13);
            *byte = self.0;
        }
    }
}

const KEY: [u8; 32] = [
    0x25, 0xd7, 0xd7, 0xbd, 0x51, 0x05, 0x07, 0x42, 0xd8, 0xd7, 0x91, 0xf2, 0xb6, 0x53, 0xc6, 0xc8,
    0xb2, 0x36, 0x6b, 0x7e, 0x25, 0xa1, 0x24, 0xcf, 0x7a, 0x2e, 0x12, 0xea, 0xf4, 0xff, 0xa4, 0x44,
];

fn payload(len: usize) -> Vec<u8> {
    (0..len).map(|j| (j * 11 + 3) as u8).collect()
}

/// A payload with space around it.
fn roomy(key: &PacketKey, payload: &[u8]) -> Vec<u8> {
    let Overhead { head, tail, .. } = key.overhead_layout();
    [&vec![0xee; head], payload, &vec![0xdd; tail]].concat()
}

fn sealed(key: &PacketKey, payload: &[u8], nonce: &[u8]) -> Vec<u8> {
    let mut packet = roomy(key, payload);
    key.seal(&mut packet, &mut FixedEntropy::new(nonce))
        .unwrap();
    packet
}

fn opened(key: &PacketKey, packet: &[u8]) -> Result<Vec<u8>, CryptoError> {
    let mut packet = packet.to_vec();
    let range = key.open(&mut packet)?;
    Ok(packet[range].to_vec())
}

/// All combinations of kind and check.
fn all() -> impl Iterator<Item = (PacketKind, PacketCheck)> {
    let checks = [PacketCheck::Crc32, PacketCheck::HighwayHash];
    PacketKind::ALL
        .into_iter()
        .flat_map(move |kind| checks.map(|check| (kind, check)))
}
