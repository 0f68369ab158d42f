//! TCP connections to proxies and targets.

use std::io;

use adit_socks::Reply;
use adit_wire::{Host, Target};
use tokio::net::{TcpStream, ToSocketAddrs};

/// Connects to a proxy. Its handshake is small messages, so they are sent without delay.
pub(crate) async fn connect_to_proxy(proxy: impl ToSocketAddrs) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(proxy).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Connects to a target, whose name is resolved by the system.
pub(crate) async fn connect_to_target(target: &Target) -> io::Result<TcpStream> {
    match &target.host {
        Host::Ip(ip) => TcpStream::connect((*ip, target.port)).await,
        Host::Name(name) => TcpStream::connect((name.as_str(), target.port)).await,
    }
}

/// Returns the reply to a client whose target cannot be reached.
pub(crate) fn reply_of(why: &io::Error) -> Reply {
    match why.kind() {
        io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset => {
            Reply::ConnectionRefused
        }
        io::ErrorKind::TimedOut => Reply::TtlExpired,
        io::ErrorKind::NetworkUnreachable => Reply::NetworkUnreachable,
        _ => Reply::HostUnreachable,
    }
}
