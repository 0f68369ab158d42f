//! A session with a server: how it starts, and what the server announced.

use std::sync::Arc;

use adit_ssh::Channel;
use adit_ssh::client::Session;
use adit_ssh_proto::sftp::{Extension, ExtensionSet, SftpLimits, SftpReply, SftpRequest};
use adit_stream::{BoxStream, Buffered};
use tokio::io::{AsyncRead, AsyncWrite};

use super::connection::{Connection, Operation};
use super::wire::Wire;
use crate::SftpError;

/// A session with an SFTP server: one run of the protocol over one stream.
///
/// All methods take `&self`, and clones share the session: operations of any number of tasks are in
/// flight at the same time. There is no task behind it. The operations that are polled move the bytes,
/// so a session works on any executor, and an unused one costs nothing.
///
/// Paths are bytes, as version 3 of the protocol has no encoding for them; relative paths start in the
/// directory that the server chose, usually the user's home. The stream closes when the last clone and
/// the last [`File`](super::File) are dropped.
///
/// # Cancel safety
///
/// Dropping the future of an operation discards its reply. The server may still execute the request. A
/// file that it opens is closed.
#[derive(Debug, Clone)]
pub struct SftpSession {
    pub(super) connection: Arc<Connection>,
}

impl SftpSession {
    /// Opens a channel of an SSH session, starts the subsystem `sftp` on it, and exchanges versions and
    /// limits.
    ///
    /// # Errors
    /// [`SftpError::Channel`] if the channel could not be opened, [`SftpError::Subsystem`] if the server
    /// has no such subsystem, [`SftpError::ConnectionLost`] and [`SftpError::Protocol`] if the exchange failed.
    pub async fn open(session: &Session) -> Result<Self, SftpError> {
        let program = session.open_session().await?;
        let started = program.start_subsystem("sftp").await;
        started.map_err(SftpError::Subsystem)?;
        Self::from_channel(program.into_channel()).await
    }

    /// Starts a session on a channel whose subsystem was started.
    ///
    /// # Errors
    /// [`SftpError::ConnectionLost`] if the channel ended, [`SftpError::Protocol`] if the peer is not a server of
    /// SFTP version 3.
    pub async fn from_channel(channel: Channel) -> Result<Self, SftpError> {
        Self::start(Wire::Channel(channel)).await
    }

    /// Starts a session on any stream.
    ///
    /// # Errors
    /// As [`SftpSession::from_channel`].
    pub async fn from_stream(stream: BoxStream) -> Result<Self, SftpError> {
        Self::start(Wire::Stream(stream)).await
    }

    /// Starts a session on a reader and writer of tokio: a socket, or the pipes of a process joined by
    /// [`tokio::io::join`].
    ///
    /// # Errors
    /// As [`SftpSession::from_channel`].
    pub async fn from_tokio<T>(io: T) -> Result<Self, SftpError>
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        Self::from_stream(Box::new(Buffered::from_tokio(io))).await
    }

    async fn start(wire: Wire) -> Result<Self, SftpError> {
        let connection = Connection::start(wire).await?;
        Ok(Self { connection })
    }

    /// Returns the extensions that the server announced.
    #[must_use]
    pub fn extensions(&self) -> ExtensionSet {
        self.connection.lock().client.extensions()
    }

    /// True if the server announced an extension.
    #[must_use]
    pub fn supports(&self, extension: Extension) -> bool {
        self.extensions().contains(extension)
    }

    /// Returns the limits of the server (`limits@openssh.com`), which were queried at the start. All are
    /// 0, which means unknown, if the server does not have the extension.
    #[must_use]
    pub fn limits(&self) -> SftpLimits {
        *self.connection.lock().client.limits()
    }

    /// Sends one request and returns what `read` makes of its reply.
    pub(super) async fn ask<R: Send>(
        &self,
        request: &SftpRequest<'_>,
        read: impl FnMut(&SftpReply<'_>) -> Result<R, SftpError> + Send,
    ) -> Result<R, SftpError> {
        Operation::new(&self.connection).ask(request, read).await
    }

    pub(super) fn require(&self, extension: Extension) -> Result<(), SftpError> {
        match self.supports(extension) {
            true => Ok(()),
            false => Err(SftpError::Unsupported(extension)),
        }
    }
}
