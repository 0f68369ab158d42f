//! The end that waits.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use adit_net::{BatchUdpSocket, BufferSizes};
use tokio::sync::mpsc;

use super::driver::Driver;
use super::settings::Settings;
use super::socket::Socket;
use super::stream::KcpStream;
use super::table::Table;
use super::transport::{DatagramTransport, Transport};

/// Accepts sessions on one UDP socket, or over a [`DatagramTransport`].
///
/// A session begins with the first data of a conversation, if they pass the check and come from an
/// address that has fewer than four sessions. It never resets another: a conversation that is new to an address stands
/// beside those that are there. Where packets cannot be authenticated, births are limited to 256 a
/// second.
///
/// When it is dropped the sessions that were accepted go on.
#[derive(Debug)]
pub struct KcpListener {
    socket: Arc<Socket>,
    /// Emptied before the driver is told.
    queue: Option<mpsc::Receiver<KcpStream>>,
}

impl KcpListener {
    /// Listens.
    ///
    /// # Errors
    /// [`Settings`] that make no session, and what the system refuses.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn bind(addr: SocketAddr, settings: Settings) -> io::Result<Self> {
        Self::on(settings, || BatchUdpSocket::bind(addr).map(Transport::Udp))
    }

    /// Listens on a socket of the program's own, which is bound already: kcp-go's `ServeConn`. It no
    /// longer blocks, receives in batches (on Linux `UDP_GRO`) and does not fragment, which goes for
    /// its clones too; its other options stay as they are. Nobody else may read from it.
    ///
    /// # Errors
    /// As [`bind`](Self::bind), and `InvalidInput` for a socket that is connected.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn from_socket(socket: std::net::UdpSocket, settings: Settings) -> io::Result<Self> {
        Self::on(settings, || {
            BatchUdpSocket::from_std(socket).map(Transport::Udp)
        })
    }

    /// Listens over a transport, which is dropped when nobody needs it any more.
    ///
    /// # Errors
    /// [`Settings`] that make no session.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn over(transport: impl DatagramTransport, settings: Settings) -> io::Result<Self> {
        Self::on(settings, || Ok(Transport::Own(Box::new(transport))))
    }

    fn on(settings: Settings, open: impl FnOnce() -> io::Result<Transport>) -> io::Result<Self> {
        let backlog = settings.backlog;
        let socket = Arc::new(Socket::new(settings, open)?);
        let (sender, queue) = mpsc::channel(backlog.max(1));
        Driver::spawn(Table::new(Arc::clone(&socket), Some(sender)));
        Ok(Self {
            socket,
            queue: Some(queue),
        })
    }

    /// The address it listens on.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.transport.local_addr()
    }

    /// What the system gave its socket for datagrams that wait; none over a [`DatagramTransport`].
    #[must_use]
    pub fn buffers(&self) -> Option<BufferSizes> {
        self.socket
            .transport
            .udp()
            .map(BatchUdpSocket::buffer_sizes)
    }

    /// Waits for the next session. Cancel-safe.
    ///
    /// # Errors
    /// The runtime is ending, or the transport has come to its end.
    pub async fn accept(&mut self) -> io::Result<(KcpStream, SocketAddr)> {
        let stream = match &mut self.queue {
            Some(queue) => queue.recv().await,
            None => None,
        };
        let stream = stream.ok_or(io::ErrorKind::NotConnected)?;
        let peer = stream.peer_addr();
        Ok((stream, peer))
    }
}

impl Drop for KcpListener {
    fn drop(&mut self) {
        self.queue = None;
        self.socket.wake_driver();
    }
}
