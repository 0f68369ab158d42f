//! The listening end.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use adit_net::{BatchUdpSocket, BufferSizes};
use tokio::sync::mpsc;

use super::driver::SocketDriver;
use super::settings::Settings;
use super::socket::{KcpSocket, SettingsChange};
use super::stream::KcpStream;
use super::table::SessionTable;
use super::transport::{DatagramTransport, Transport};

/// Accepts sessions on one UDP socket, or over a [`DatagramTransport`].
///
/// A session starts with the first data of a conversation, if it passes the check and comes from an
/// address that has fewer than four sessions. It never resets another: a conversation that is new
/// to an address exists beside the others. Where packets cannot be authenticated, at most 256
/// sessions a second are started.
///
/// When the listener is dropped, the accepted sessions continue.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use adit_kcp::{Config, KcpListener, KcpStream, Settings};
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
///
/// let settings = Settings::new(Config::fast3());
/// let mut listener = KcpListener::bind("127.0.0.1:0".parse()?, settings.clone())?;
/// let mut client = KcpStream::connect(listener.local_addr()?, settings).await?;
///
/// // The first datagram starts the session.
/// client.write_all(b"hello").await?;
/// let (mut session, from) = listener.accept().await?;
/// assert_eq!(from.port(), client.local_addr()?.port());
/// let mut text = [0; 5];
/// session.read_exact(&mut text).await?;
/// assert_eq!(&text, b"hello");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct KcpListener {
    pub(super) socket: Arc<KcpSocket>,
    /// Emptied before the driver is woken.
    queue: Option<mpsc::Receiver<KcpStream>>,
}

impl KcpListener {
    /// Listens on `addr`.
    ///
    /// # Errors
    ///
    /// Invalid [`Settings`], or an error of the system.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    pub fn bind(addr: SocketAddr, settings: Settings) -> io::Result<Self> {
        Self::listen_with(settings, || BatchUdpSocket::bind(addr).map(Transport::Udp))
    }

    /// Listens on a bound socket that you have opened: kcp-go's `ServeConn`. The socket becomes
    /// non-blocking, receives in batches (`UDP_GRO` on Linux) and does not fragment, which also
    /// affects its clones; its other options stay unchanged. Nothing else may read from it.
    ///
    /// # Errors
    ///
    /// As [`bind`](Self::bind), and `InvalidInput` for a connected socket.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    pub fn from_socket(socket: std::net::UdpSocket, settings: Settings) -> io::Result<Self> {
        Self::listen_with(settings, || {
            BatchUdpSocket::from_std(socket).map(Transport::Udp)
        })
    }

    /// Listens on a bound socket of this project, such as one that another process has handed over.
    ///
    /// # Errors
    ///
    /// Invalid [`Settings`].
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    pub fn over_udp(socket: BatchUdpSocket, settings: Settings) -> io::Result<Self> {
        Self::listen_with(settings, || Ok(Transport::Udp(socket)))
    }

    /// Listens over a transport, which is dropped when it is not needed any more.
    ///
    /// # Errors
    ///
    /// Invalid [`Settings`].
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    pub fn bind_over(transport: impl DatagramTransport, settings: Settings) -> io::Result<Self> {
        Self::listen_with(settings, || Ok(Transport::Own(Box::new(transport))))
    }

    pub(super) fn listen_with(
        settings: Settings,
        open: impl FnOnce() -> io::Result<Transport>,
    ) -> io::Result<Self> {
        let backlog = settings.backlog;
        let socket = Arc::new(KcpSocket::new(settings, open)?);
        let (sender, queue) = mpsc::channel(backlog.max(1));
        SocketDriver::spawn(SessionTable::new(Arc::clone(&socket), Some(sender)));
        Ok(Self {
            socket,
            queue: Some(queue),
        })
    }

    /// Returns the address of the socket.
    ///
    /// # Errors
    ///
    /// An error of the system, or of the [`DatagramTransport`].
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.transport.local_addr()
    }

    /// Returns the sizes of the socket's kernel buffers; `None` over a [`DatagramTransport`].
    #[must_use]
    pub fn socket_buffers(&self) -> Option<BufferSizes> {
        self.socket
            .transport
            .udp()
            .map(BatchUdpSocket::buffer_sizes)
    }

    /// Uses other settings for the sessions that start from now on; the socket stays. Sessions that have started keep
    /// theirs. The encryption does not change: `key`, `crypt` and `session` of `settings` are ignored, and so is
    /// `backlog`.
    ///
    /// # Errors
    ///
    /// Invalid [`Settings`]. In this case nothing has changed.
    pub fn update_settings(&mut self, settings: Settings) -> io::Result<()> {
        let current = &self.socket.settings;
        let settings = Settings {
            key: current.key.clone(),
            crypt: current.crypt.clone(),
            session: current.session.clone(),
            ..settings
        };
        self.change_settings(settings, false)
    }

    /// Uses other settings, those of the encryption included; the socket stays. All sessions end, because their peers
    /// have another key: their streams fail. `backlog` is ignored.
    ///
    /// # Errors
    ///
    /// Invalid [`Settings`]. In this case nothing has changed.
    pub fn replace_settings(&mut self, settings: Settings) -> io::Result<()> {
        self.change_settings(settings, true)
    }

    fn change_settings(&mut self, settings: Settings, ends_sessions: bool) -> io::Result<()> {
        let socket = Arc::new(self.socket.with_settings(settings)?);
        self.socket.send_change(SettingsChange {
            socket: Arc::clone(&socket),
            ends_sessions,
        });
        self.socket = socket;
        Ok(())
    }

    /// Waits for the next session.
    ///
    /// # Errors
    ///
    /// The runtime is shutting down, or the transport has ended.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
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
