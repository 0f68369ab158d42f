//! One end of a session, as a stream.

use std::fmt;
use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use adit_crypto::packet::session::SessionCipher;
use adit_kcp_proto::{ChangeError, Config, Stats};
use adit_net::BatchUdpSocket;
use adit_net::system::ThreadRng;
use adit_stream::lane::RelayLane;
use adit_wire::Entropy;
use tokio::net::{ToSocketAddrs, lookup_host};

use super::driver::SocketDriver;
use super::oob::{OobError, OobReceiver};
use super::session::Session;
use super::settings::Settings;
use super::socket::KcpSocket;
use super::table::SessionTable;
use super::transport::{DatagramTransport, Transport};
use adit_stream::{Buffered, RawStream};

/// Maximum number of additional copies of a datagram.
const MAX_COPIES: u8 = 3;

adit_stream::session_stream! {
    raw: Link;
    /// A KCP session as an [`adit_stream::Stream`], and as tokio's `AsyncRead` and `AsyncWrite`.
    ///
    /// In message mode each write through tokio's trait sends one message, and each read returns
    /// one, or the rest of one that did not fit before.
    KcpStream;
    /// The read half of a [`KcpStream`].
    KcpReadHalf;
    /// The write half of a [`KcpStream`].
    KcpWriteHalf;
}

/// The session behind a [`KcpStream`] or its halves; it is closed with the last of them.
#[derive(Clone)]
pub(crate) struct Link(Arc<SessionHandle>);

struct SessionHandle {
    session: Arc<Session>,
}

impl Drop for SessionHandle {
    fn drop(&mut self) {
        self.session.close_stream(false);
    }
}

impl Link {
    pub(super) fn new_stream(session: Arc<Session>) -> KcpStream {
        KcpStream(Buffered::new(Self(Arc::new(SessionHandle { session }))))
    }
}

impl KcpStream {
    pub(crate) fn session(&self) -> &Arc<Session> {
        &self.0.raw().0.session
    }

    /// Starts a session with `peer` on a new socket. Nothing is sent yet, so nothing is known about
    /// the peer; see [`SessionProbe::peer_contact`]. Of a name with several addresses the first is used:
    /// KCP has no handshake that would find the one that answers.
    ///
    /// # Errors
    ///
    /// A name without an address, invalid [`Settings`], or an error of the system.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: it waits only for the resolution of the name.
    pub async fn connect(peer: impl ToSocketAddrs, settings: Settings) -> io::Result<Self> {
        let peer = lookup_host(peer).await?.next().ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, "the peer's name has no address")
        })?;
        let any = match peer.ip() {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let open = || BatchUdpSocket::bind(SocketAddr::new(any, 0)).map(Transport::Udp);
        Self::start_session(KcpSocket::new(settings, open)?, peer)
    }

    /// Like [`connect`](Self::connect), on a bound socket that you have opened: kcp-go's `NewConn`.
    /// The socket becomes non-blocking, receives in batches (`UDP_GRO` on Linux) and does not
    /// fragment, which also affects its clones; its other options stay unchanged. Nothing else may
    /// read from it.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect), and `InvalidInput` for a socket that is connected or is not
    /// of the family of `peer`.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    pub fn from_socket(
        socket: std::net::UdpSocket,
        peer: SocketAddr,
        settings: Settings,
    ) -> io::Result<Self> {
        if peer.is_ipv6() && socket.local_addr()?.is_ipv4() {
            let what = "cannot reach an IPv6 peer from an IPv4 socket";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let open = || BatchUdpSocket::from_std(socket).map(Transport::Udp);
        Self::start_session(KcpSocket::new(settings, open)?, peer)
    }

    /// Like [`connect`](Self::connect), over a transport, which is dropped with the session.
    ///
    /// # Errors
    ///
    /// Invalid [`Settings`].
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    pub fn connect_over(
        transport: impl DatagramTransport,
        peer: SocketAddr,
        settings: Settings,
    ) -> io::Result<Self> {
        let open = || Ok(Transport::Own(Box::new(transport)));
        Self::start_session(KcpSocket::new(settings, open)?, peer)
    }

    fn start_session(socket: KcpSocket, peer: SocketAddr) -> io::Result<Self> {
        let socket = Arc::new(socket);
        let conv = socket.settings.conv.unwrap_or_else(|| {
            let mut conv = [0; 4];
            ThreadRng.fill(&mut conv);
            u32::from_le_bytes(conv)
        });
        let session = match &socket.settings.session {
            Some(key) => {
                let cipher = SessionCipher::preferred();
                let session = key.connect(cipher, &mut ThreadRng);
                Some(Box::new(session.map_err(io::Error::other)?))
            }
            None => None,
        };
        let mut table = SessionTable::new(socket, None);
        let stream = table.insert_session(peer, conv, false, session);
        SocketDriver::spawn(table);
        Ok(stream)
    }

    /// Returns the peer's address; with [`Settings::session`] the one from which it was last heard.
    #[must_use]
    pub fn peer_addr(&self) -> SocketAddr {
        self.session().peer_addr()
    }

    /// Returns the address of the socket, which a listener's sessions share.
    ///
    /// # Errors
    ///
    /// An error of the system, or of the [`DatagramTransport`].
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.session().socket.transport.local_addr()
    }

    /// Returns the conversation number.
    #[must_use]
    pub fn conv(&self) -> u32 {
        self.session().conv
    }

    /// Returns the settings of the ARQ.
    #[must_use]
    pub fn config(&self) -> Config {
        self.session().config()
    }

    /// Changes the settings of the ARQ, also of an accepted session: kcp-go's `SetNoDelay`,
    /// `SetWindowSize`, `SetMtu`, `SetACKNoDelay`, `SetWriteDelay` and `SetStreamMode`. An MTU that
    /// is too large for the datagrams of the socket is reduced.
    ///
    /// # Errors
    ///
    /// A value is out of bounds, or cannot change while data is in transit; then nothing is
    /// changed.
    pub fn set_config(&self, config: Config) -> Result<(), ChangeError> {
        self.session().change_config(config)
    }

    /// Limits the rate of this session to `rate` bytes per second, headers included; 0 is no limit.
    /// kcp-go's `SetRateLimit`.
    pub fn set_rate(&self, rate: u32) {
        self.session().set_rate(rate);
    }

    /// Sends each datagram of this session, parity included, `copies` more times, once it is known
    /// that the peer receives. All implementations ignore duplicates. The default is 0. The rate
    /// limit includes copies. Like kcp-go's `SetDUP`, which does not copy parity.
    ///
    /// # Errors
    ///
    /// `InvalidInput` above 3; then nothing is changed.
    pub fn set_copies(&self, copies: u8) -> io::Result<()> {
        if copies > MAX_COPIES {
            let what = "a datagram can have at most 3 additional copies";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        self.session().set_copies(copies);
        Ok(())
    }

    /// Sends an out-of-band datagram immediately. It may be lost, duplicated and reordered with
    /// others and the stream, and nothing corrects or repeats it. It may be empty. This never
    /// waits: the datagram is lost if the socket's buffer is full, or if the [rate](Self::set_rate)
    /// or the limit of a peer that has not answered yet does not permit it. kcp-go's `SendOOB`.
    ///
    /// The peer has to be adit or a kcp-go that has `SendOOB`; others ignore it.
    ///
    /// # Errors
    ///
    /// See [`OobError`].
    pub fn send_oob(&self, data: &[u8]) -> Result<(), OobError> {
        self.session().send_oob(data)
    }

    /// Returns the maximum length of an out-of-band datagram in bytes with the current MTU; 0
    /// without [`Settings::fec`]. kcp-go's `GetOOBMaxSize`.
    #[must_use]
    pub fn oob_max_size(&self) -> usize {
        self.session().oob_max_size()
    }

    /// Creates a receiver for the peer's out-of-band datagrams, which replaces the previous one.
    /// Datagrams that arrived before the first are lost. Replaces kcp-go's `SetOOBHandler`.
    #[must_use]
    pub fn oob_receiver(&self) -> OobReceiver {
        self.session().take_oob()
    }

    /// Marks the datagrams of the socket, which a listener's sessions share, with a code point of
    /// differentiated services (RFC 2474), from 0 to 63. kcp-go's `SetDSCP`.
    ///
    /// # Errors
    ///
    /// An error of the system, `InvalidInput` above 63, and `Unsupported` over a
    /// [`DatagramTransport`].
    pub fn set_dscp(&self, dscp: u8) -> io::Result<()> {
        let udp = self.session().socket.transport.udp();
        udp.ok_or(io::ErrorKind::Unsupported)?.set_dscp(dscp)
    }

    /// Returns a handle to query the session that does not keep it open.
    #[must_use]
    pub fn session_probe(&self) -> SessionProbe {
        SessionProbe(Arc::clone(self.session()))
    }
}

impl KcpWriteHalf {
    /// Sends an out-of-band datagram, like [`KcpStream::send_oob`].
    ///
    /// # Errors
    ///
    /// See [`OobError`].
    pub fn send_oob(&self, data: &[u8]) -> Result<(), OobError> {
        self.0.raw().0.session.send_oob(data)
    }
}

impl RawStream for Link {
    fn poll_read(&mut self, cx: &mut Context<'_>, out: &mut [u8]) -> Poll<io::Result<usize>> {
        self.0.session.poll_read(cx, out)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.session.poll_write(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.0.session.poll_write(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_finish(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.session.finish_writing();
        Poll::Ready(Ok(()))
    }

    fn abort(&mut self) {
        self.0.session.close_stream(true);
    }

    /// The session's task and those of the other streams take turns on the same data; with relays
    /// on other threads a GiB through the tunnel took 5 % more processor time.
    fn lane(&self) -> RelayLane {
        RelayLane::Home
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let session = &self.0.session;
        write!(f, "Link({:#x} with {})", session.conv, session.peer_addr())
    }
}

/// A handle to query a session. Does not keep it open.
#[derive(Debug, Clone)]
pub struct SessionProbe(Arc<Session>);

/// Data received from the peer until now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerContact {
    /// Nothing was received.
    Silent,
    /// This number of datagrams was received, none of which passed the check: the peer uses another
    /// key or cipher.
    Foreign(u64),
    /// Datagrams of this session were received.
    Heard,
}

impl SessionProbe {
    /// Returns the kind of data received from the peer until now.
    #[must_use]
    pub fn peer_contact(&self) -> PeerContact {
        match (self.0.has_heard_peer(), self.0.socket.refused_count()) {
            (true, _) => PeerContact::Heard,
            (false, 0) => PeerContact::Silent,
            (false, refused) => PeerContact::Foreign(refused),
        }
    }

    /// True if all sent data was acknowledged.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.0.is_drained()
    }

    /// Returns the time for which data has waited for an acknowledgement while nothing was
    /// received; `None` if no data waits. The protocol has no other sign of a peer that is gone.
    #[must_use]
    pub fn unanswered_for(&self) -> Option<Duration> {
        self.0.unanswered_for()
    }

    /// True if the peer's datagrams have the header of forward error correction; `None` before one
    /// was received.
    #[must_use]
    pub fn peer_uses_fec(&self) -> Option<bool> {
        self.0.peer_corrects()
    }

    /// Returns the numbers of data and parity shards of the peer's correction, once parity was
    /// received.
    #[must_use]
    pub fn peer_shards(&self) -> Option<(usize, usize)> {
        self.0.peer_shards()
    }

    /// Returns counters and gauges of the session.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.0.stats()
    }
}
