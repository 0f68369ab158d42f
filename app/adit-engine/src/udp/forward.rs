//! Datagrams without a protocol, for one target: `udp://LISTEN/TARGET`.

use std::net::SocketAddr;

use adit_net::PacketBuf;
use adit_wire::{Broken, Target};

use super::{Key, PacketCodec, ReplySeal};

/// Sends every datagram to the same target.
pub struct FixedPackets {
    /// The target.
    pub target: Target,
}

impl PacketCodec for FixedPackets {
    fn open(&mut self, _: &mut PacketBuf, from: SocketAddr) -> Result<(Key, Target), Broken> {
        Ok((Key::Source(from), self.target.clone()))
    }

    fn sealer(&mut self, _: Key) -> Option<Box<dyn ReplySeal>> {
        Some(Box::new(Bare))
    }
}

/// Seals nothing: there is no header.
pub(super) struct Bare;

impl ReplySeal for Bare {
    fn seal(&mut self, _: &mut PacketBuf, _: &Target) -> Result<(), Broken> {
        Ok(())
    }
}
