//! The socket of a forwarded agent: connections to it reach the client's agent.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{env, process};

use adit_net::system::SystemRng;
use adit_ssh::server::ServerHandle;
use adit_stream::Buffered;
use adit_stream::relay;
use adit_wire::Entropy;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::AbortHandle;
use tracing::debug;

use super::client_connection::ClientConnection;

/// A socket in a folder that only the user can access; both are removed when this is dropped.
#[derive(Debug)]
pub(super) struct AgentSocket {
    folder: PathBuf,
    path: PathBuf,
    task: AbortHandle,
}

impl AgentSocket {
    /// Creates the socket and starts to accept connections.
    pub(super) fn open(visit: Arc<ClientConnection>, handle: ServerHandle) -> io::Result<Self> {
        let place = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let place = place.filter(|place| place.is_absolute() && place.is_dir());
        let mut name = [0; 8];
        SystemRng.fill(&mut name);
        let name = u64::from_le_bytes(name);
        let folder = place
            .unwrap_or_else(env::temp_dir)
            .join(format!("adit-agent-{}-{name:016x}", process::id()));
        // Fails if the folder exists, so that no one else can have created it.
        DirBuilder::new().mode(0o700).create(&folder)?;
        let path = folder.join("agent");
        let listener = UnixListener::bind(&path).inspect_err(|_| drop(fs::remove_dir(&folder)))?;
        let task = tokio::spawn(accept_connections(listener, visit, handle)).abort_handle();
        Ok(Self { folder, path, task })
    }

    /// Returns the path of the socket.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for AgentSocket {
    fn drop(&mut self) {
        self.task.abort();
        let _ = fs::remove_file(&self.path);
        let _ = fs::remove_dir(&self.folder);
    }
}

/// Accepts connections forever.
async fn accept_connections(
    listener: UnixListener,
    visit: Arc<ClientConnection>,
    handle: ServerHandle,
) {
    loop {
        match listener.accept().await {
            Ok((socket, _)) => {
                tokio::spawn(forward_to_client(
                    socket,
                    Arc::clone(&visit),
                    handle.clone(),
                ));
            }
            Err(why) => {
                debug!("{}: cannot accept on the agent socket: {why}", visit.from);
                tokio::time::sleep(super::remote_forwards::ACCEPT_RETRY_DELAY).await;
            }
        }
    }
}

/// Forwards a connection to the client's agent.
async fn forward_to_client(socket: UnixStream, visit: Arc<ClientConnection>, handle: ServerHandle) {
    match handle.open_agent().await {
        Ok(mut channel) => {
            let mut near = Buffered::from_tokio(socket);
            relay(
                &mut near,
                &mut channel,
                &visit.settings.limits,
                &visit.meter,
            )
            .await;
        }
        Err(why) => debug!("{}: cannot open an agent channel: {why}", visit.from),
    }
}
