//! Where commands come in: a port, or a Unix socket that its owner alone can use.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::time::{sleep, timeout};
use tracing::debug;

use super::Manager;
use crate::listen_address::{ListenAddress, resolve_address};
#[cfg(unix)]
use crate::unix_socket::{self, SocketFile};

/// A datagram of this many bytes is none of ours: it may have been longer.
const TOO_LONG: usize = 65_000;
/// Time a client gets to take an answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// A socket for commands.
#[derive(Debug)]
pub struct Door(Socket);

#[derive(Debug)]
enum Socket {
    Udp(UdpSocket, SocketAddr),
    #[cfg(unix)]
    Unix(tokio::net::UnixDatagram, SocketFile),
}

/// Why a door does not open.
#[derive(Debug, thiserror::Error)]
pub enum DoorError {
    /// Everyone who reaches the address could begin servers here.
    #[error("{0} is not of this machine, and whoever reaches it may begin and end servers")]
    Exposed(SocketAddr),
    /// The system says no.
    #[error("cannot take commands at {at}: {why}")]
    Socket {
        /// The address as it was written.
        at: String,
        /// What the system said.
        why: io::Error,
    },
}

impl Door {
    /// Opens at `HOST:PORT`, or at a path. An address that others reach needs `exposed`.
    pub async fn open(at: &str, exposed: bool) -> Result<Self, DoorError> {
        let failed = |why| DoorError::Socket {
            at: at.to_owned(),
            why,
        };
        let target = match ListenAddress::parse(at).map_err(failed)? {
            ListenAddress::Port(target) => target,
            ListenAddress::Path(path) => return Self::open_path(path).map_err(failed),
        };
        let addr = resolve_address(&target).await.map_err(failed)?;
        if !addr.ip().is_loopback() && !exposed {
            return Err(DoorError::Exposed(addr));
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
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Answers for ever.
    pub async fn serve(self, manager: &mut Manager) {
        let mut buf = vec![0; TOO_LONG + 1];
        loop {
            if let Err(e) = self.0.answer_one(&mut buf, manager).await {
                debug!("manager: {e}");
                // Whatever it is, it must not keep a core busy.
                sleep(Duration::from_millis(5)).await;
            }
        }
    }
}

impl fmt::Display for Door {
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
                // A client without a path of its own can be told nothing.
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
