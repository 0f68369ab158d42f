//! Unix sockets.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use adit_engine::ConnectionSource;
use tokio::net::{UnixListener, UnixStream};

use crate::unix_socket::{self, SocketFile};

/// Connects to a socket.
pub(crate) async fn connect(path: &Path) -> io::Result<UnixStream> {
    UnixStream::connect(path).await
}

/// A listener at a Unix socket that only its owner can use.
#[derive(Debug)]
pub(crate) struct LocalListener {
    socket: UnixListener,
    file: SocketFile,
}

impl LocalListener {
    pub(crate) fn bind(path: &Path) -> io::Result<Self> {
        let (socket, file) = unix_socket::bind_stream_socket(path)?;
        Ok(Self { socket, file })
    }

    /// Continues a socket that another process has bound at `path`. That process remains the owner of the file.
    pub(crate) fn continue_from(fd: OwnedFd, path: &Path) -> io::Result<Self> {
        let (socket, file) = unix_socket::continue_stream_socket(fd, path)?;
        Ok(Self { socket, file })
    }

    /// Waits for the next connection.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub(crate) async fn accept(&self) -> io::Result<(UnixStream, ConnectionSource)> {
        let (stream, _) = self.socket.accept().await?;
        let user = stream
            .peer_cred()
            .map(|peer| ConnectionSource::User(peer.uid()));
        Ok((stream, user.unwrap_or(ConnectionSource::Unknown)))
    }

    /// Leaves the file to another process, which has the socket, or takes it over from it.
    pub(crate) fn set_owner(&mut self, is_owner: bool) {
        self.file.set_owner(is_owner);
    }

    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }
}

impl AsFd for LocalListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
