//! One end of a conversation, as a stream.

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

use super::driver::Driver;
use super::oob::{OobError, OobReceiver};
use super::session::Session;
use super::settings::Settings;
use super::socket::Socket;
use super::table::Table;
use super::transport::{DatagramTransport, Transport};
use adit_stream::{Buffered, Raw};

/// How many more times a datagram may be sent.
const MOST_COPIES: u8 = 3;

adit_stream::session_stream! {
    raw: Link;
    /// A KCP session as an [`adit_stream::Stream`], and as tokio's `AsyncRead` and `AsyncWrite`.
    ///
    /// In message mode each write through tokio's trait sends one message, and each read returns one,
    /// or what is left of one that was longer than the room.
    KcpStream;
    /// The reading half of a [`KcpStream`].
    KcpReadHalf;
    /// The writing half of a [`KcpStream`].
    KcpWriteHalf;
}

/// The session behind a [`KcpStream`] or its halves; it is closed with the last of them.
#[derive(Clone)]
pub(crate) struct Link(Arc<Handle>);

struct Handle {
    session: Arc<Session>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.session.close(false);
    }
}

impl Link {
    pub(super) fn stream(session: Arc<Session>) -> KcpStream {
        KcpStream(Buffered::new(Self(Arc::new(Handle { session }))))
    }
}

impl KcpStream {
    pub(crate) fn session(&self) -> &Arc<Session> {
        &self.0.raw().0.session
    }

    /// Begins a session of a random conversation with `peer`, on a socket of its own. Nothing is
    /// sent yet, so nothing is known of the peer; see [`Probe::contact`].
    ///
    /// # Errors
    /// [`Settings`] that make no session, and what the system refuses.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn connect(peer: SocketAddr, settings: Settings) -> io::Result<Self> {
        let any = match peer.ip() {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let open = || BatchUdpSocket::bind(SocketAddr::new(any, 0)).map(Transport::Udp);
        Self::begin(Socket::new(settings, open)?, peer)
    }

    /// As [`connect`](Self::connect), on a socket of the program's own, which is bound already:
    /// kcp-go's `NewConn`. It no longer blocks, receives in batches (on Linux `UDP_GRO`) and does not
    /// fragment, which goes for its clones too; its other options stay as they are. Nobody else may
    /// read from it.
    ///
    /// # Errors
    /// As [`connect`](Self::connect), and `InvalidInput` for a socket that is connected or is not of
    /// the family of `peer`.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn from_socket(
        socket: std::net::UdpSocket,
        peer: SocketAddr,
        settings: Settings,
    ) -> io::Result<Self> {
        if peer.is_ipv6() && socket.local_addr()?.is_ipv4() {
            let what = "a socket for IPv4 and a peer with an IPv6 address";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let open = || BatchUdpSocket::from_std(socket).map(Transport::Udp);
        Self::begin(Socket::new(settings, open)?, peer)
    }

    /// As [`connect`](Self::connect), over a transport, which is dropped with the session.
    ///
    /// # Errors
    /// [`Settings`] that make no session.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn connect_over(
        transport: impl DatagramTransport,
        peer: SocketAddr,
        settings: Settings,
    ) -> io::Result<Self> {
        let open = || Ok(Transport::Own(Box::new(transport)));
        Self::begin(Socket::new(settings, open)?, peer)
    }

    fn begin(socket: Socket, peer: SocketAddr) -> io::Result<Self> {
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
        let mut table = Table::new(socket, None);
        let stream = table.insert(peer, conv, false, session);
        Driver::spawn(table);
        Ok(stream)
    }

    /// The peer's address; with [`Settings::session`] where it was last heard.
    #[must_use]
    pub fn peer_addr(&self) -> SocketAddr {
        self.session().peer()
    }

    /// The address of the socket, which a listener's sessions share.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.session().socket.transport.local_addr()
    }

    /// The conversation's number.
    #[must_use]
    pub fn conv(&self) -> u32 {
        self.session().conv
    }

    /// The settings of the ARQ.
    #[must_use]
    pub fn config(&self) -> Config {
        self.session().config()
    }

    /// Changes the settings of the ARQ from here on, also of a session that was accepted: kcp-go's
    /// `SetNoDelay`, `SetWindowSize`, `SetMtu`, `SetACKNoDelay`, `SetWriteDelay` and `SetStreamMode`.
    /// An MTU greater than what the datagrams of the socket have room for becomes that.
    ///
    /// # Errors
    /// A value out of its bounds, or one that data under way was cut by; nothing is changed then.
    pub fn set_config(&self, config: Config) -> Result<(), ChangeError> {
        self.session().change(config)
    }

    /// Limits what this session sends to `rate` bytes a second, headers included; 0 is no limit.
    /// kcp-go's `SetRateLimit`.
    pub fn set_rate(&self, rate: u32) {
        self.session().set_rate(rate);
    }

    /// Sends each datagram of this session `copies` more times from here on, parity included, once it
    /// is known that the peer receives. What comes twice is passed over by every peer. 0 is what a
    /// session begins with. The rate counts copies too. kcp-go's `SetDUP`, which leaves parity out.
    ///
    /// # Errors
    /// `InvalidInput` above 3; nothing is changed then.
    pub fn set_copies(&self, copies: u8) -> io::Result<()> {
        if copies > MOST_COPIES {
            let what = "a datagram is sent 3 more times at most";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        self.session().set_copies(copies);
        Ok(())
    }

    /// Sends a datagram beside the stream at once: it may be lost, come twice and overtake others and
    /// the stream, and nothing corrects or repeats it. It may be empty. It never waits: a datagram for
    /// which the socket, the [rate](Self::set_rate) or a peer that has not answered yet has no room is
    /// lost. kcp-go's `SendOOB`.
    ///
    /// The peer has to be adit or a kcp-go that has `SendOOB`; others pass over it.
    ///
    /// # Errors
    /// See [`OobError`].
    pub fn send_oob(&self, data: &[u8]) -> Result<(), OobError> {
        self.session().send_oob(data)
    }

    /// Bytes of the longest datagram beside the stream, by the MTU of now; 0 without
    /// [`Settings::fec`]. kcp-go's `GetOOBMaxSize`.
    #[must_use]
    pub fn oob_max_size(&self) -> usize {
        self.session().oob_max_size()
    }

    /// From now on what the peer sends beside the stream comes to this receiver, and no longer to the
    /// one before it; datagrams that came before any are lost. In place of kcp-go's `SetOOBHandler`.
    #[must_use]
    pub fn oob(&self) -> OobReceiver {
        self.session().take_oob()
    }

    /// Marks the datagrams of the socket, which a listener's sessions share, with a code point of
    /// differentiated services (RFC 2474), from 0 to 63. kcp-go's `SetDSCP`.
    ///
    /// # Errors
    /// What the system refuses, `InvalidInput` above 63, and `Unsupported` over a
    /// [`DatagramTransport`].
    pub fn set_dscp(&self, dscp: u8) -> io::Result<()> {
        let udp = self.session().socket.transport.udp();
        udp.ok_or(io::ErrorKind::Unsupported)?.set_dscp(dscp)
    }

    /// A way to ask about the session without holding it.
    #[must_use]
    pub fn probe(&self) -> Probe {
        Probe(Arc::clone(self.session()))
    }
}

impl KcpWriteHalf {
    /// As that of the [whole stream](KcpStream::send_oob).
    ///
    /// # Errors
    /// See [`OobError`].
    pub fn send_oob(&self, data: &[u8]) -> Result<(), OobError> {
        self.0.raw().0.session.send_oob(data)
    }
}

impl Raw for Link {
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
        self.0.session.finish();
        Poll::Ready(Ok(()))
    }

    fn abort(&mut self) {
        self.0.session.close(true);
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
        write!(f, "Link({:#x} with {})", session.conv, session.peer())
    }
}

/// What is known of a session. Does not keep it open.
#[derive(Debug, Clone)]
pub struct Probe(Arc<Session>);

/// What has come from the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contact {
    /// Nothing at all
    Silent,
    /// So many datagrams, of which none passed the check: it uses another key or cipher
    Foreign(u64),
    /// Datagrams of this session
    Heard,
}

impl Probe {
    /// What has come from the peer until now.
    #[must_use]
    pub fn contact(&self) -> Contact {
        match (self.0.heard(), self.0.socket.refused()) {
            (true, _) => Contact::Heard,
            (false, 0) => Contact::Silent,
            (false, refused) => Contact::Foreign(refused),
        }
    }

    /// Whether everything sent was acknowledged.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.0.is_drained()
    }

    /// How long something has waited for an acknowledgement while nothing at all came; none if
    /// nothing waits. The protocol has no other sign of a peer that is gone.
    #[must_use]
    pub fn unanswered(&self) -> Option<Duration> {
        self.0.unanswered()
    }

    /// Whether the peer's datagrams have the header of forward error correction; none before one
    /// has come.
    #[must_use]
    pub fn peer_corrects(&self) -> Option<bool> {
        self.0.peer_corrects()
    }

    /// Data and parity shards of the peer's correction, once parity has come.
    #[must_use]
    pub fn peer_shards(&self) -> Option<(usize, usize)> {
        self.0.peer_shards()
    }

    /// Counters and gauges of the session.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.0.stats()
    }
}
