//! Sockets that were opened by another process.

use std::io;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::OwnedFd;

use socket2::{Domain, Protocol, Socket, Type};

/// Continues a TCP listener that another process has opened. It becomes non-blocking, in that process too;
/// its other options are unchanged.
///
/// # Errors
/// [`InvalidInput`](io::ErrorKind::InvalidInput) if the descriptor is not a TCP socket for IPv4 or IPv6 or
/// does not listen, and errors of the system.
pub fn continue_tcp_listener(fd: OwnedFd) -> io::Result<TcpListener> {
    let socket = Socket::from(fd);
    let is_tcp = is_internet_socket(&socket, Type::STREAM, Protocol::TCP)
        || is_internet_socket(&socket, Type::STREAM, Protocol::MPTCP);
    if !is_tcp || !matches!(socket.is_listener(), Ok(true)) {
        return Err(invalid("the descriptor is not a listening TCP socket"));
    }
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Continues a UDP socket that another process has bound. It becomes non-blocking, in that process too; its
/// other options are unchanged.
///
/// # Errors
/// [`InvalidInput`](io::ErrorKind::InvalidInput) if the descriptor is not a UDP socket for IPv4 or IPv6, is
/// not bound or is connected, and errors of the system.
pub fn continue_udp_socket(fd: OwnedFd) -> io::Result<UdpSocket> {
    let socket = Socket::from(fd);
    if !is_internet_socket(&socket, Type::DGRAM, Protocol::UDP) {
        return Err(invalid("the descriptor is not a UDP socket"));
    }
    let bound = socket.local_addr()?.as_socket();
    if bound.is_none_or(|at| at.port() == 0) {
        return Err(invalid("the UDP socket has no port"));
    }
    if socket.peer_addr().is_ok() {
        return Err(invalid("the UDP socket is connected"));
    }
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Returns true if it is a socket of this kind for IPv4 or IPv6; false for a descriptor that is not a socket.
fn is_internet_socket(socket: &Socket, kind: Type, protocol: Protocol) -> bool {
    matches!(socket.domain(), Ok(Domain::IPV4 | Domain::IPV6))
        && socket.r#type().is_ok_and(|its| its == kind)
        && socket.protocol().is_ok_and(|its| its == Some(protocol))
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}
