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
            Self::NoAddress { exists, .. } => Err(no_address(NoSuchAddress {
                name: name.to_owned(),
                exists: *exists,
            })),
        }
    }
}

/// The error of a lookup that has succeeded: the name has no address.
#[derive(Debug, thiserror::Error)]
#[error("{name} {}", if *exists { "has no address" } else { "does not exist (NXDOMAIN)" })]
struct NoSuchAddress {
    name: String,
    exists: bool,
}

/// Returns whether the name of a lookup exists, if the error says that it has no address: false for NXDOMAIN. `None` for
/// every other error.
#[must_use]
pub fn name_exists(error: &io::Error) -> Option<bool> {
    let inner = error.get_ref()?.downcast_ref::<NoSuchAddress>()?;
    Some(inner.exists)
}

/// Returns the error for a name without an address: for clients, an unreachable host.
pub(crate) fn no_address(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::HostUnreachable, why)
}
