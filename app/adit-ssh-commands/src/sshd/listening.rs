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

use super::visit::Visit;

/// Maximum number of forwarded addresses per connection.
const MOST: usize = 256;
/// Maximum number of connections that wait for the client's answer. Clients limit unanswered channels as well
/// (earlier versions of adit to 128). Further connections wait in the listen queue.
const OPENING: usize = 100;
/// Maximum number of forwarded connections of one client. A connection has 1024 channels; the rest are for
/// those that the client opens.
const HANDED_ON: usize = 960;
/// Pause after a failed accept.
pub(super) const PAUSE: Duration = Duration::from_millis(100);

/// The listeners of one connection, closed when this is dropped.
#[derive(Debug, Default)]
pub(super) struct Listening(HashMap<ForwardAddress, Vec<Listener>>);

/// Limits for connections to one client. Each listener accepts one connection beyond them, and the next only
/// after that has its permit.
#[derive(Debug)]
pub(super) struct Places {
    opening: Arc<Semaphore>,
    all: Arc<Semaphore>,
}

/// The permits of a connection: one until it ends, one until the client answers.
struct Place {
    _whole: OwnedSemaphorePermit,
    opening: OwnedSemaphorePermit,
}

impl Default for Places {
    fn default() -> Self {
        Self {
            opening: Arc::new(Semaphore::new(OPENING)),
            all: Arc::new(Semaphore::new(HANDED_ON)),
        }
    }
}

impl Places {
    /// Waits for a permit.
    async fn free(&self) -> Option<Place> {
        // The semaphores are never closed.
        let whole = Arc::clone(&self.all).acquire_owned().await.ok()?;
        let opening = Arc::clone(&self.opening).acquire_owned().await.ok()?;
        Some(Place {
            _whole: whole,
            opening,
        })
    }
}

/// A listening socket.
#[derive(Debug)]
struct Listener {
    task: AbortHandle,
    /// Unix socket to remove with the listener.
    path: Option<PathBuf>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
        }
    }
}

impl Listening {
    /// Starts to listen on an address, if the key permits it and the address is free.
    pub(super) fn begin(
        &mut self,
        visit: &Arc<Visit>,
        handle: &ServerHandle,
        request: ForwardRequest,
    ) {
        let place = request.address().clone();
        if self.0.len() >= MOST || self.0.contains_key(&place) {
            return request.refuse();
        }
        let begun = match &place {
            ForwardAddress::Tcpip { address, port } => begin_tcpip(visit, handle, address, *port)
                .map(|(port, listeners)| {
                    let address = address.clone();
                    (ForwardAddress::Tcpip { address, port }, port, listeners)
                }),
            ForwardAddress::Streamlocal { path } => begin_streamlocal(visit, handle, path)
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
    pub(super) fn end(&mut self, request: ForwardRequest) {
        match self.0.remove(request.address()) {
            Some(_) => request.grant(0),
            None => request.refuse(),
        }
    }
}

/// Returns the error for an address that the key does not permit.
fn forbidden() -> io::Error {
    io::Error::new(
        io::ErrorKind::PermissionDenied,
        "this key does not allow the listening address",
    )
}

/// Returns the addresses to listen on for a client's request: only loopback, unless `gateway` allows others.
fn addresses(address: &str, port: u16, gateway: bool) -> io::Result<Vec<SocketAddr>> {
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
type Begun = (u16, Vec<Listener>);

/// Listens on all available addresses of a request, with the same port.
fn begin_tcpip(
    visit: &Arc<Visit>,
    handle: &ServerHandle,
    address: &str,
    port: u16,
) -> io::Result<Begun> {
    if !visit.grant.may_listen(address, port) {
        return Err(forbidden());
    }
    let mut bound = port;
    let mut listeners = Vec::new();
    let mut failed = None;
    for mut addr in addresses(address, port, visit.settings.gateway_ports)? {
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
                let task = tokio::spawn(accept(TcpAcceptor::new(listener), visit, handle, place));
                listeners.push(Listener {
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
async fn accept(
    mut listener: TcpAcceptor,
    visit: Arc<Visit>,
    handle: ServerHandle,
    place: (String, u16),
) {
    loop {
        match listener.next().await {
            AcceptOutcome::Connection(socket, from) => {
                let Some(free) = visit.places.free().await else {
                    return;
                };
                let (visit, handle, place) = (Arc::clone(&visit), handle.clone(), place.clone());
                lane::spawn_movable(hand_on_tcp((socket, from), visit, handle, place, free));
            }
            AcceptOutcome::Exhausted(why) => {
                warn!("{}: cannot accept on a forwarded port: {why}", visit.from)
            }
        }
    }
}

/// Forwards a TCP connection to the client.
async fn hand_on_tcp(
    (socket, from): (TcpStream, SocketAddr),
    visit: Arc<Visit>,
    handle: ServerHandle,
    (address, port): (String, u16),
    place: Place,
) {
    let originator = Originator {
        address: from.ip().to_canonical().to_string(),
        port: from.port().into(),
    };
    let opened = handle.open_forwarded_tcpip(address, port, originator).await;
    drop(place.opening);
    match opened {
        Ok(mut channel) => carry(&visit, &mut Tcp::new(socket), &mut channel).await,
        Err(why) => debug!("{}: cannot open a forwarding channel: {why}", visit.from),
    }
}

/// Listens on a Unix socket that only the user can connect to. Fails if the path exists.
fn begin_streamlocal(
    visit: &Arc<Visit>,
    handle: &ServerHandle,
    path: &[u8],
) -> io::Result<Listener> {
    if !visit.grant.port_forwarding || visit.grant.permit_listen.is_some() {
        return Err(forbidden());
    }
    let file = Path::new(OsStr::from_bytes(path));
    let listener = UnixListener::bind(file)?;
    let path = path.to_vec();
    let kept = Some(file.to_owned());
    fs::set_permissions(file, Permissions::from_mode(0o600))
        .inspect_err(|_| drop(fs::remove_file(file)))?;
    let task = tokio::spawn(accept_local(
        listener,
        Arc::clone(visit),
        handle.clone(),
        path,
    ));
    Ok(Listener {
        task: task.abort_handle(),
        path: kept,
    })
}

/// Accepts connections to a Unix socket and forwards each in its own task.
async fn accept_local(
    listener: UnixListener,
    visit: Arc<Visit>,
    handle: ServerHandle,
    path: Vec<u8>,
) {
    loop {
        match listener.accept().await {
            Ok((socket, _)) => {
                let Some(free) = visit.places.free().await else {
                    return;
                };
                let (visit, handle, path) = (Arc::clone(&visit), handle.clone(), path.clone());
                lane::spawn_movable(hand_on_local(socket, visit, handle, path, free));
            }
            Err(why) => {
                warn!("{}: cannot accept on a forwarded socket: {why}", visit.from);
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Forwards a connection to a Unix socket to the client.
async fn hand_on_local(
    socket: UnixStream,
    visit: Arc<Visit>,
    handle: ServerHandle,
    path: Vec<u8>,
    place: Place,
) {
    let opened = handle.open_forwarded_streamlocal(path).await;
    drop(place.opening);
    match opened {
        Ok(mut channel) => carry(&visit, &mut Buffered::from_tokio(socket), &mut channel).await,
        Err(why) => debug!("{}: cannot open a forwarding channel: {why}", visit.from),
    }
}

/// Relays a connection until its end.
async fn carry(visit: &Visit, near: &mut dyn Stream, far: &mut dyn Stream) {
    relay(near, far, &visit.settings.limits, &visit.meter).await;
}
