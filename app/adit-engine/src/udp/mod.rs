//! Datagrams: one table of associations for every dialect.
//!
//! Inbound, a [`Listener`] receives on one socket, lets a [`PacketCodec`] say which association a
//! packet belongs to and where it goes, and hands it to that association's [`Datagrams`] at once.
//! A task of the association brings the answers back through a [`ReplySeal`].
//! A transparent listener needs no language: what it takes says by its own addresses where it was
//! going ([`Interception`]).

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

/// A way for datagrams to any target. Sending never waits: a datagram that cannot leave is lost.
pub trait Datagrams: Send + Sync {
    /// Takes the payload of `packet` for `to`, using the room around it. It may wait for others
    /// until [`flush`](Self::flush).
    fn send(&self, packet: &mut PacketBuf, to: &Target) -> io::Result<()>;

    /// Sends what was taken.
    fn flush(&self) -> io::Result<()>;

    /// Receives a batch through the scratch `packet`; gives each datagram with the party that
    /// sent it to `each`.
    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        packet: &mut PacketBuf,
        each: &mut dyn FnMut(&mut PacketBuf, &Target),
    ) -> Poll<io::Result<()>>;
}

/// A boxed way for datagrams.
pub type BoxDatagrams = Box<dyn Datagrams>;

/// Which association a packet belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Key {
    /// A session of the protocol: the client may change its address.
    Session(u64),
    /// The address the packet came from.
    Source(SocketAddr),
}

/// Reads what clients send to a listener.
pub trait PacketCodec: Send {
    /// Opens a packet in place; its payload is narrowed to the client's datagram.
    fn open(&mut self, packet: &mut PacketBuf, from: SocketAddr) -> Result<(Key, Target), Broken>;

    /// The other direction, for a new association.
    fn sealer(&mut self, key: Key) -> Option<Box<dyn ReplySeal>>;

    /// Whose association it is, where users can be removed.
    fn account(&self, _key: Key) -> Option<Arc<Account>> {
        None
    }

    /// An association is over.
    fn forget(&mut self, _key: Key) {}
}

/// Writes what goes back to a client.
pub trait ReplySeal: Send {
    /// Puts the protocol's header on a datagram that came from `source`.
    fn seal(&mut self, packet: &mut PacketBuf, source: &Target) -> Result<(), Broken>;
}
