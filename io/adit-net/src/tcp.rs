//! TCP sockets with the project's options.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// Connections that the kernel queues while the accept loop is busy.
const BACKLOG: i32 = 1024;

/// Maximum number of Fast Open connections whose handshake has not ended.
#[cfg(target_os = "linux")]
const FAST_OPEN_QUEUE: u32 = 256;

/// True if connections inherit the options of their listening socket.
const OPTIONS_ARE_INHERITED: bool = cfg!(target_os = "linux");

/// Opens a listening socket. An IPv6 wildcard also accepts IPv4.
///
/// # Errors
/// Errors of the system, such as [`AddrInUse`](io::ErrorKind::AddrInUse).
pub fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
    listen_with_fast_open(addr, FastOpen::Off)
}

/// Use of TCP Fast Open (RFC 7413): the first bytes travel with the SYN of a connection. Only for protocols
/// whose clients send first, and whose first bytes may arrive twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FastOpen {
    /// The first bytes are sent after the handshake.
    #[default]
    Off,
    /// The first bytes are sent with the SYN if both systems allow it: a connection then counts as
    /// established immediately, and the first read or write shows whether there is a server.
    On,
}

/// Like [`listen`], with TCP Fast Open if it is on. The system decides whether to grant it
/// (`net.ipv4.tcp_fastopen` on Linux); otherwise connections start as usual.
///
/// # Errors
/// See [`listen`].
pub fn listen_with_fast_open(addr: SocketAddr, fast_open: FastOpen) -> io::Result<TcpListener> {
    listen_prepared(addr, |_socket| {
        #[cfg(target_os = "linux")]
        if fast_open == FastOpen::On {
            set_fast_open(_socket, fast_open);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = fast_open;
        Ok(())
    })
}

/// Continues a listening socket that another process has opened, with its options, and with TCP Fast Open as
/// requested.
///
/// # Errors
/// Errors of the system.
///
/// # Panics
/// Outside of a runtime of tokio with I/O.
pub fn continue_listening(
    socket: std::net::TcpListener,
    fast_open: FastOpen,
) -> io::Result<TcpListener> {
    #[cfg(target_os = "linux")]
    set_fast_open(&SockRef::from(&socket), fast_open);
    #[cfg(not(target_os = "linux"))]
    let _ = fast_open;
    socket.set_nonblocking(true)?;
    TcpListener::from_std(socket)
}

/// Sets the number of pending Fast Open connections. The system decides whether to grant it.
#[cfg(target_os = "linux")]
fn set_fast_open(socket: &Socket, fast_open: FastOpen) {
    let queue = match fast_open {
        FastOpen::On => FAST_OPEN_QUEUE,
        FastOpen::Off => 0,
    };
    let _ =
        crate::socket_option::set_int_option(socket, libc::IPPROTO_TCP, libc::TCP_FASTOPEN, queue);
}

/// Like [`listen`], with one more option set before the socket is bound.
pub(crate) fn listen_prepared(
    addr: SocketAddr,
    prepare: impl FnOnce(&Socket) -> io::Result<()>,
) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    if addr.is_ipv6() {
        socket.set_only_v6(!addr.ip().is_unspecified())?;
    }
    #[cfg(unix)]
    socket.set_reuse_address(true)?;
    if OPTIONS_ARE_INHERITED {
        set_options(&socket);
    }
    prepare(&socket)?;
    socket.bind(&addr.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    TcpListener::from_std(socket.into())
}

/// Connects and sets the options of [`set_stream_options`].
///
/// # Errors
/// Errors of the system, such as [`ConnectionRefused`](io::ErrorKind::ConnectionRefused).
///
/// # Cancel safety
/// If the future is dropped, the attempt ends and the socket is closed.
pub async fn connect(addr: SocketAddr) -> io::Result<TcpStream> {
    connect_with_fast_open(addr, FastOpen::Off).await
}

/// Like [`connect`], with Fast Open if it is on and the system has connected there before.
///
/// # Errors
/// See [`connect`].
///
/// # Cancel safety
/// See [`connect`].
pub async fn connect_with_fast_open(
    addr: SocketAddr,
    fast_open: FastOpen,
) -> io::Result<TcpStream> {
    let socket = if addr.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    #[cfg(target_os = "linux")]
    crate::outbound::bind_to_interface(&socket, Some(addr.ip()))?;
    #[cfg(target_os = "linux")]
    if fast_open == FastOpen::On {
        // If it is not available, the connection starts as usual.
        let _ = nix::sys::socket::setsockopt(
            &socket,
            nix::sys::socket::sockopt::TcpFastOpenConnect,
            &true,
        );
    }
    #[cfg(not(target_os = "linux"))]
    let _ = fast_open;
    // Before the socket is connected these options start no timers, and none is refused.
    set_options(&SockRef::from(&socket));
    socket.connect(addr).await
}

/// Sets the project's options: `TCP_NODELAY`; urgent data inline, where it was sent (RFC 6093), so that
/// none is lost; and detection of a dead peer within two minutes: keepalive after 60 s, every 15 s, and a
/// user timeout of 120 s.
///
/// This is best effort: a socket whose peer is already gone refuses options, and the next read reports the
/// error.
pub fn set_stream_options(stream: &TcpStream) {
    set_options(&SockRef::from(stream));
}

/// Returns true if the connections of a listening socket need no [`set_stream_options`].
pub(crate) fn has_inheritable_options(listener: &TcpListener) -> bool {
    // A socket that was not opened here has none of the options.
    OPTIONS_ARE_INHERITED && matches!(SockRef::from(listener).tcp_nodelay(), Ok(true))
}

fn set_options(socket: &Socket) {
    let keepalive = TcpKeepalive::new()
        .with_time(Duration::from_secs(60))
        .with_interval(Duration::from_secs(15));
    // The user timeout decides when to give up; the number of probes is ignored (tcp(7)).
    #[cfg(not(target_os = "linux"))]
    let keepalive = keepalive.with_retries(4);
    // Errors are of no use here, see above.
    let _ = socket.set_tcp_nodelay(true);
    let _ = socket.set_out_of_band_inline(true);
    let _ = socket.set_tcp_keepalive(&keepalive);
    #[cfg(target_os = "linux")]
    let _ = socket.set_tcp_user_timeout(Some(Duration::from_secs(120)));
}

/// Reads the available data into several buffers with one call.
///
/// # Errors
/// [`WouldBlock`](io::ErrorKind::WouldBlock) if nothing is available, and errors of the system.
#[cfg(unix)]
pub fn read_vectored(
    stream: &impl std::os::fd::AsFd,
    out: &mut [IoSliceMut<'_>],
) -> io::Result<usize> {
    Ok(rustix::io::readv(stream, out)?)
}

/// Reads the available data into several buffers with one call.
///
/// # Errors
/// [`WouldBlock`](io::ErrorKind::WouldBlock) if nothing is available, and errors of the system.
#[cfg(windows)]
pub fn read_vectored(
    stream: &impl std::os::windows::io::AsSocket,
    out: &mut [IoSliceMut<'_>],
) -> io::Result<usize> {
    io::Read::read_vectored(&mut &*SockRef::from(stream), out)
}

/// Returns the maximum segment size that the connection sends, in bytes.
#[cfg(unix)]
#[must_use]
pub fn max_segment_size(stream: &TcpStream) -> Option<u16> {
    let mss = SockRef::from(stream).tcp_mss().ok()?;
    u16::try_from(mss).ok()
}

/// Returns `None`: not supported on this system.
#[cfg(not(unix))]
#[must_use]
pub fn max_segment_size(_: &TcpStream) -> Option<u16> {
    None
}

/// Makes closing `stream` reset the connection, so that a broken transfer never looks complete.
pub fn reset_on_close(stream: &TcpStream) {
    let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
}
