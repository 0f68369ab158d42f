//! Datagrams without a protocol, for one target: `udp://LISTEN/TARGET`.

use std::net::SocketAddr;

use adit_net::PacketBuf;
use adit_wire::{ProtocolError, Target};

use super::{AssociationKey, PacketCodec, ReplySeal};

/// Sends every datagram to the same target.
pub struct FixedTargetPackets {
    /// The target.
    pub target: Target,
}

impl PacketCodec for FixedTargetPackets {
    fn open(
        &mut self,
        _: &mut PacketBuf,
        from: SocketAddr,
    ) -> Result<(AssociationKey, Target), ProtocolError> {
        Ok((AssociationKey::Source(from), self.target.clone()))
    }

    fn reply_seal(&mut self, _: AssociationKey) -> Option<Box<dyn ReplySeal>> {
        Some(Box::new(NoHeaderSeal))
    }
}

/// Seals nothing: there is no header.
pub(super) struct NoHeaderSeal;

impl ReplySeal for NoHeaderSeal {
    fn seal(&mut self, _: &mut PacketBuf, _: &Target) -> Result<(), ProtocolError> {
        Ok(())
    }
}
