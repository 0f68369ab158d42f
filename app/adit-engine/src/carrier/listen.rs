//! Carriers of listeners: KCP sessions yield streams, FEC channels yield datagrams.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use adit_config::{Carried, Listen, ListenAddr, ListenKind};
use adit_kcp::fec::{FecListener, Lane};
use adit_kcp::{Counters, KcpListener, KcpStream};
use adit_net::ambient;
use adit_smux::{End, Manner, Mux};
use adit_stream::{BoxStream, Count, Meter};
use adit_wire::Target;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::{debug, info, warn};

use super::fec::LaneWay;
use super::settings::{self, Streams};
use crate::account::Open;
use crate::listen_port;
use crate::listener::{Common, Opened, listen_error, task};
use crate::serve::Worker;
use crate::udp::{Place, Ttl, exchange_datagrams};
use crate::{Peer, Router, StartError};

/// Pause after an error of a socket.
const PAUSE: Duration = Duration::from_millis(100);

/// Binds the address of a listener for its carrier. Its KCP sessions add to `counters`; `worker` serves
/// streams.
pub(crate) async fn open(
    listen: &Listen,
    carried: &Carried,
    worker: Option<Worker>,
    common: &Common,
    counters: &Arc<Counters>,
) -> Result<Opened, StartError> {
    let failed = |why| listen_error(&listen.addr, why);
    match carried {
        Carried::Kcp(plan) => {
            let terms = settings::streams(plan, counters.clone())?;
            let bind = |addr| KcpListener::bind(addr, terms.kcp.clone());
            let bound = bind_at(&listen.addr, bind, KcpListener::local_addr).await;
            let (addr, listener) = bound.map_err(failed)?;
            debug_assert!(worker.is_some(), "KCP carries streams, which need a worker");
            Ok(Opened {
                addr,
                carries: "kcp",
                buffers: listener.buffers(),
                tasks: worker
                    .map(|worker| sessions(listener, terms.streams, Arc::new(worker), addr))
                    .map(task)
                    .into_iter()
                    .collect(),
            })
        }
        Carried::Fec(plan) => {
            let settings = settings::datagrams(plan)?;
            let target = match &listen.kind {
                ListenKind::Forward(forward) => forward.target.clone(),
                _ => None,
            };
            let target = target.ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
            let bind = |addr| FecListener::bind(addr, settings.clone());
            let bound = bind_at(&listen.addr, bind, FecListener::local_addr).await;
            let (addr, listener) = bound.map_err(failed)?;
            Ok(Opened {
                addr,
                carries: "fec",
                buffers: Some(listener.buffers()),
                tasks: vec![task(lanes(listener, target, common.clone()))],
            })
        }
    }
}

/// Binds a socket at a configured address. Also returns that address with the port that the system
/// chose.
async fn bind_at<L>(
    addr: &ListenAddr,
    bind: impl Fn(SocketAddr) -> io::Result<L>,
    local: impl Fn(&L) -> io::Result<SocketAddr>,
) -> io::Result<(SocketAddr, L)> {
    let open = |at: SocketAddr| {
        let listener = bind(at)?;
        let port = local(&listener)?.port();
        Ok((SocketAddr::new(at.ip(), port), listener))
    };
    listen_port::bind_by(&addr.host, addr.port, open).await
}

/// Serves the streams of all sessions. When it ends, open streams continue, and sessions accept no new
/// ones.
async fn sessions(
    mut listener: KcpListener,
    manner: Streams,
    worker: Arc<Worker>,
    local: SocketAddr,
) {
    let mut open = JoinSet::new();
    while let Ok((session, remote)) = listener.accept().await {
        while open.try_join_next().is_some() {}
        let peer = Peer { remote, local };
        open.spawn(streams(session, manner.clone(), worker.clone(), peer));
    }
}

async fn streams(session: KcpStream, ours: Streams, worker: Arc<Worker>, peer: Peer) {
    let mut below: BoxStream = Box::new(session);
    let smux = if ours.learn() {
        match timeout(ours.smux.config.timeout, Manner::of(&mut below)).await {
            Ok(Ok(manner)) => ours.adapted(manner),
            Ok(Err(why)) => return info!(client = %peer.remote, "{why}"),
            Err(_) => return debug!(client = %peer.remote, "a session without a stream timed out"),
        }
    } else {
        ours.smux
    };
    let (version, compress) = (smux.config.version.number(), smux.compress);
    let mux = match Mux::new(below, smux) {
        Ok(mux) => mux,
        Err(why) => return warn!("cannot run a KCP session: {why}"),
    };
    debug!(
        client = %peer.remote,
        "a session starts, smux {version}, compression {compress}"
    );
    let end = loop {
        match mux.accept().await {
            Ok(stream) => {
                if !worker.admit(Box::new(stream), peer) {
                    debug!(client = %peer.remote, "too many connections: a stream is closed");
                }
            }
            Err(end) => break end,
        }
    };
    match end {
        End::Version { .. } | End::Compression { .. } => info!(client = %peer.remote, "{end}"),
        _ => debug!(client = %peer.remote, "the session ends: {end}"),
    }
}

/// Serves the datagrams of all channels.
async fn lanes(mut listener: FecListener, target: Target, common: Common) {
    let Common {
        router,
        meter,
        share,
        ttl,
    } = common;
    let mut open = JoinSet::new();
    loop {
        while open.try_join_next().is_some() {}
        match listener.accept().await {
            Ok(lane) => {
                // The channel shares the listener's socket: only its outgoing path takes a descriptor.
                let Some(place) = share.enter(None, lane.peer_addr().ip(), 1) else {
                    debug!(client = %lane.peer_addr(), "the limit of FEC channels is reached");
                    continue;
                };
                let (router, meter, target) = (router.clone(), meter.clone(), target.clone());
                open.spawn(async move {
                    let carried = carry(lane, target, router, meter, ttl, &place);
                    if place.during(carried).await.is_none() {
                        debug!("an FEC channel ends: its slot is needed");
                    }
                });
            }
            Err(why) => {
                warn!("cannot receive datagrams: {why}");
                sleep(PAUSE).await;
            }
        }
    }
}

/// Relays the datagrams of one client until it is idle.
async fn carry(
    lane: Lane,
    target: Target,
    router: Arc<Router>,
    meter: Arc<Meter>,
    ttl: Ttl,
    place: &Place,
) {
    let peer = lane.peer_addr();
    let far = match router.pick(&target).associate().await {
        Ok(far) => far,
        Err(why) => {
            return debug!(client = %peer, "cannot open a path for datagrams to {target}: {why}");
        }
    };
    debug!(client = %peer, %target, "an FEC channel starts");
    let near = LaneWay { lane, target };
    let counting = meter.clone();
    let _open = Open::new(&counting);
    let passed = |n: Option<usize>, up| {
        place.touch(ambient::now());
        match n {
            Some(n) if up => meter.add_up(n),
            Some(n) => meter.add_down(n),
            None if up => meter.lose(),
            None => {}
        }
    };
    let end = exchange_datagrams(&near, &*far, ttl, &passed).await;
    debug!(client = %peer, "an FEC channel ends: {end:?}");
}
