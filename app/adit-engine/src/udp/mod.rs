//! Datagrams: one table of associations for every protocol.
//!
//! A [`Listener`] receives on one socket. A [`PacketCodec`] determines the association and the target of
//! a packet, which is then sent through the [`Datagrams`] of that association immediately. A task of
//! the association returns the replies through a [`ReplySeal`].
//! Transparent listeners need no codec: intercepted datagrams have their target as destination
//! address ([`Interception`]).

mod backlog;
mod client_side;
mod direct;
mod exchange;
mod forward;
mod over_tcp;
mod relay;
mod shadowsocks;
mod shares;
mod socks;
mod ssr;
mod table;
mod transparent;
mod trials;
mod ttl;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use adit_net::PacketBuf;
use adit_wire::{Broken, Target};

use crate::account::Account;

pub use direct::{DirectUdp, Filter};
pub(crate) use exchange::exchange_datagrams;
pub use forward::FixedPackets;
pub use over_tcp::OverTcp;
pub(crate) use over_tcp::accept as accept_over_tcp;
pub use relay::RelayPackets;
pub use shadowsocks::{KeyedPackets, ShadowsocksUdp};
pub use shares::Share;
pub(crate) use shares::{Associations, Held, Place};
pub use socks::{SocksPackets, SocksUdp};
pub use ssr::{SsrPackets, SsrUdp};
pub use table::Listener;
pub use transparent::Interception;
pub use ttl::Ttl;

/// A path for datagrams to any target. Sending never waits: a datagram that cannot be sent is lost.
pub trait Datagrams: Send + Sync {
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
pub type BoxDatagrams = Box<dyn Datagrams>;

/// The key of an association.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Key {
    /// A session of the protocol, whose client may change its address.
    Session(u64),
    /// The source address of the packet.
    Source(SocketAddr),
}

/// Decodes the packets of a listener's clients.
pub trait PacketCodec: Send {
    /// Opens a packet in place, and narrows its payload to the datagram.
    fn open(&mut self, packet: &mut PacketBuf, from: SocketAddr) -> Result<(Key, Target), Broken>;

    /// Returns the codec for replies of a new association.
    fn sealer(&mut self, key: Key) -> Option<Box<dyn ReplySeal>>;

    /// Returns the account of an association, where users can be removed.
    fn account(&self, _key: Key) -> Option<Arc<Account>> {
        None
    }

    /// Frees the state of an association that has ended.
    fn forget(&mut self, _key: Key) {}
}

/// Encodes replies to a client.
pub trait ReplySeal: Send {
    /// Adds the protocol's header to a datagram from `source`.
    fn seal(&mut self, packet: &mut PacketBuf, source: &Target) -> Result<(), Broken>;
}
