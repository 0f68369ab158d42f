//! The socket address of an [`ApiAddress`](adit_config::ApiAddress) with a port.

use std::io;
use std::net::SocketAddr;

use adit_net::dial::{self, Family};
use adit_wire::{Host, Target};

/// Resolves the address of a port.
pub(crate) async fn resolve_address(target: &Target) -> io::Result<SocketAddr> {
    match &target.host {
        Host::Ip(ip) => Ok(SocketAddr::new(*ip, target.port)),
        Host::Name(name) => {
            let found = dial::resolve(name.as_str(), target.port, Family::V4First).await?;
            let first = found.first().copied();
            first.ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
        }
    }
}
