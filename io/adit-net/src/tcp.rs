//! TCP sockets with the options of the project.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// Connections the kernel keeps for us while the accept loop is busy.
const BACKLOG: i32 = 1024;

/// Connections by fast open that may wait for their handshake to end.
#[cfg(target_os = "linux")]
const FAST_OPEN_QUEUE: u32 = 256;

/// Opens a listening socket. A v6 wildcard also takes IPv4.
pub fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
    listen_with(addr, |_| Ok(()))
}

/// As [`listen`]; clients that have come before may send first bytes with their SYN (RFC 7413).
/// Whether the system grants it is its own affair (`net.ipv4.tcp_fastopen` on Linux).
pub fn listen_fast(addr: SocketAddr) -> io::Result<TcpListener> {
    listen_with(addr, |_socket| {
        #[cfg(target_os = "linux")]
        let _ = crate::option::set(
            _socket,
            libc::IPPROTO_TCP,
            libc::TCP_FASTOPEN,
            FAST_OPEN_QUEUE,
        );
        Ok(())
    })
}

/// As [`listen`], with one more option set before the socket is bound.
pub(crate) fn listen_with(
    addr: SocketAddr,
    prepare: impl FnOnce(&Socket) -> io::Result<()>,
) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    if addr.is_ipv6() {
        socket.set_only_v6(!addr.ip().is_unspecified())?;
    }
    #[cfg(unix)]
    socket.set_reuse_address(true)?;
    prepare(&socket)?;
    socket.bind(&addr.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    TcpListener::from_std(socket.into())
}

/// Connects and sets the options of [`tune`].
pub async fn connect(addr: SocketAddr) -> io::Result<TcpStream> {
    connect_by(addr, Opening::Shaken).await
}

/// When a connection counts as made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Opening {
    /// When the server has answered.
    #[default]
    Shaken,
    /// At once, where the system has been there before: the first bytes travel with the SYN
    /// (RFC 7413), and the first read or write tells whether there is a server. Only for
    /// protocols whose clients speak first, and whose first bytes may come twice.
    Fast,
}

/// As [`connect`], in the way of `opening`.
pub async fn connect_by(addr: SocketAddr, opening: Opening) -> io::Result<TcpStream> {
    let socket = if addr.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    #[cfg(target_os = "linux")]
    if opening == Opening::Fast {
        // Where it is not to be had, the connection begins as usual.
        let _ = nix::sys::socket::setsockopt(
            &socket,
            nix::sys::socket::sockopt::TcpFastOpenConnect,
            &true,
        );
    }
    #[cfg(not(target_os = "linux"))]
    let _ = opening;
    let stream = socket.connect(addr).await?;
    tune(&stream);
    Ok(stream)
}

/// `TCP_NODELAY`, keepalive 60/15/4 and a user time-out of 120 s, so that a dead peer is found.
///
/// Best effort: a socket whose peer is gone already refuses options, and the next read tells.
pub fn tune(stream: &TcpStream) {
    let socket = SockRef::from(stream);
    let keepalive = TcpKeepalive::new()
        .with_time(Duration::from_secs(60))
        .with_interval(Duration::from_secs(15))
        .with_retries(4);
    // Errors are of no use here, see above.
    let _ = socket.set_tcp_nodelay(true);
    let _ = socket.set_tcp_keepalive(&keepalive);
    #[cfg(target_os = "linux")]
    let _ = socket.set_tcp_user_timeout(Some(Duration::from_secs(120)));
}

/// Reads what has arrived into several buffers by one call.
#[cfg(unix)]
pub fn read_vectored(stream: &TcpStream, out: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
    Ok(rustix::io::readv(stream, out)?)
}

/// Reads what has arrived into the first buffer.
#[cfg(not(unix))]
pub fn read_vectored(stream: &TcpStream, out: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
    match out.first_mut() {
        Some(first) => stream.try_read(first),
        None => Ok(0),
    }
}

/// The largest segment that the connection sends, in bytes.
#[cfg(unix)]
#[must_use]
pub fn max_segment(stream: &TcpStream) -> Option<u16> {
    let mss = SockRef::from(stream).tcp_mss().ok()?;
    u16::try_from(mss).ok()
}

/// Not known here.
#[cfg(not(unix))]
#[must_use]
pub fn max_segment(_: &TcpStream) -> Option<u16> {
    None
}

/// Makes the close of `stream` a reset, so that a broken transfer never looks complete.
pub fn reset_on_close(stream: &TcpStream) {
    let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
}
