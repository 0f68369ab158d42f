//! Opening streams and datagram paths to targets.
//!
//! A chain is a fold of [`Connector`]s: [`DirectConnector`] at the end, wrapped in a [`Hop`] for each server. A
//! hop reaches its own server through the connector that it wraps.

mod answer_time;
mod direct;
mod fake_target;
mod filtered;
mod group;
mod group_datagrams;
mod group_member;
mod group_registry;
mod group_state;
mod hop;
mod layered_chain;
mod member_health;
mod member_probe;
mod member_selections;
mod pending_opens;
mod race;
mod raced_stream;
mod reject_all;
mod replay_safety;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use adit_stream::BoxStream;
use adit_wire::Target;

pub use direct::DirectConnector;
pub(crate) use fake_target::{FakeTargets, UnknownFakeTarget};
pub use filtered::FilteredChain;
pub use group::ConnectorGroup;
pub(crate) use group_registry::GroupRegistry;
pub use group_state::{GroupReport, GroupSettings, GroupState, MemberReport};
pub use hop::Hop;
pub use layered_chain::{ChainLayer, LayeredChain};
pub use member_selections::{MemberSelection, MemberSelections};
pub use reject_all::RejectAll;

use crate::udp::BoxDatagramPath;
use crate::{BoxFuture, DialError, ServerHealth};

/// Opens streams and datagram paths to targets.
pub trait Connector: Send + Sync {
    /// Opens a stream to `to`. `first` is sent ahead of everything else that is written to it.
    fn connect<'a>(
        &'a self,
        to: &'a Target,
        first: &'a [u8],
    ) -> BoxFuture<'a, Result<ConnectedStream, DialError>>;

    /// Returns the health of the last server, if there is one.
    fn server_health(&self) -> Option<Arc<ServerHealth>> {
        None
    }

    /// Opens a path for datagrams to any target.
    fn open_datagrams(&self) -> BoxFuture<'_, Result<BoxDatagramPath, DialError>>;

    /// True if it refuses every request.
    fn rejects_all(&self) -> bool {
        false
    }

    /// Listens for one incoming connection (SOCKS BIND). Most connectors do not support this.
    fn listen_for_one<'a>(
        &'a self,
        _near: SocketAddr,
    ) -> BoxFuture<'a, Result<BoundSocket, DialError>> {
        Box::pin(async { Err(DialError::unsupported("this chain does not support BIND")) })
    }
}

/// An open stream.
pub struct ConnectedStream {
    /// The stream.
    pub io: BoxStream,
    /// True if `io` is this machine's own socket to the target, so that its local address is the one that the
    /// target sees.
    pub is_direct: bool,
    /// Time to wait for a first payload, so that it can be sent together with a pending header.
    pub first_wait: Duration,
    /// Tells if the hop's server has proved that it has the key.
    pub watch: Option<HopWatch>,
}

impl ConnectedStream {
    /// Wraps a stream in an established session: no header is pending, and no server has to prove
    /// anything.
    #[must_use]
    pub fn in_session(io: BoxStream) -> Self {
        Self {
            io,
            is_direct: false,
            first_wait: Duration::ZERO,
            watch: None,
        }
    }

    /// Returns the local address that the target sees, if the socket to it belongs to this machine.
    pub(crate) fn visible_addr(&mut self) -> Option<SocketAddr> {
        let tcp = self.io.bare().filter(|_| self.is_direct)?;
        tcp.socket().ok()?.local_addr().ok()
    }
}

/// Watches a connection to a keyed hop.
pub struct HopWatch {
    /// The health of the hop's server over all connections.
    pub health: Arc<ServerHealth>,
    /// The state of this connection.
    pub progress: Arc<dyn ServerProof>,
    /// Start time of this connection.
    pub since: Instant,
}

/// Evidence that a connection has about its server.
pub trait ServerProof: Send + Sync {
    /// Returns true if the server has proved that it has the key.
    fn is_authenticated(&self) -> bool;

    /// Returns the server's clock minus the local one in seconds, where the protocol reports it.
    fn clock_skew(&self) -> Option<i64> {
        None
    }
}

impl ServerProof for adit_shadowsocks::tcp::ClientProgress {
    fn is_authenticated(&self) -> bool {
        self.is_authenticated()
    }

    fn clock_skew(&self) -> Option<i64> {
        self.clock_skew()
    }
}

impl ServerProof for adit_shadowsocksr::StackProgress {
    fn is_authenticated(&self) -> bool {
        self.is_answered()
    }
}

/// A socket that waits for one incoming connection.
pub struct BoundSocket {
    /// The listening socket.
    pub socket: tokio::net::TcpListener,
    /// The access rule for the peer.
    pub access: crate::access::AccessRule,
}
