//! UDP sockets that move packets in batches.
//!
//! Receiving takes what the kernel has: several datagrams per call (`recvmmsg`), each perhaps a run of
//! equal ones that the kernel has joined (`UDP_GRO`). Sending collects equal datagrams for the same peer
//! and passes them on as one (`UDP_SEGMENT`). Both fall back automatically where the system does not offer
//! them; `ADIT_IO=portable` forces the fallback.

mod batch_state;
#[cfg(target_os = "linux")]
mod handover;
#[cfg(unix)]
mod poll_policy;
#[cfg(unix)]
mod poll_timer;
mod receive;
mod send;
mod traffic_class;
mod watched_socket;

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, OnceLock};
use std::{fmt, io};

use adit_wire::unmap_ipv4;
use socket2::{Domain, Protocol, SockRef, Socket, Type};

use batch_state::{BatchSockRef, BatchState};
pub use receive::ReceivedRun;
use send::PendingRun;
use watched_socket::WatchedSocket;

/// Requested size of socket buffers, in bytes; the system may grant less.
const BUFFER: usize = 4 << 20;

/// A UDP socket that supports IPv4 and, if it is bound to an IPv6 address, IPv6.
///
/// Addresses in arguments and results are unmapped: a dual-stack socket never shows `::ffff:a.b.c.d`.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::future::poll_fn;
///
/// use adit_net::BatchUdpSocket;
///
/// let near = BatchUdpSocket::bind("127.0.0.1:0".parse()?)?;
/// let far = BatchUdpSocket::bind("127.0.0.1:0".parse()?)?;
/// for text in [b"one", b"two"] {
///     near.queue(text, far.local_addr()?)?;
/// }
/// near.flush()?;
///
/// let mut received = Vec::new();
/// while received.len() < 2 {
///     poll_fn(|cx| far.poll_recv(cx, &mut |datagram, _| received.push(datagram.to_vec()))).await?;
/// }
/// assert_eq!(received, [b"one", b"two"]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct BatchUdpSocket {
    socket: WatchedSocket,
    state: BatchState,
    v6: bool,
    /// True if the last call received long runs.
    has_long_runs: AtomicBool,
    pending: Mutex<PendingRun>,
    #[cfg(target_os = "linux")]
    handover: crate::handover::UdpHandover,
}

/// Returns true if batches by the kernel are disabled.
#[must_use]
pub fn portable_io() -> bool {
    static PORTABLE: OnceLock<bool> = OnceLock::new();
    *PORTABLE.get_or_init(|| std::env::var_os("ADIT_IO").is_some_and(|v| v == "portable"))
}

impl BatchUdpSocket {
    /// Binds a socket. An IPv6 wildcard also receives IPv4.
    ///
    /// # Errors
    /// Errors of the system, such as [`AddrInUse`](io::ErrorKind::AddrInUse).
    pub fn bind(addr: SocketAddr) -> io::Result<Self> {
        Self::bind_prepared(open_unbound(addr)?, addr)
    }

    /// Creates a socket from one that is bound. It becomes non-blocking, receives in batches (on Linux
    /// `UDP_GRO`) and does not fragment; its other options are unchanged.
    ///
    /// # Errors
    /// Errors of the system, and `InvalidInput` for a connected socket: it receives nothing from other
    /// addresses, and an ICMP error from its peer would end a batch early.
    pub fn from_std(socket: std::net::UdpSocket) -> io::Result<Self> {
        if socket.peer_addr().is_ok() {
            let what = "the UDP socket is connected";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let addr = socket.local_addr()?;
        socket.set_nonblocking(true)?;
        Self::from_bound(socket.into(), addr)
    }

    /// Binds `count` sockets to one port. The system spreads the peers among them: each peer always reaches
    /// the same socket. Returns a single socket where this is not supported.
    ///
    /// # Errors
    /// See [`bind`](Self::bind).
    pub fn bind_shared(addr: SocketAddr, count: usize) -> io::Result<Vec<Self>> {
        let alone = Self::bind(addr)?;
        if count <= 1 || portable_io() || !cfg!(target_os = "linux") {
            return Ok(vec![alone]);
        }
        // Sharing is not requested immediately: a port that another program uses must not be shared with it
        // by mistake.
        let addr = SocketAddr::new(addr.ip(), alone.socket.local_addr()?.port());
        drop(alone);
        let sharing = || {
            let socket = open_unbound(addr)?;
            #[cfg(target_os = "linux")]
            socket.set_reuse_port(true)?;
            Self::bind_prepared(socket, addr)
        };
        (0..count).map(|_| sharing()).collect()
    }

    /// Binds a socket that was created by [`open_unbound`].
    pub(crate) fn bind_prepared(socket: Socket, addr: SocketAddr) -> io::Result<Self> {
        socket.bind(&addr.into())?;
        Self::from_bound(socket, addr)
    }

    /// Wraps a socket that is bound to an address of the family of `addr`.
    fn from_bound(socket: Socket, addr: SocketAddr) -> io::Result<Self> {
        let state = BatchState::new(BatchSockRef::from(&socket))?;
        Ok(Self {
            socket: WatchedSocket::new(socket)?,
            state,
            v6: addr.is_ipv6(),
            has_long_runs: AtomicBool::new(false),
            pending: Mutex::default(),
            #[cfg(target_os = "linux")]
            handover: crate::handover::UdpHandover::default(),
        })
    }

    /// Binds an ephemeral port for both families, or for IPv4 alone where there is no IPv6.
    ///
    /// Datagrams leave by the interface of [`outbound`](crate::outbound), if one is set.
    ///
    /// # Errors
    /// Errors of the system; those for IPv4 if both families fail.
    pub fn bind_ephemeral() -> io::Result<Self> {
        let open = |addr: SocketAddr| {
            let socket = open_unbound(addr)?;
            #[cfg(target_os = "linux")]
            crate::outbound::bind_to_interface(&socket, None)?;
            Self::bind_prepared(socket, addr)
        };
        open(SocketAddr::from(([0u16; 8], 0))).or_else(|_| open(SocketAddr::from(([0u8; 4], 0))))
    }

    /// Returns the local address.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        let addr = self.socket.local_addr()?;
        Ok(SocketAddr::new(unmap_ipv4(addr.ip()), addr.port()))
    }

    /// Marks outgoing datagrams with a Differentiated Services code point (RFC 2474), 0 to 63.
    ///
    /// # Errors
    /// Errors of the system, `InvalidInput` above 63, and `Unsupported` on Windows, where policies of the system alone
    /// mark datagrams.
    pub fn set_dscp(&self, dscp: u8) -> io::Result<()> {
        if dscp > 63 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // The two bits below it belong to the network (ECN, RFC 3168).
        let class = u32::from(dscp) << 2;
        traffic_class::set(self.socket.socket_ref(), class, self.v6)
    }

    /// Returns the sizes of the socket's buffers.
    #[must_use]
    pub fn buffer_sizes(&self) -> BufferSizes {
        BufferSizes::of_socket(self.socket.socket_ref())
    }
}

#[cfg(unix)]
impl std::os::fd::AsFd for BatchUdpSocket {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Sizes of a socket's buffers, in bytes as the system counts them: Linux includes its bookkeeping and
/// reports twice the requested size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferSizes {
    /// Buffer for datagrams that have arrived and have not been read.
    pub receive: usize,
    /// Buffer for datagrams that have been passed to the system and have not left.
    pub send: usize,
}

impl BufferSizes {
    /// Returns the sizes of a socket's buffers.
    pub(crate) fn of_socket(socket: SockRef<'_>) -> Self {
        Self {
            receive: socket.recv_buffer_size().unwrap_or(0),
            send: socket.send_buffer_size().unwrap_or(0),
        }
    }

    /// Returns true if the system granted less than was requested: its limits are lower
    /// (`net.core.rmem_max` and `net.core.wmem_max` on Linux).
    #[must_use]
    pub fn is_limited(self) -> bool {
        const FULL: usize = BUFFER * if cfg!(target_os = "linux") { 2 } else { 1 };
        self.receive.min(self.send) < FULL
    }
}

impl fmt::Display for BufferSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (receive, send) = (self.receive >> 10, self.send >> 10);
        write!(f, "{receive} KiB to receive, {send} KiB to send")?;
        if self.is_limited() && cfg!(target_os = "linux") {
            f.write_str("; limited by the system (net.core.rmem_max, net.core.wmem_max)")?;
        }
        Ok(())
    }
}

/// Creates an unbound socket for `addr`. An IPv6 wildcard will also receive IPv4.
pub(crate) fn open_unbound(addr: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(addr), Type::DGRAM, Some(Protocol::UDP))?;
    if addr.is_ipv6() {
        socket.set_only_v6(!addr.ip().is_unspecified())?;
    }
    // The system clamps this to its maximum.
    let _ = socket.set_recv_buffer_size(BUFFER);
    let _ = socket.set_send_buffer_size(BUFFER);
    socket.set_nonblocking(true)?;
    Ok(socket)
}

pub(crate) fn is_icmp_error(e: &io::Error) -> bool {
    matches!(
        e.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_shared_port_is_ours_alone() {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let ours = BatchUdpSocket::bind_shared(any, 3).unwrap();
        let at = ours[0].local_addr().unwrap();
        assert!(ours.iter().all(|socket| socket.local_addr().unwrap() == at));
        let taken = BatchUdpSocket::bind_shared(at, 3).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn buffers_are_as_large_as_the_system_allows() {
        let limit = |of: &str| -> usize {
            let text = std::fs::read_to_string(format!("/proc/sys/net/core/{of}")).unwrap();
            text.trim().parse().unwrap()
        };
        let given = BatchUdpSocket::bind_ephemeral().unwrap().buffer_sizes();
        let wanted = |of| 2 * BUFFER.min(limit(of));
        assert_eq!(given.receive, wanted("rmem_max"));
        assert_eq!(given.send, wanted("wmem_max"));
        let lowest = limit("rmem_max").min(limit("wmem_max"));
        assert_eq!(given.is_limited(), lowest < BUFFER);
        let text = given.to_string();
        let kib = given.receive / 1024;
        assert!(text.starts_with(&format!("{kib} KiB to receive")), "{text}");
        assert_eq!(
            text.contains("net.core.rmem_max"),
            given.is_limited(),
            "{text}"
        );
    }

    pub(super) async fn recv(socket: &BatchUdpSocket, want: usize) -> Vec<(Vec<u8>, SocketAddr)> {
        let mut got = Vec::new();
        while got.len() < want {
            poll_fn(|cx| socket.poll_recv(cx, &mut |bytes, from| got.push((bytes.to_vec(), from))))
                .await
                .unwrap();
        }
        got
    }

    #[tokio::test]
    async fn both_families_through_one_socket() {
        let out = BatchUdpSocket::bind_ephemeral().unwrap();
        let here = BatchUdpSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        for payload in [&b""[..], b"x", &[7; 9000]] {
            out.try_send(payload, here.local_addr().unwrap()).unwrap();
            let (got, from) = recv(&here, 1).await.remove(0);
            assert_eq!(got, payload);
            here.try_send(&got, from).unwrap();
            let (got, from) = recv(&out, 1).await.remove(0);
            assert_eq!((from, &*got), (here.local_addr().unwrap(), payload));
        }
    }

    /// A socket in polling mode, and watched again: no datagram is lost or waits for the next one.
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn datagrams_come_in_a_beat_too() {
        let out = BatchUdpSocket::bind_ephemeral().unwrap();
        let here = BatchUdpSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let to = here.local_addr().unwrap();
        let in_beat = || format!("{:?}", here.socket).contains("Timer(");
        // Simulates polls that find many datagrams one by one, and then hardly any.
        for (looks, datagrams, beats) in [(512, 1, !portable_io()), (300, 0, false)] {
            (0..looks).for_each(|_| here.socket.record_poll(datagrams));
            assert_eq!(in_beat(), beats, "{datagrams} at a time");
            for turn in 0..5u8 {
                out.try_send(&[turn; 9], to).unwrap();
                let got = tokio::time::timeout(std::time::Duration::from_secs(5), recv(&here, 1));
                assert_eq!(got.await.unwrap()[0].0, [turn; 9]);
            }
            out.try_send(b"one", to).unwrap();
            out.try_send(b"other", to).unwrap();
            let got = recv(&here, 2).await;
            assert_eq!((&*got[0].0, &*got[1].0), (&b"one"[..], &b"other"[..]));
        }
    }

    #[tokio::test]
    async fn a_closed_port_does_not_break_the_socket() {
        let gone = BatchUdpSocket::bind("127.0.0.1:0".parse().unwrap())
            .unwrap()
            .local_addr()
            .unwrap();
        let out = BatchUdpSocket::bind_ephemeral().unwrap();
        let here = BatchUdpSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        for _ in 0..3 {
            out.try_send(b"lost", gone).unwrap();
        }
        out.try_send(b"found", here.local_addr().unwrap()).unwrap();
        assert_eq!(recv(&here, 1).await[0].0, b"found");
    }
}
