//! What a lookup finds, and how long it may take.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Time a lookup gets, waiting for others included.
pub const RESOLVE_DEADLINE: Duration = Duration::from_secs(5);

/// What a name stands for.
#[derive(Debug, Clone)]
pub(super) enum Found {
    /// Addresses without a port, and for how many seconds.
    Addresses(Arc<[SocketAddr]>, u32),
    /// No address.
    Nothing { exists: bool, ttl: u32 },
}

impl Found {
    pub(super) fn addresses(&self, name: &str) -> io::Result<Arc<[SocketAddr]>> {
        match self {
            Self::Addresses(addrs, _) => Ok(addrs.clone()),
            Self::Nothing { exists: true, .. } => Err(no_address(format!("{name} has no address"))),
            Self::Nothing { .. } => Err(no_address(format!("{name} does not exist (NXDOMAIN)"))),
        }
    }
}

/// A name without an address: for clients, a host that cannot be reached.
pub(crate) fn no_address(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::HostUnreachable, why)
}
