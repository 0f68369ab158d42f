//! Listening, and forwarding of connections.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use adit_net::accept::{self, AcceptOutcome};
use adit_net::dial::{self, Family};
use adit_net::{limits, tcp};
use adit_stream::{BoxStream, EndReason, RelayTimeouts, Stream, Tcp, TrafficMeter, lane, relay};
use adit_wire::{Host, Target};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tracing::{debug, info, warn};

use super::obfs::obfuscate_client;
use super::{ForwardPlan, ObfsSide, PluginEndpointError};

/// Time limit for lookup and connecting together.
const DIAL_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for the obfuscation's handshake.
const OBFS_TIMEOUT: Duration = Duration::from_secs(10);
/// The host program has stricter timeouts; these only catch connections that it forgets.
const LIMITS: RelayTimeouts = RelayTimeouts::NEVER
    .with_idle(Duration::from_secs(3600))
    .with_half_close_idle(Duration::from_secs(60));
/// Minimum interval between warnings about exhaustion.
const WARN_INTERVAL: Duration = Duration::from_secs(10);

/// Listens, and forwards connections forever.
pub(super) async fn listen_and_forward(guest: ForwardPlan) -> Result<(), PluginEndpointError> {
    let sockets = bind_all(&guest.listen).await?;
    let places = limits::max_connections(limits::nofile_limit());
    let (places, guest) = (Arc::new(Semaphore::new(places)), Arc::new(guest));
    let mut listeners = JoinSet::new();
    for socket in sockets {
        if let Ok(addr) = socket.local_addr() {
            info!(
                "plugin: {} on {addr}, to {}",
                guest.dresser.role(),
                guest.connect
            );
        }
        listeners.spawn(accept_loop(socket, guest.clone(), places.clone()));
    }
    // Dropping the set ends the tasks, so this task must not return earlier.
    while listeners.join_next().await.is_some() {}
    Ok(())
}

/// Binds all addresses. An IPv6 wildcard socket accepts IPv4 too; without IPv6, an IPv4 wildcard is bound.
async fn bind_all(wanted: &[Target]) -> Result<Vec<TcpListener>, PluginEndpointError> {
    let v6_any = |target: &&Target| target.host == Host::Ip(Ipv6Addr::UNSPECIFIED.into());
    let v4_any = |target: &&Target| target.host == Host::Ip(Ipv4Addr::UNSPECIFIED.into());
    let mut sockets = Vec::new();
    let mut covered = false;
    if let Some(target) = wanted.iter().find(v6_any) {
        match listen_on(target).await {
            Ok(socket) => {
                covered = true;
                sockets.push(socket);
            }
            Err(e)
                if e.kind() == io::ErrorKind::AddrInUse || !wanted.iter().any(|t| v4_any(&t)) =>
            {
                return Err(PluginEndpointError::listen_error(target, e));
            }
            Err(e) => debug!("no IPv6: {e}"),
        }
    }
    for target in wanted.iter().filter(|t| !v6_any(t)) {
        if !(covered && v4_any(&target)) {
            let socket = listen_on(target).await;
            sockets.push(socket.map_err(|e| PluginEndpointError::listen_error(target, e))?);
        }
    }
    Ok(sockets)
}

async fn listen_on(target: &Target) -> io::Result<TcpListener> {
    let found = resolve_addrs(target, Family::V4First).await?;
    let first = found.first().ok_or(io::ErrorKind::AddrNotAvailable)?;
    tcp::listen(*first)
}

async fn resolve_addrs(target: &Target, family: Family) -> io::Result<Vec<SocketAddr>> {
    match &target.host {
        Host::Ip(ip) => Ok(vec![SocketAddr::new(*ip, target.port)]),
        Host::Name(name) => dial::resolve(name.as_str(), target.port, family).await,
    }
}

async fn accept_loop(socket: TcpListener, guest: Arc<ForwardPlan>, places: Arc<Semaphore>) {
    let mut socket = accept::TcpAcceptor::new(socket);
    let mut complained: Option<Instant> = None;
    loop {
        let complaint = match socket.next().await {
            AcceptOutcome::Connection(stream, from) => match places.clone().try_acquire_owned() {
                Ok(place) => {
                    let guest = guest.clone();
                    lane::spawn_movable(async move {
                        if let Err(e) = guest.forward_connection(Tcp::new(stream)).await {
                            debug!("connection from {from}: {e}");
                        }
                        drop(place);
                    });
                    continue;
                }
                Err(_) => "too many connections are open: closing new ones".to_owned(),
            },
            AcceptOutcome::Exhausted(e) => format!("cannot accept connections: {e}"),
        };
        if complained.is_none_or(|at| at.elapsed() >= WARN_INTERVAL) {
            complained = Some(Instant::now());
            warn!(
                "{complaint} (reported once in {} s)",
                WARN_INTERVAL.as_secs()
            );
        }
    }
}

impl ForwardPlan {
    /// Forwards an accepted connection to its end. On failure both sides are reset.
    async fn forward_connection(&self, near: Tcp) -> io::Result<()> {
        let (mut near, far) = match &self.dresser {
            ObfsSide::Client(obfs) => {
                let far = async {
                    let far = self.connect_remote().await?;
                    let late = |_| Err(io::ErrorKind::TimedOut.into());
                    timeout(OBFS_TIMEOUT, obfuscate_client(obfs, far))
                        .await
                        .unwrap_or_else(late)
                };
                (Box::new(near) as BoxStream, far.await)
            }
            ObfsSide::Server(obfs) => {
                let near = obfs.accept_obfuscated(near, OBFS_TIMEOUT).await?;
                let far = self.connect_remote().await;
                (near, far.map(|far| Box::new(far) as BoxStream))
            }
        };
        let mut far = match far {
            Ok(far) => far,
            Err(e) => {
                near.abort();
                return Err(e);
            }
        };
        let outcome = relay(&mut *near, &mut *far, &LIMITS, &TrafficMeter::default()).await;
        debug!(
            "{} bytes from the local side, {} from the remote side",
            outcome.up, outcome.down
        );
        match outcome.end {
            EndReason::Finished => Ok(()),
            EndReason::Idle => Err(io::ErrorKind::TimedOut.into()),
            EndReason::Near(e) | EndReason::Far(e) => Err(e),
        }
    }

    async fn connect_remote(&self) -> io::Result<Tcp> {
        let found = resolve_addrs(&self.connect, Family::Any).await?;
        Ok(Tcp::new(dial::connect_first(&found, DIAL_TIMEOUT).await?))
    }
}
