//! By which network interface this process leaves the machine.

use std::io;
use std::net::IpAddr;
#[cfg(target_os = "linux")]
use std::os::fd::AsFd;
use std::sync::OnceLock;

/// The name of the interface; the system chooses where there is none.
static INTERFACE: OnceLock<String> = OnceLock::new();

/// Has all connections and datagrams to other machines leave by the interface of this name, from
/// now on and whatever the routes say (`SO_BINDTODEVICE`). What the process listens on, and its
/// questions to name servers, and sessions over KCP, stay as they are. Only for programs, at their
/// start.
///
/// # Errors
/// There is no interface of this name, the system does not know the option (it is Linux's), or the
/// process has another interface already.
pub fn set_interface(name: &str) -> io::Result<()> {
    if !cfg!(target_os = "linux") {
        return Err(io::ErrorKind::Unsupported.into());
    }
    #[cfg(target_os = "linux")]
    if nix::net::if_::if_nametoindex(name).is_err() {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            "there is no network interface of this name",
        ));
    }
    match INTERFACE.get_or_init(|| name.to_owned()) {
        kept if kept == name => Ok(()),
        _ => Err(io::ErrorKind::AlreadyExists.into()),
    }
}

/// Binds a socket for traffic to `to` to the interface; this machine itself is reached by its own.
#[cfg(target_os = "linux")]
pub(crate) fn apply(socket: &impl AsFd, to: Option<IpAddr>) -> io::Result<()> {
    use nix::sys::socket::{setsockopt, sockopt::BindToDevice};
    match INTERFACE.get() {
        Some(name) if !to.is_some_and(|ip| ip.is_loopback()) => {
            Ok(setsockopt(socket, BindToDevice, &name.into())?)
        }
        _ => Ok(()),
    }
}
