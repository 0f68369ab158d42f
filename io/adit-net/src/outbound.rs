//! The network interface for outgoing traffic of this process.

use std::io;
use std::sync::OnceLock;
#[cfg(target_os = "linux")]
use std::{net::IpAddr, os::fd::AsFd};

/// The name of the interface; unset if the system chooses.
static INTERFACE: OnceLock<String> = OnceLock::new();

/// Sends all new connections and datagrams to other machines through the interface of this name, regardless
/// of the routes (`SO_BINDTODEVICE`). Listening sockets, queries to name servers and sessions over KCP are
/// not affected. Only for programs, at their start.
///
/// # Errors
/// There is no interface of this name, the system does not support the option (only Linux does), or the
/// process has another interface already.
pub fn set_interface(name: &str) -> io::Result<()> {
    if !cfg!(target_os = "linux") {
        return Err(io::ErrorKind::Unsupported.into());
    }
    #[cfg(target_os = "linux")]
    if nix::net::if_::if_nametoindex(name).is_err() {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            "no network interface has this name",
        ));
    }
    match INTERFACE.get_or_init(|| name.to_owned()) {
        kept if kept == name => Ok(()),
        _ => Err(io::ErrorKind::AlreadyExists.into()),
    }
}

/// Binds a socket for traffic to `to` to the interface, unless `to` is a loopback address.
#[cfg(target_os = "linux")]
pub(crate) fn bind_to_interface(socket: &impl AsFd, to: Option<IpAddr>) -> io::Result<()> {
    use nix::sys::socket::{setsockopt, sockopt::BindToDevice};
    match INTERFACE.get() {
        Some(name) if !to.is_some_and(|ip| ip.is_loopback()) => {
            Ok(setsockopt(socket, BindToDevice, &name.into())?)
        }
        _ => Ok(()),
    }
}
