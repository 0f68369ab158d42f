//! Datagrams: one table of associations for every protocol.
//!
//! A `ForwardListener` receives on one socket. A [`PacketCodec`] determines the association and the target of
//! a packet, which is then sent through the [`DatagramPath`] of that association immediately. A task of
//! the association returns the replies through a [`ReplySeal`].
//! Transparent listeners need no codec: intercepted datagrams have their target as destination
//! address ([`InterceptedDatagrams`]).

mod association_table;
mod association_table_updater;
mod backlog;
mod client_side;
mod datagram_exchange;
mod direct;
mod forward;
mod key_trials;
mod over_tcp;
mod quotas;
mod session_claims;
mod shadowsocks;
mod shadowsocks_relay;
mod socks;
mod ssr;
mod transparent;
mod ttl;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use adit_net::PacketBuf;
use adit_wire::{ProtocolError, Target};

use crate::replay_claims::ClaimAnswer;
use crate::user_account::UserAccount;

pub(crate) use association_table::AssociationUser;
pub use association_table::UdpListener;
pub(crate) use association_table_updater::{AssociationTableUpdater, TableUpdate};
pub(crate) use datagram_exchange::exchange_datagrams;
pub use direct::{DirectUdp, SenderFilter};
pub use forward::FixedTargetPackets;
pub use over_tcp::UdpOverTcp;
pub(crate) use over_tcp::accept_udp_over_tcp as accept_over_tcp;
pub use quotas::ListenerQuota;
pub(crate) use quotas::{AssociationRegistry, AssociationSlot, HeldDescriptor};
pub(crate) use session_claims::SessionClaims;
pub use shadowsocks::{ShadowsocksPackets, ShadowsocksUdp};
pub use shadowsocks_relay::RelayPackets;
pub use socks::{SocksPackets, SocksUdp};
pub use ssr::{SsrPackets, SsrUdp};
pub use transparent::InterceptedDatagrams;
pub use ttl::AssociationTtl;

/// A path for datagrams to any target. Sending never waits: a datagram that cannot be sent is lost.
pub trait DatagramPath: Send + Sync {
    /// Sends the payload of `packet` to `to`, using the spare capacity around it. The datagram may be
    /// delayed until [`flush`](Self::flush).
    fn send(&self, packet: &mut PacketBuf, to: &Target) -> io::Result<()>;

    /// Sends delayed datagrams.
    fn flush(&self) -> io::Result<()>;

    /// Receives a batch, using `packet` as scratch buffer. Calls `each` with each datagram and its sender.
    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        packet: &mut PacketBuf,
        each: &mut dyn FnMut(&mut PacketBuf, &Target),
    ) -> Poll<io::Result<()>>;
}

/// A boxed path for datagrams.
pub type BoxDatagramPath = Box<dyn DatagramPath>;

/// The key of an association.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AssociationKey {
    /// A session of the protocol, whose client may change its address.
    Session(u64),
    /// The source address of the packet.
    Source(SocketAddr),
}

/// Decodes the packets of a listener's clients.
pub trait PacketCodec: Send {
    /// Opens a packet in place, and narrows its payload to the datagram.
    fn open(
        &mut self,
        packet: &mut PacketBuf,
        from: SocketAddr,
    ) -> Result<(AssociationKey, Target), ProtocolError>;

    /// Returns the codec for replies of a new association.
    fn reply_seal(&mut self, key: AssociationKey) -> Option<Box<dyn ReplySeal>>;

    /// Returns the account of an association, where users can be removed.
    fn account_of(&self, _key: AssociationKey) -> Option<Arc<UserAccount>> {
        None
    }

    /// Claims the association that the last opened packet starts at other nodes, if they may have seen the packet.
    /// Returns their answer: no datagram of the association may leave before it.
    fn claim_association(&mut self, _key: AssociationKey) -> Option<ClaimAnswer> {
        None
    }

    /// Frees the state of an association that has ended.
    fn forget_association(&mut self, _key: AssociationKey) {}

    /// Returns true if it refuses packets that it has opened before. Then it opens those of associations of the
    /// previous process too, before they are forwarded.
    fn refuses_replays(&self) -> bool {
        false
    }
}

/// Encodes replies to a client.
pub trait ReplySeal: Send {
    /// Adds the protocol's header to a datagram from `source`.
    fn seal(&mut self, packet: &mut PacketBuf, source: &Target) -> Result<(), ProtocolError>;
}
