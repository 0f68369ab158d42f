//! Carriers of listeners: KCP sessions yield streams, FEC channels yield datagrams.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use adit_config::{CarrierSettings, ListenAddr, ListenerConfig, ListenerKind};
use adit_kcp::fec::{FecChannel, FecListener};
use adit_kcp::{Counters, KcpListener, KcpStream};
use adit_net::{BatchUdpSocket, system};
use adit_smux::{EndReason, Mux, SmuxFormat};
use adit_stream::{BoxStream, CountBytes};
use adit_wire::Target;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::{debug, info, warn};

use super::carrier_control::{CarrierControl, CarrierRequest, CarrierUpdate};
use super::fec::FecPath;
use super::settings::{self, StreamSettings};
use crate::handover::{SharedSocketReply, SocketHandle, SocketKind, SocketSource};
use crate::listen_port;
use crate::listener::{
    ListenerState, OpenSockets, StreamService, StreamTask, box_task, listen_error,
};
use crate::serve::{ConnectionHandler, HandlerSlot};
use crate::session_table::{ListenerSessions, NewSession, SessionKind};
use crate::udp::{AssociationSlot, AssociationTtl, exchange_datagrams};
use crate::{ConnectionAddrs, RequestContext, Router, StartError};

/// Pause after an error of a socket.
const ERROR_PAUSE: Duration = Duration::from_millis(100);

/// Binds the address of a listener for its carrier. Its KCP sessions add to `counters`; `worker` serves
/// streams.
pub(crate) async fn open_carrier(
    listen: &ListenerConfig,
    carried: &CarrierSettings,
    worker: Option<ConnectionHandler>,
    common: &ListenerState,
    counters: &Arc<Counters>,
    source: SocketSource<'_>,
) -> Result<OpenSockets, StartError> {
    let failed = |why| listen_error(&listen.addr, why);
    match carried {
        CarrierSettings::Kcp(plan) => {
            let terms = settings::session_settings(plan, counters.clone())?;
            let invalid = |why| failed(io::Error::new(io::ErrorKind::InvalidInput, why));
            terms.kcp.check().map_err(invalid)?;
            let (addr, socket, handle) = bind_socket(&listen.addr, source).await.map_err(failed)?;
            debug_assert!(worker.is_some(), "KCP carries streams, which need a worker");
            let control = CarrierControl::default();
            Ok(OpenSockets {
                addr,
                transports: "kcp",
                buffers: Some(socket.buffer_sizes()),
                streams: worker.map(|worker| {
                    let slot = HandlerSlot::new(worker, None);
                    let (control, workers) = (control.clone(), slot.clone());
                    let serve = move |socket| match KcpListener::over_udp(socket, terms.kcp) {
                        Ok(listener) => {
                            let sessions =
                                serve_sessions(listener, terms.streams, workers, addr, control);
                            box_task(sessions)
                        }
                        // They were checked before the socket was bound.
                        Err(why) => box_task(async move { warn!("KCP on {addr}: {why}") }),
                    };
                    StreamService {
                        slot,
                        task: StreamTask::OnSocket(Box::new(socket), Box::new(serve)),
                        accepting: None,
                    }
                }),
                carrier: Some(control),
                datagrams: Vec::new(),
                channels: None,
                tasks: Vec::new(),
                switches: Vec::new(),
                exports: vec![handle],
            })
        }
        CarrierSettings::Fec(plan) => {
            let settings = settings::fec_settings(plan)?;
            let target = match &listen.kind {
                ListenerKind::Forward(forward) => forward.target.clone(),
                _ => None,
            };
            let target = target.ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
            if settings.max_datagram().is_none() {
                let why = "the MTU is too small";
                return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, why)));
            }
            let (addr, socket, handle) = bind_socket(&listen.addr, source).await.map_err(failed)?;
            let buffers = socket.buffer_sizes();
            let control = CarrierControl::default();
            let (common, requests) = (common.clone(), control.clone());
            let serve = move |socket| match FecListener::over_udp(socket, settings) {
                Ok(listener) => box_task(serve_channels(listener, target, common, requests)),
                // They were checked before the socket was bound.
                Err(why) => box_task(async move { warn!("FEC on {addr}: {why}") }),
            };
            Ok(OpenSockets {
                addr,
                transports: "fec",
                buffers: Some(buffers),
                streams: None,
                carrier: Some(control),
                datagrams: Vec::new(),
                channels: Some(StreamTask::OnSocket(Box::new(socket), Box::new(serve))),
                tasks: Vec::new(),
                switches: Vec::new(),
                exports: vec![handle],
            })
        }
    }
}

/// Binds a socket at a configured address, or continues that of `source`. Also returns the address with the port that the
/// system chose, and a handle for a successor.
async fn bind_socket(
    addr: &ListenAddr,
    source: SocketSource<'_>,
) -> io::Result<(SocketAddr, BatchUdpSocket, SocketHandle)> {
    let open = |at: SocketAddr| {
        let socket = match source.take_udp(SocketKind::Udp, at, 1)?.pop() {
            Some(socket) => BatchUdpSocket::from_std(socket)?,
            None => BatchUdpSocket::bind(at)?,
        };
        let at = SocketAddr::new(at.ip(), socket.local_addr()?.port());
        let handle = SocketHandle::of(SocketKind::Udp, at, &socket)?;
        Ok((at, socket, handle))
    };
    listen_port::bind_port_with(&addr.host, addr.port, open).await
}

/// Serves the streams of all sessions. When it ends, open streams continue, and sessions accept no new
/// ones.
async fn serve_sessions(
    mut listener: KcpListener,
    mut manner: StreamSettings,
    workers: HandlerSlot,
    local: SocketAddr,
    control: CarrierControl,
) {
    let mut open = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            request = control.next_request() => {
                let CarrierUpdate { settings, ends_sessions } = match request {
                    CarrierRequest::Update(update) => *update,
                    CarrierRequest::HandOver(reply) => {
                        hand_over(&listener, reply).await;
                        continue;
                    }
                };
                let changed = match ends_sessions {
                    true => listener.replace_settings(settings.kcp),
                    false => listener.update_settings(settings.kcp),
                };
                if let Err(why) = changed {
                    // They were checked when the change was prepared.
                    warn!("the settings of KCP on {local} stay the same: {why}");
                }
                manner = settings.streams;
                continue;
            }
            accepted = listener.accept() => accepted,
        };
        let Ok((session, remote)) = accepted else {
            break;
        };
        while open.try_join_next().is_some() {}
        let peer = ConnectionAddrs { remote, local };
        let counted = control.count_session();
        let streams = serve_streams(session, manner.clone(), workers.clone(), peer);
        open.spawn(async move {
            streams.await;
            drop(counted);
        });
    }
}

/// Hands the socket over to another process. If that fails, the listener stays as it is.
async fn hand_over(listener: &KcpListener, reply: SharedSocketReply) {
    #[cfg(target_os = "linux")]
    let handed_over = listener.hand_over().await;
    #[cfg(not(target_os = "linux"))]
    let handed_over = {
        let _ = listener;
        Err(io::ErrorKind::Unsupported.into())
    };
    // If the recipient is gone, the listener accepts sessions again.
    let _ = reply.send(handed_over);
}

async fn serve_streams(
    session: KcpStream,
    ours: StreamSettings,
    workers: HandlerSlot,
    peer: ConnectionAddrs,
) {
    let mut below: BoxStream = Box::new(session);
    let smux = if ours.may_adapt() {
        match timeout(ours.smux.config.timeout, SmuxFormat::detect(&mut below)).await {
            Ok(Ok(manner)) => ours.adapted_to(manner),
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
                if !workers.current().try_serve(Box::new(stream), peer) {
                    debug!(client = %peer.remote, "too many connections: a stream is closed");
                }
            }
            Err(end) => break end,
        }
    };
    match end {
        EndReason::Version { .. } | EndReason::Compression { .. } => {
            info!(client = %peer.remote, "{end}");
        }
        _ => debug!(client = %peer.remote, "the session ends: {end}"),
    }
}

/// Serves the datagrams of all channels.
async fn serve_channels(
    mut listener: FecListener,
    target: Target,
    common: ListenerState,
    control: CarrierControl,
) {
    let ListenerState {
        router,
        sessions,
        share,
        ttl,
    } = common;
    let mut open = JoinSet::new();
    loop {
        while open.try_join_next().is_some() {}
        let accepted = tokio::select! {
            request = control.next_request() => {
                // The settings of FEC do not change.
                if let CarrierRequest::HandOver(reply) = request {
                    #[cfg(target_os = "linux")]
                    let handed_over = listener.hand_over();
                    #[cfg(not(target_os = "linux"))]
                    let handed_over = Err(io::ErrorKind::Unsupported.into());
                    // If the recipient is gone, the listener accepts channels again.
                    let _ = reply.send(handed_over);
                }
                continue;
            }
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok(lane) => {
                // The channel shares the listener's socket: only its outgoing path takes a descriptor.
                let Some(place) = share.reserve_slot(None, lane.peer_addr().ip(), 1) else {
                    debug!(client = %lane.peer_addr(), "the limit of FEC channels is reached");
                    continue;
                };
                let (router, target) = (router.clone(), target.clone());
                let sessions = sessions.clone();
                open.spawn(async move {
                    let carried = relay_channel(lane, target, router, sessions, ttl, &place);
                    if place.run_until_evicted(carried).await.is_none() {
                        debug!("an FEC channel ends: its slot is needed");
                    }
                });
            }
            Err(why) => {
                warn!("cannot receive datagrams: {why}");
                sleep(ERROR_PAUSE).await;
            }
        }
    }
}

/// Relays the datagrams of one client until it is idle.
async fn relay_channel(
    lane: FecChannel,
    target: Target,
    router: Arc<Router>,
    sessions: Arc<ListenerSessions>,
    ttl: AssociationTtl,
    place: &AssociationSlot,
) {
    let peer = lane.peer_addr();
    let context = RequestContext::datagrams(peer, None);
    let connector = router.select_connector(&target, &context);
    let far = match connector.open_datagrams().await {
        Ok(far) => far,
        Err(why) => {
            return debug!(client = %peer, "cannot open a path for datagrams to {target}: {why}");
        }
    };
    debug!(client = %peer, %target, "an FEC channel starts");
    let session = sessions.open(NewSession {
        kind: SessionKind::Udp,
        user: None,
        account: None,
        target: Some(&target),
    });
    let near = FecPath { lane, target };
    let passed = |n: Option<usize>, up| {
        place.record_activity(system::monotonic_now());
        match n {
            Some(n) if up => session.add_up(n),
            Some(n) => session.add_down(n),
            None if up => sessions.meter().count_lost(),
            None => {}
        }
    };
    let exchange = pin!(exchange_datagrams(&near, &*far, ttl, &passed));
    let end = session.run_until_ended(exchange).await;
    debug!(client = %peer, "an FEC channel ends: {end:?}");
}
