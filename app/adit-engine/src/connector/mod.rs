//! How a stream, or a way for datagrams, to a target is opened.
//!
//! A chain is a fold of [`Connector`]s: [`Direct`] at the bottom, a [`Hop`] around it for each
//! server. A hop reaches its own server through the connector it stands on.

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

/// Opens ways to targets.
pub trait Connector: Send + Sync {
    /// Opens a stream to `to`. `first` goes ahead of everything else that is written to it.
    fn connect<'a>(
        &'a self,
        to: &'a Target,
        first: &'a [u8],
    ) -> BoxFuture<'a, Result<Connected, DialError>>;

    /// Opens a way for datagrams to any target.
    fn associate(&self) -> BoxFuture<'_, Result<BoxDatagrams, DialError>>;

    /// Waits for one connection from outside (SOCKS BIND). Few can.
    fn listen<'a>(&'a self, _near: SocketAddr) -> BoxFuture<'a, Result<Bound, DialError>> {
        Box::pin(async { Err(DialError::unsupported("BIND does not pass this chain")) })
    }
}

/// An open stream.
pub struct Connected {
    /// The stream.
    pub io: BoxStream,
    /// Whether `io` is this machine's own socket to the target, whose address is the one that the
    /// target sees.
    pub direct: bool,
    /// How long a first payload is waited for, so that it rides with a head that is owed.
    pub first_wait: Duration,
    /// Tells whether the hop's server has proved that it holds the key.
    pub watch: Option<Watch>,
    /// What is remembered of the member of a group that it goes through.
    pub standing: Option<Arc<Standing>>,
}

impl Connected {
    /// A stream in a session that is there already: nothing is owed, and nobody has to prove
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

    /// The address that the target sees, if the socket to it is ours.
    pub(crate) fn bound(&mut self) -> Option<SocketAddr> {
        let tcp = self.io.bare().filter(|_| self.direct)?;
        tcp.socket().ok()?.local_addr().ok()
    }
}

/// An eye on a keyed hop.
pub struct Watch {
    /// What is known of the hop's server over all connections.
    pub health: Arc<Health>,
    /// What is known of this connection.
    pub progress: Arc<dyn Proof>,
    /// When this connection began.
    pub since: Instant,
}

/// What a connection has shown of its server.
pub trait Proof: Send + Sync {
    /// Whether the server has shown that it holds the key.
    fn authenticated(&self) -> bool;

    /// Its clock minus ours in seconds, where the protocol carries it.
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

/// A socket that waits for one connection from outside.
pub struct Bound {
    /// The listening socket.
    pub socket: tokio::net::TcpListener,
    /// Judges the peer that comes.
    pub access: crate::access::Access,
}
