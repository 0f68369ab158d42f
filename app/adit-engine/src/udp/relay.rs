//! Shadowsocks packets that are relayed to other servers (SIP023) without opening them.

use std::net::SocketAddr;
use std::sync::Arc;

use adit_net::PacketBuf;
use adit_shadowsocks::relay::{self, RelayTable};
use adit_wire::{Broken, Target};

use super::forward::Bare;
use super::{Key, PacketCodec, ReplySeal};

/// Replaces the outer header of each packet; replies are passed back unchanged.
pub struct RelayPackets {
    /// The keys of the relay and of the servers behind it.
    pub table: Arc<RelayTable>,
    /// The servers, in the order of the table.
    pub next: Arc<[Target]>,
}

impl PacketCodec for RelayPackets {
    fn open(&mut self, packet: &mut PacketBuf, _: SocketAddr) -> Result<(Key, Target), Broken> {
        let to = relay::packet(&self.table, packet.payload_mut())?;
        packet.narrow(to.packet);
        let target = self.next.get(to.next).ok_or(Broken::Unauthentic)?;
        Ok((Key::Session(to.session), target.clone()))
    }

    fn sealer(&mut self, _: Key) -> Option<Box<dyn ReplySeal>> {
        Some(Box::new(Bare))
    }
}
