//! The listener for commands: a UDP port, or a Unix socket that only its owner can use.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use adit_config::ApiAddress;
use tokio::net::UdpSocket;
use tokio::time::{sleep, timeout};
use tracing::debug;

use super::Manager;
use crate::api_address::resolve_address;
#[cfg(unix)]
use crate::unix_socket::{self, SocketFile};

/// Maximum size of a datagram, in bytes. A longer one is ignored, because it may be truncated.
const TOO_LONG: usize = 65_000;
/// Time limit to send an answer to a client.
const PATIENCE: Duration = Duration::from_secs(1);

/// A listener for commands.
#[derive(Debug)]
pub struct CommandListener(Socket);

#[derive(Debug)]
enum Socket {
    Udp(UdpSocket, SocketAddr),
    #[cfg(unix)]
    Unix(tokio::net::UnixDatagram, SocketFile),
}

/// The reason why a listener cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum CommandListenerError {
    /// All machines that reach the address could start servers.
    #[error(
        "{0} is not a loopback address, and all machines that reach it could start and stop servers"
    )]
    Exposed(SocketAddr),
    /// The system refused it.
    #[error("cannot receive commands at {at}: {why}")]
    Socket {
        /// The address of the request, unchanged.
        at: String,
        /// The error of the system.
        why: io::Error,
    },
}

impl CommandListener {
    /// Opens a listener at `HOST:PORT`, or at a path. Other addresses than loopback need `exposed`.
    ///
    /// # Errors
    /// The address is not a loopback address and `exposed` is false, or the system refuses it.
    pub async fn open(at: &str, exposed: bool) -> Result<Self, CommandListenerError> {
        let failed = |why| CommandListenerError::Socket {
            at: at.to_owned(),
            why,
        };
        let target = match ApiAddress::parse(at).map_err(|why| failed(why.into()))? {
            ApiAddress::Port(target) => target,
            ApiAddress::Path(path) => return Self::open_path(path).map_err(failed),
        };
        let addr = resolve_address(&target).await.map_err(failed)?;
        if !addr.ip().is_loopback() && !exposed {
            return Err(CommandListenerError::Exposed(addr));
        }
        let socket = UdpSocket::bind(addr).await.map_err(failed)?;
        let addr = socket.local_addr().map_err(failed)?;
        Ok(Self(Socket::Udp(socket, addr)))
    }

    #[cfg(unix)]
    fn open_path(path: PathBuf) -> io::Result<Self> {
        let (socket, file) = unix_socket::bind_datagram_socket(&path)?;
        Ok(Self(Socket::Unix(socket, file)))
    }

    #[cfg(not(unix))]
    fn open_path(_: PathBuf) -> io::Result<Self> {
        let why = "datagram sockets with a path are available on Unix only; use 127.0.0.1:PORT";
        Err(io::Error::new(io::ErrorKind::Unsupported, why))
    }

    /// Serves commands. Never returns.
    pub async fn serve(self, manager: &mut Manager) {
        let mut buf = vec![0; TOO_LONG + 1];
        loop {
            if let Err(e) = self.0.answer_one(&mut buf, manager).await {
                debug!("manager: {e}");
                // An error that repeats must not keep a core busy.
                sleep(Duration::from_millis(5)).await;
            }
        }
    }
}

impl fmt::Display for CommandListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Socket::Udp(_, addr) => write!(f, "{addr}"),
            #[cfg(unix)]
            Socket::Unix(_, file) => write!(f, "{}", file.path().display()),
        }
    }
}

impl Socket {
    async fn answer_one(&self, buf: &mut [u8], manager: &mut Manager) -> io::Result<()> {
        match self {
            Self::Udp(socket, _) => {
                let (n, from) = socket.recv_from(buf).await?;
                for text in answers(buf.get(..n), manager).await {
                    late(timeout(PATIENCE, socket.send_to(text.as_bytes(), from)).await)?;
                }
            }
            #[cfg(unix)]
            Self::Unix(socket, _) => {
                let (n, from) = socket.recv_from(buf).await?;
                let texts = answers(buf.get(..n), manager).await;
                // A client whose socket has no path cannot receive an answer.
                let Some(path) = from.as_pathname() else {
                    return Ok(());
                };
                for text in texts {
                    late(timeout(PATIENCE, socket.send_to(text.as_bytes(), path)).await)?;
                }
            }
        }
        Ok(())
    }
}

async fn answers(datagram: Option<&[u8]>, manager: &mut Manager) -> Vec<String> {
    match datagram {
        Some(datagram) if datagram.len() <= TOO_LONG => manager.handle(datagram).await,
        _ => Vec::new(),
    }
}

fn late(sent: Result<io::Result<usize>, tokio::time::error::Elapsed>) -> io::Result<()> {
    match sent {
        Ok(sent) => sent.map(drop),
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}
