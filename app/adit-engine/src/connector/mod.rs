//! Opening streams and datagram paths to targets.
//!
//! A chain is a fold of [`Connector`]s: [`Direct`] at the end, wrapped in a [`Hop`] for each server. A
//! hop reaches its own server through the connector that it wraps.

mod direct;
mod group;
mod hop;
mod judged;
mod reject;
mod standing;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use adit_stream::BoxStream;
use adit_wire::Target;

pub use direct::Direct;
pub use group::Group;
pub use hop::Hop;
pub use judged::Judged;
pub use reject::Reject;
pub use standing::Standing;

use crate::udp::BoxDatagrams;
use crate::{BoxFuture, DialError, Health};

/// Opens streams and datagram paths to targets.
pub trait Connector: Send + Sync {
    /// Opens a stream to `to`. `first` is sent ahead of everything else that is written to it.
    fn connect<'a>(
        &'a self,
        to: &'a Target,
        first: &'a [u8],
    ) -> BoxFuture<'a, Result<Connected, DialError>>;

    /// Opens a path for datagrams to any target.
    fn associate(&self) -> BoxFuture<'_, Result<BoxDatagrams, DialError>>;

    /// Listens for one incoming connection (SOCKS BIND). Most connectors do not support this.
    fn listen<'a>(&'a self, _near: SocketAddr) -> BoxFuture<'a, Result<Bound, DialError>> {
        Box::pin(async { Err(DialError::unsupported("this chain does not support BIND")) })
    }
}

/// An open stream.
pub struct Connected {
    /// The stream.
    pub io: BoxStream,
    /// True if `io` is this machine's own socket to the target, so that its local address is the one that the
    /// target sees.
    pub direct: bool,
    /// Time to wait for a first payload, so that it can be sent together with a pending header.
    pub first_wait: Duration,
    /// Tells if the hop's server has proved that it has the key.
    pub watch: Option<Watch>,
    /// The health of the group member that the stream passes through.
    pub standing: Option<Arc<Standing>>,
}

impl Connected {
    /// Wraps a stream in an established session: no header is pending, and no server has to prove
    /// anything.
    #[must_use]
    pub fn within(io: BoxStream) -> Self {
        Self {
            io,
            direct: false,
            first_wait: Duration::ZERO,
            watch: None,
            standing: None,
        }
    }

    /// Returns the local address that the target sees, if the socket to it belongs to this machine.
    pub(crate) fn bound(&mut self) -> Option<SocketAddr> {
        let tcp = self.io.bare().filter(|_| self.direct)?;
        tcp.socket().ok()?.local_addr().ok()
    }
}

/// Watches a connection to a keyed hop.
pub struct Watch {
    /// The health of the hop's server over all connections.
    pub health: Arc<Health>,
    /// The state of this connection.
    pub progress: Arc<dyn Proof>,
    /// Start time of this connection.
    pub since: Instant,
}

/// Evidence that a connection has about its server.
pub trait Proof: Send + Sync {
    /// Returns true if the server has proved that it has the key.
    fn authenticated(&self) -> bool;

    /// Returns the server's clock minus the local one in seconds, where the protocol reports it.
    fn skew(&self) -> Option<i64> {
        None
    }
}

impl Proof for adit_shadowsocks::tcp::Progress {
    fn authenticated(&self) -> bool {
        self.authenticated()
    }

    fn skew(&self) -> Option<i64> {
        self.skew()
    }
}

impl Proof for adit_shadowsocksr::Progress {
    fn authenticated(&self) -> bool {
        self.answered()
    }
}

/// A socket that waits for one incoming connection.
pub struct Bound {
    /// The listening socket.
    pub socket: tokio::net::TcpListener,
    /// The access rule for the peer.
    pub access: crate::access::Access,
}
