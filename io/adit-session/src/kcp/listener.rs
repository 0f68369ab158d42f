//! The end that waits.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use adit_net::Buffers;
use tokio::sync::mpsc;

use super::driver::Driver;
use super::settings::Settings;
use super::socket::Socket;
use super::stream::KcpStream;
use super::table::Table;

/// Accepts sessions on one UDP socket.
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
        let backlog = settings.backlog;
        let socket = Arc::new(Socket::bind(addr, settings)?);
        let (sender, queue) = mpsc::channel(backlog.max(1));
        Driver::spawn(Table::new(Arc::clone(&socket), Some(sender)));
        Ok(Self {
            socket,
            queue: Some(queue),
        })
    }

    /// The address it listens on.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.udp.local_addr()
    }

    /// What the system gave its socket for datagrams that wait.
    #[must_use]
    pub fn buffers(&self) -> Buffers {
        self.socket.udp.buffers()
    }

    /// Waits for the next session. Cancel-safe.
    ///
    /// # Errors
    /// The runtime is ending.
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
