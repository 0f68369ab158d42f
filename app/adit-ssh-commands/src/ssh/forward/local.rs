//! Local ports and sockets (`-L`, `-D`).

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use crate::ssh_config::SshBind;
use adit_net::accept::{AcceptOutcome, TcpAcceptor};
use adit_net::dial::{self, Family};
use adit_net::tcp;
use adit_stream::Buffered;
use adit_stream::{BoxStream, Tcp, lane};
use tracing::debug;

use super::ForwardContext;
use super::forward_target::ForwardTarget;
use crate::ssh::platform::{LocalSocketListener, bind_private_socket};

/// A local listener of a forward.
pub(super) enum LocalListener {
    Port(TcpAcceptor),
    Socket(LocalSocketListener, PathBuf),
}

impl LocalListener {
    /// Returns the path of a Unix socket.
    pub(super) fn socket_path(&self) -> Option<PathBuf> {
        match self {
            Self::Port(_) => None,
            Self::Socket(_, path) => Some(path.clone()),
        }
    }
}

/// Opens the listeners of a forward: for `localhost`, one for each address family.
pub(super) async fn open_listeners(at: &SshBind, gateway: bool) -> io::Result<Vec<LocalListener>> {
    let (address, port) = match at {
        SshBind::Socket(path) => {
            let listener = bind_private_socket(path)?;
            return Ok(vec![LocalListener::Socket(listener, PathBuf::from(path))]);
        }
        SshBind::Port { address, port } => (address.as_deref(), *port),
    };
    let any = vec![SocketAddr::from((Ipv6Addr::UNSPECIFIED, port))];
    let addresses = match address {
        Some("" | "*") => any,
        None if gateway => any,
        None | Some("localhost") => vec![
            SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            SocketAddr::from((Ipv6Addr::LOCALHOST, port)),
        ],
        Some(name) => dial::resolve(name, port, Family::Any).await?,
    };
    let mut listeners = Vec::new();
    let mut failed = None;
    for address in addresses {
        let listener = match tcp::listen(address) {
            // The machine has no IPv6.
            Err(_) if address.ip() == Ipv6Addr::UNSPECIFIED => {
                tcp::listen(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port))
            }
            listener => listener,
        };
        match listener {
            Ok(listener) => listeners.push(LocalListener::Port(TcpAcceptor::new(listener))),
            Err(why) if why.kind() == io::ErrorKind::AddrInUse => return Err(why),
            Err(why) => failed = failed.or(Some(why)),
        }
    }
    match failed {
        Some(why) if listeners.is_empty() => Err(why),
        _ => Ok(listeners),
    }
}

/// Accepts connections forever, and serves each in its own task.
pub(super) async fn serve_local_forward(
    mut listener: LocalListener,
    way: Arc<ForwardTarget>,
    shared: Arc<ForwardContext>,
) {
    let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    if let LocalListener::Port(acceptor) = &listener {
        debug!("listening on {}", acceptor.local_addr().unwrap_or(nowhere));
    }
    loop {
        let (near, from): (BoxStream, SocketAddr) = match &mut listener {
            LocalListener::Port(acceptor) => match acceptor.next().await {
                AcceptOutcome::Connection(stream, from) => (Box::new(Tcp::new(stream)), from),
                AcceptOutcome::Exhausted(why) => {
                    shared.print_message(&format!("warning: cannot accept a connection: {why}"));
                    continue;
                }
            },
            LocalListener::Socket(listener, path) => match listener.accept().await {
                Ok(stream) => (Box::new(Buffered::from_tokio(stream)), nowhere),
                Err(why) => {
                    shared.print_message(&format!("warning: {}: {why}", path.display()));
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                    continue;
                }
            },
        };
        debug!("accepted a connection from {from}");
        let (way, shared, ticket) = (
            Arc::clone(&way),
            Arc::clone(&shared),
            shared.counter.count_connection(),
        );
        lane::spawn_movable(async move {
            way.serve_connection(near, from, &shared).await;
            drop(ticket);
        });
    }
}
