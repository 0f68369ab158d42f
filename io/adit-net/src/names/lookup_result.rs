//! The result of a lookup, and its deadline.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Maximum duration of a lookup, including the time it waits for others.
pub const RESOLVE_DEADLINE: Duration = Duration::from_secs(5);

/// The result of looking up a name.
#[derive(Debug, Clone)]
pub(super) enum LookupResult {
    /// Addresses without a port, and their time to live in seconds.
    Addresses(Arc<[SocketAddr]>, u32),
    /// No address; `ttl` is the time to live of that answer in seconds.
    NoAddress { exists: bool, ttl: u32 },
}

impl LookupResult {
    pub(super) fn addresses(&self, name: &str) -> io::Result<Arc<[SocketAddr]>> {
        match self {
            Self::Addresses(addrs, _) => Ok(addrs.clone()),
            Self::NoAddress { exists: true, .. } => {
                Err(no_address(format!("{name} has no address")))
            }
            Self::NoAddress { .. } => Err(no_address(format!("{name} does not exist (NXDOMAIN)"))),
        }
    }
}

/// Returns the error for a name without an address: for clients, an unreachable host.
pub(crate) fn no_address(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::HostUnreachable, why)
}
