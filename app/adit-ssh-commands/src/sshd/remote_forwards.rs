//! Listeners for clients (`-R`): connections are forwarded to the client, through the relay.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use adit_net::accept::{AcceptOutcome, TcpAcceptor};
use adit_net::tcp;
use adit_ssh::server::{ForwardAddress, ForwardRequest, ServerHandle};
use adit_ssh_proto::connection::Originator;
use adit_stream::Buffered;
use adit_stream::{Stream, Tcp, lane, relay};
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;
use tracing::{debug, warn};

use super::client_connection::ClientConnection;

/// Maximum number of forwarded addresses per connection.
const MAX_LISTENERS: usize = 256;
/// Maximum number of connections that wait for the client's answer. Clients limit unanswered channels as well
/// (earlier versions of adit to 128). Further connections wait in the listen queue.
const MAX_OPENING: usize = 100;
/// Maximum number of forwarded connections of one client. A connection has 1024 channels; the rest are for
/// those that the client opens.
const MAX_FORWARDED: usize = 960;
/// Pause after a failed accept.
pub(super) const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// The listeners of one connection, closed when this is dropped.
#[derive(Debug, Default)]
pub(super) struct RemoteForwards(HashMap<ForwardAddress, Vec<ForwardListener>>);

/// Limits for connections to one client. Each listener accepts one connection beyond them, and the next only
/// after that has its permit.
#[derive(Debug)]
pub(super) struct ForwardLimits {
    opening: Arc<Semaphore>,
    all: Arc<Semaphore>,
}

/// The permits of a connection: one until it ends, one until the client answers.
struct ForwardPermit {
    _whole: OwnedSemaphorePermit,
    opening: OwnedSemaphorePermit,
}

impl Default for ForwardLimits {
    fn default() -> Self {
        Self {
            opening: Arc::new(Semaphore::new(MAX_OPENING)),
            all: Arc::new(Semaphore::new(MAX_FORWARDED)),
        }
    }
}

impl ForwardLimits {
    /// Waits for a permit.
    async fn acquire_permit(&self) -> Option<ForwardPermit> {
        // The semaphores are never closed.
        let whole = Arc::clone(&self.all).acquire_owned().await.ok()?;
        let opening = Arc::clone(&self.opening).acquire_owned().await.ok()?;
        Some(ForwardPermit {
            _whole: whole,
            opening,
        })
    }
}

/// A listening socket.
#[derive(Debug)]
struct ForwardListener {
    task: AbortHandle,
    /// Unix socket to remove with the listener.
    path: Option<PathBuf>,
}

impl Drop for ForwardListener {
    fn drop(&mut self) {
        self.task.abort();
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
        }
    }
}

impl RemoteForwards {
    /// Starts to listen on an address, if the key permits it and the address is free.
    pub(super) fn start_listening(
        &mut self,
        visit: &Arc<ClientConnection>,
        handle: &ServerHandle,
        request: ForwardRequest,
    ) {
        let place = request.address().clone();
        if self.0.len() >= MAX_LISTENERS || self.0.contains_key(&place) {
            return request.refuse();
        }
        let begun = match &place {
            ForwardAddress::Tcpip { address, port } => listen_tcpip(visit, handle, address, *port)
                .map(|(port, listeners)| {
                    let address = address.clone();
                    (ForwardAddress::Tcpip { address, port }, port, listeners)
                }),
            ForwardAddress::Streamlocal { path } => listen_streamlocal(visit, handle, path)
                .map(|listener| (place.clone(), 0, vec![listener])),
        };
        match begun {
            Ok((place, port, listeners)) => {
                self.0.insert(place, listeners);
                request.grant(port);
            }
            Err(why) => {
                debug!("{}: cannot listen on {place:?}: {why}", visit.from);
                request.refuse();
            }
        }
    }

    /// Stops to listen on an address.
    pub(super) fn stop_listening(&mut self, request: ForwardRequest) {
        match self.0.remove(request.address()) {
            Some(_) => request.grant(0),
            None => request.refuse(),
        }
    }
}

/// Returns the error for an address that the key does not permit.
fn permission_error() -> io::Error {
    io::Error::new(
        io::ErrorKind::PermissionDenied,
        "this key does not allow the listening address",
    )
}

/// Returns the addresses to listen on for a client's request: only loopback, unless `gateway` allows others.
fn listen_addresses(address: &str, port: u16, gateway: bool) -> io::Result<Vec<SocketAddr>> {
    let both = |v4: Ipv4Addr, v6: Ipv6Addr| vec![(v4, port).into(), (v6, port).into()];
    let loopback = || both(Ipv4Addr::LOCALHOST, Ipv6Addr::LOCALHOST);
    if !gateway || address == "localhost" {
        return Ok(loopback());
    }
    match address {
        "" | "*" => Ok(vec![(Ipv6Addr::UNSPECIFIED, port).into()]),
        text => match text.parse::<IpAddr>() {
            Ok(ip) => Ok(vec![(ip, port).into()]),
            Err(_) => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "not an address",
            )),
        },
    }
}

/// A port and its listeners.
type StartedListeners = (u16, Vec<ForwardListener>);

/// Listens on all available addresses of a request, with the same port.
fn listen_tcpip(
    visit: &Arc<ClientConnection>,
    handle: &ServerHandle,
    address: &str,
    port: u16,
) -> io::Result<StartedListeners> {
    if !visit.grant.may_listen(address, port) {
        return Err(permission_error());
    }
    let mut bound = port;
    let mut listeners = Vec::new();
    let mut failed = None;
    for mut addr in listen_addresses(address, port, visit.settings.gateway_ports)? {
        addr.set_port(bound);
        let opened = tcp::listen(addr).or_else(|why| match addr.ip() {
            // The system has no IPv6.
            IpAddr::V6(ip) if ip.is_unspecified() => {
                tcp::listen((Ipv4Addr::UNSPECIFIED, bound).into())
            }
            _ => Err(why),
        });
        match opened {
            Ok(listener) => {
                bound = listener.local_addr()?.port();
                let place = (address.to_owned(), bound);
                let (visit, handle) = (Arc::clone(visit), handle.clone());
                let task =
                    tokio::spawn(accept_tcp(TcpAcceptor::new(listener), visit, handle, place));
                listeners.push(ForwardListener {
                    task: task.abort_handle(),
                    path: None,
                });
            }
            // A port that is in use on one address must not be used on the other.
            Err(why) if why.kind() == io::ErrorKind::AddrInUse => return Err(why),
            Err(why) => failed = Some(why),
        }
    }
    match failed {
        Some(why) if listeners.is_empty() => Err(why),
        _ => Ok((bound, listeners)),
    }
}

/// Accepts TCP connections and forwards each in its own task.
async fn accept_tcp(
    mut listener: TcpAcceptor,
    visit: Arc<ClientConnection>,
    handle: ServerHandle,
    place: (String, u16),
) {
    loop {
        match listener.next().await {
            AcceptOutcome::Connection(socket, from) => {
                let Some(free) = visit.forward_limits.acquire_permit().await else {
                    return;
                };
                let (visit, handle, place) = (Arc::clone(&visit), handle.clone(), place.clone());
                lane::spawn_movable(forward_tcp((socket, from), visit, handle, place, free));
            }
            AcceptOutcome::Exhausted(why) => {
                warn!("{}: cannot accept on a forwarded port: {why}", visit.from);
            }
        }
    }
}

/// Forwards a TCP connection to the client.
async fn forward_tcp(
    (socket, from): (TcpStream, SocketAddr),
    visit: Arc<ClientConnection>,
    handle: ServerHandle,
    (address, port): (String, u16),
    place: ForwardPermit,
) {
    let originator = Originator {
        address: from.ip().to_canonical().to_string(),
        port: from.port().into(),
    };
    let opened = handle.open_forwarded_tcpip(address, port, originator).await;
    drop(place.opening);
    match opened {
        Ok(mut channel) => relay_connection(&visit, &mut Tcp::new(socket), &mut channel).await,
        Err(why) => debug!("{}: cannot open a forwarding channel: {why}", visit.from),
    }
}

/// Listens on a Unix socket that only the user can connect to. Fails if the path exists.
fn listen_streamlocal(
    visit: &Arc<ClientConnection>,
    handle: &ServerHandle,
    path: &[u8],
) -> io::Result<ForwardListener> {
    if !visit.grant.port_forwarding || visit.grant.permit_listen.is_some() {
        return Err(permission_error());
    }
    let file = Path::new(OsStr::from_bytes(path));
    let listener = UnixListener::bind(file)?;
    let path = path.to_vec();
    let kept = Some(file.to_owned());
    fs::set_permissions(file, Permissions::from_mode(0o600))
        .inspect_err(|_| drop(fs::remove_file(file)))?;
    let task = tokio::spawn(accept_streamlocal(
        listener,
        Arc::clone(visit),
        handle.clone(),
        path,
    ));
    Ok(ForwardListener {
        task: task.abort_handle(),
        path: kept,
    })
}

/// Accepts connections to a Unix socket and forwards each in its own task.
async fn accept_streamlocal(
    listener: UnixListener,
    visit: Arc<ClientConnection>,
    handle: ServerHandle,
    path: Vec<u8>,
) {
    loop {
        match listener.accept().await {
            Ok((socket, _)) => {
                let Some(free) = visit.forward_limits.acquire_permit().await else {
                    return;
                };
                let (visit, handle, path) = (Arc::clone(&visit), handle.clone(), path.clone());
                lane::spawn_movable(forward_streamlocal(socket, visit, handle, path, free));
            }
            Err(why) => {
                warn!("{}: cannot accept on a forwarded socket: {why}", visit.from);
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }
}

/// Forwards a connection to a Unix socket to the client.
async fn forward_streamlocal(
    socket: UnixStream,
    visit: Arc<ClientConnection>,
    handle: ServerHandle,
    path: Vec<u8>,
    place: ForwardPermit,
) {
    let opened = handle.open_forwarded_streamlocal(path).await;
    drop(place.opening);
    match opened {
        Ok(mut channel) => {
            relay_connection(&visit, &mut Buffered::from_tokio(socket), &mut channel).await;
        }
        Err(why) => debug!("{}: cannot open a forwarding channel: {why}", visit.from),
    }
}

/// Relays a connection until its end.
async fn relay_connection(visit: &ClientConnection, near: &mut dyn Stream, far: &mut dyn Stream) {
    relay(near, far, &visit.settings.limits, &visit.meter).await;
}
