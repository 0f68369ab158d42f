//! Named pipes.

use std::io;
use std::path::Path;

use adit_engine::ConnectionSource;
use adit_net::named_pipe::PipeListener;
pub(crate) use adit_net::named_pipe::connect;
use tokio::net::windows::named_pipe::NamedPipeServer;

/// A listener at a named pipe that only its owner can use.
#[derive(Debug)]
pub(crate) struct LocalListener(PipeListener);

impl LocalListener {
    pub(crate) fn bind(path: &Path) -> io::Result<Self> {
        PipeListener::bind(path).map(Self)
    }

    /// Waits for the next connection.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub(crate) async fn accept(&mut self) -> io::Result<(NamedPipeServer, ConnectionSource)> {
        let stream = self.0.accept().await?;
        Ok((stream, ConnectionSource::Unknown))
    }

    /// Does nothing: the name of a pipe ends with its last handle.
    pub(crate) const fn set_owner(&self, _: bool) {}

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}
