//! Shadowsocks packets that are relayed to other servers (SIP023) without opening them.

use std::net::SocketAddr;
use std::sync::Arc;

use adit_net::PacketBuf;
use adit_shadowsocks::relay::{self, RelayTable};
use adit_wire::{ProtocolError, Target};

use super::forward::NoHeaderSeal;
use super::{AssociationKey, PacketCodec, ReplySeal};

/// Replaces the outer header of each packet; replies are passed back unchanged.
pub struct RelayPackets {
    /// The keys of the relay and of the servers behind it.
    pub table: Arc<RelayTable>,
    /// The servers, in the order of the table.
    pub next: Arc<[Target]>,
}

impl PacketCodec for RelayPackets {
    fn open(
        &mut self,
        packet: &mut PacketBuf,
        _: SocketAddr,
    ) -> Result<(AssociationKey, Target), ProtocolError> {
        let to = relay::relay_packet(&self.table, packet.payload_mut())?;
        packet.narrow_to(to.packet);
        let target = self.next.get(to.next).ok_or(ProtocolError::Unauthentic)?;
        Ok((AssociationKey::Session(to.session), target.clone()))
    }

    fn reply_seal(&mut self, _: AssociationKey) -> Option<Box<dyn ReplySeal>> {
        Some(Box::new(NoHeaderSeal))
    }
}
