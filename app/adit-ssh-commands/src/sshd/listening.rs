//! Places that are listened at for a client (`-R`): what comes is handed on, through the relay.

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

/// Places of one connection.
const MOST: usize = 256;
/// Connections of one client that wait for its answer. Clients hold as many channels open that
/// nobody has answered: adit's of before this bound 128. Further ones wait in the system's queue.
const OPENING: usize = 100;
/// Connections of one client that are handed on at a time; the channels of a connection are 1024,
/// and some are left for what the client opens itself.
const HANDED_ON: usize = 960;
/// How long is waited after an error before the next connection is taken.
pub(super) const PAUSE: Duration = Duration::from_millis(100);

/// The places of one connection; they are given up when this is dropped.
#[derive(Debug, Default)]
pub(super) struct Listening(HashMap<ForwardAddress, Vec<Listener>>);

/// How much a client can take. Each listening socket takes in one connection more, and no further
/// ones before that has its place.
#[derive(Debug)]
pub(super) struct Places {
    opening: Arc<Semaphore>,
    all: Arc<Semaphore>,
}

/// A connection's place until it ends, and until it is answered.
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
    /// Waits for a place.
    async fn free(&self) -> Option<Place> {
        // Nobody closes them.
        let whole = Arc::clone(&self.all).acquire_owned().await.ok()?;
        let opening = Arc::clone(&self.opening).acquire_owned().await.ok()?;
        Some(Place {
            _whole: whole,
            opening,
        })
    }
}

/// One listening socket.
#[derive(Debug)]
struct Listener {
    task: AbortHandle,
    /// What is to be removed with it.
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
    /// Listens there, if the key may and nobody else does.
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

    /// Listens there no more.
    pub(super) fn end(&mut self, request: ForwardRequest) {
        match self.0.remove(request.address()) {
            Some(_) => request.grant(0),
            None => request.refuse(),
        }
    }
}

fn forbidden() -> io::Error {
    io::Error::new(
        io::ErrorKind::PermissionDenied,
        "this key does not allow the listening address",
    )
}

/// Where a client's address leads: loopback alone, unless other machines may come.
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

type Begun = (u16, Vec<Listener>);

/// Listens at all addresses that can be had; the port is the same on all.
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
            // A system without IPv6.
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
            // A port that is another's on one address is not ours on the other.
            Err(why) if why.kind() == io::ErrorKind::AddrInUse => return Err(why),
            Err(why) => failed = Some(why),
        }
    }
    match failed {
        Some(why) if listeners.is_empty() => Err(why),
        _ => Ok((bound, listeners)),
    }
}

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

/// Listens at a socket that the user alone can connect to. What is there already is not touched.
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

async fn carry(visit: &Visit, near: &mut dyn Stream, far: &mut dyn Stream) {
    relay(near, far, &visit.settings.limits, &visit.meter).await;
}
