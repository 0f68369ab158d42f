//! Shadowsocks packets in memory: a client that seals many, a server that opens them.

use std::ops::Range;

use adit_shadowsocks::udp::{ClientSession, HEADROOM, ServerOpener, TAILROOM};
use adit_shadowsocks::{Key, Method, Users};
use adit_wire::{Entropy, Target, UnixTime};
use anyhow::{Context, Result, ensure};

/// Time in the headers of the 2022 edition, the same at both ends.
const NOW: UnixTime = UnixTime(1_700_000_000);

/// Both ends of a session, and the packets between them.
#[derive(Debug)]
pub(crate) struct PacketPair {
    client: ClientSession,
    server: ServerOpener,
    target: Target,
    /// The packets one after the other, each with its overhead.
    arena: Vec<u8>,
    /// Position of the payload in a slot.
    payload: Range<usize>,
    /// The sealed packet of each slot.
    sealed: Vec<Range<usize>>,
}

impl PacketPair {
    /// Creates `count` packets with `payload` bytes each, none of them sealed yet.
    pub(crate) fn new(
        method: Method,
        payload: usize,
        count: usize,
        entropy: &mut dyn Entropy,
    ) -> Result<Self> {
        let (key, _) = Key::generate(method, entropy);
        let payload = HEADROOM..HEADROOM + payload;
        let slot = payload.end + TAILROOM;
        Ok(Self {
            client: ClientSession::new(&key.clone().into(), entropy),
            server: ServerOpener::new(&Users::with_single_key(key)),
            target: "192.0.2.1:443".parse().context("cannot parse the target")?,
            arena: vec![0; slot * count],
            payload,
            sealed: vec![0..0; count],
        })
    }

    /// Seals a packet in every slot.
    pub(crate) fn seal_all(&mut self, entropy: &mut dyn Entropy) -> Result<()> {
        let slot = self.payload.end + TAILROOM;
        for (packet, sealed) in self.arena.chunks_exact_mut(slot).zip(&mut self.sealed) {
            let payload = self.payload.clone();
            *sealed = self
                .client
                .seal(packet, payload, &self.target, NOW, entropy)?;
        }
        Ok(())
    }

    /// Opens the packet in every slot, in place.
    pub(crate) fn open_all(&mut self) -> Result<()> {
        let slot = self.payload.end + TAILROOM;
        for (packet, sealed) in self.arena.chunks_exact_mut(slot).zip(&self.sealed) {
            let packet = packet
                .get_mut(sealed.clone())
                .context("a slot has no packet")?;
            let incoming = self.server.open_packet(packet, NOW)?;
            ensure!(
                incoming.payload.len() == self.payload.len(),
                "the opened payload is not the sealed one"
            );
        }
        Ok(())
    }

    /// Returns the number of packets.
    pub(crate) const fn count(&self) -> usize {
        self.sealed.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use adit_net::system::ThreadRng;

    #[test]
    fn every_pass_is_a_new_set_of_packets() {
        for method in Method::ALL {
            let mut packets = PacketPair::new(method, 1000, 10, &mut ThreadRng).unwrap();
            for _ in 0..3 {
                packets.seal_all(&mut ThreadRng).unwrap();
                packets.open_all().unwrap();
            }
            // An opened packet is no longer sealed. Without an IV, all packets have the same key stream, and what one of
            // them becomes may be a packet, or all of them.
            assert!(
                method.salt_len() == 0 || packets.open_all().is_err(),
                "{method}"
            );
        }
    }
}
