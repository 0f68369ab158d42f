//! `dns://`: queries over UDP and TCP.
//!
//! What needs no lookup is answered where it is received. Lookups have tasks of their own, of which there is a limited
//! number for each client and for all: other clients are answered meanwhile.

use std::collections::HashMap;
use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use adit_config::{DnsListener, ListenerConfig};
use adit_dns::{ClientQuery, QueryError};
use adit_net::tcp::FastOpen;
use adit_net::{BatchUdpSocket, tcp};
use adit_stream::{CountBytes, TrafficMeter};
use adit_wire::{narrow_int, source_network, subslice, unmap_ipv4};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};

use super::open_sockets::{ListenerState, OpenSockets, box_task, listen_error};
use crate::chain_builder::ChainResources;
use crate::dns::{DnsResponder, FirstAnswer};
use crate::handover::SocketSource;
use crate::serve::{AcceptPermit, AcceptSwitch};
use crate::session_table::{ListenerSessions, NewSession, SessionEntry, SessionKind};
use crate::{StartError, listen_port};

/// Maximum number of lookups of one client's datagrams at a time.
const MAX_PER_CLIENT: usize = 64;
/// Maximum number of lookups for datagrams at a time.
const MAX_LOOKUPS: usize = 1024;
/// Maximum number of queries of one connection that are looked up at a time (RFC 7766, section 6.2.1).
const MAX_PIPELINED: usize = 16;
/// Maximum length of a query over TCP, in bytes. It is a question with a few options.
const MAX_QUERY: usize = 4096;
/// Time limit for writing replies to a client that does not read.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause after an error that is not that of a client.
const ERROR_PAUSE: Duration = Duration::from_millis(50);

/// Binds the ports of a DNS listener.
pub(super) async fn open_dns(
    plan: &DnsListener,
    listen: &ListenerConfig,
    common: &ListenerState,
    chains: &ChainResources,
    source: SocketSource<'_>,
) -> Result<OpenSockets, StartError> {
    let fake = match plan.fake_ip.is_empty() {
        true => None,
        false => Some(chains.fake_ips.open(&plan.fake_ip, plan.state.as_deref())?),
    };
    let addr = &listen.addr;
    let tcp = plan.tcp.then_some(FastOpen::Off);
    let failed = |why| listen_error(addr, why);
    let udp = plan.udp.into();
    let sockets = listen_port::bind_port(&addr.host, addr.port, tcp, udp, source).await;
    let sockets = sockets.map_err(failed)?;
    let handles = sockets.handles().map_err(failed)?;
    let transports = match (plan.tcp, plan.udp) {
        (true, true) => "tcp+udp",
        (false, _) => "udp",
        (true, false) => "tcp",
    };
    let buffers = sockets.udp.first().map(BatchUdpSocket::buffer_sizes);
    let responder = Arc::new(DnsResponder::new(common.router.clone(), fake.clone()));
    let (mut tasks, mut switches) = (Vec::new(), Vec::new());
    let mut new_permit = || {
        let (switch, permit) = AcceptSwitch::new();
        switches.push(switch);
        permit
    };
    if let Some(pool) = fake {
        tasks.push(box_task(pool.write_periodically()));
    }
    for socket in sockets.udp {
        let server = DatagramServer {
            socket: Arc::new(socket),
            responder: responder.clone(),
            meter: common.sessions.meter().clone(),
            clients: Arc::default(),
        };
        tasks.push(box_task(server.run(new_permit())));
    }
    if let Some(socket) = sockets.tcp {
        let max = listen.limits.max_connections.unwrap_or(usize::MAX);
        let server = StreamServer {
            responder,
            sessions: common.sessions.clone(),
            idle: listen.limits.idle,
            max,
            max_per_client: max.div_ceil(4),
            clients: Arc::default(),
        };
        tasks.push(box_task(server.run(socket, new_permit())));
    }
    Ok(OpenSockets {
        addr: sockets.addr,
        transports,
        buffers,
        streams: None,
        carrier: None,
        datagrams: Vec::new(),
        channels: None,
        tasks,
        switches,
        exports: handles,
    })
}

/// The numbers of lookups, or of connections, of each client.
type ClientCounts = Mutex<HashMap<IpAddr, usize>>;

/// One lookup or connection of a client, which counts until it is dropped.
struct ClientSlot {
    counts: Arc<ClientCounts>,
    client: IpAddr,
}

impl ClientSlot {
    /// Counts one more, unless the client has `max` already.
    fn reserve(counts: &Arc<ClientCounts>, client: SocketAddr, max: usize) -> Option<Self> {
        let client = source_network(unmap_ipv4(client.ip()));
        let mut each = counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = each.entry(client).or_default();
        if *count >= max {
            return None;
        }
        *count += 1;
        drop(each);
        Some(Self {
            counts: counts.clone(),
            client,
        })
    }
}

impl Drop for ClientSlot {
    fn drop(&mut self) {
        let mut each = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = each.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                each.remove(&self.client);
            }
        }
    }
}

/// Serves the queries of a UDP socket.
struct DatagramServer {
    socket: Arc<BatchUdpSocket>,
    responder: Arc<DnsResponder>,
    meter: Arc<TrafficMeter>,
    clients: Arc<ClientCounts>,
}

impl DatagramServer {
    /// Serves queries until the listener is closed or handed over. Then it sends the replies to those that it has
    /// received.
    async fn run(self, mut permit: AcceptPermit) {
        let mut lookups = JoinSet::new();
        loop {
            let received = poll_fn(|cx| {
                self.socket.poll_recv(cx, &mut |datagram, from| {
                    self.meter.add_up(datagram.len());
                    self.serve(datagram, from, &mut lookups);
                })
            });
            let received = tokio::select! {
                biased;
                () = permit.is_paused_or_closed() => match permit.wait_until_open().await {
                    true => continue,
                    false => break,
                },
                received = received => received,
            };
            // A reply that cannot be sent is lost, like any datagram.
            let _ = self.socket.flush();
            if let Err(why) = received {
                warn!("cannot receive queries: {why}");
                sleep(ERROR_PAUSE).await;
            }
            while lookups.try_join_next().is_some() {}
        }
        drop(permit);
        while lookups.join_next().await.is_some() {}
    }

    fn serve(&self, datagram: &[u8], from: SocketAddr, lookups: &mut JoinSet<()>) {
        let query = match ClientQuery::parse(datagram) {
            Ok(query) => query,
            Err(why) => return self.reply_error(why, from),
        };
        let pending = match self.responder.answer(query, from) {
            FirstAnswer::Reply(reply) => {
                self.meter.add_down(reply.len());
                let _ = self.socket.queue(&reply, from);
                return;
            }
            FirstAnswer::Lookup(pending) => pending,
        };
        while lookups.len() >= MAX_LOOKUPS && lookups.try_join_next().is_some() {}
        let slot = ClientSlot::reserve(&self.clients, from, MAX_PER_CLIENT);
        let (Some(slot), true) = (slot, lookups.len() < MAX_LOOKUPS) else {
            // The client repeats it.
            return debug!(client = %from, "a query is dropped: too many lookups are running");
        };
        let (socket, responder) = (self.socket.clone(), self.responder.clone());
        let meter = self.meter.clone();
        lookups.spawn(async move {
            let reply = responder.look_up(pending).await;
            drop(slot);
            meter.add_down(reply.len());
            let _ = socket.queue(&reply, from);
            let _ = socket.flush();
        });
    }

    fn reply_error(&self, why: QueryError, from: SocketAddr) {
        debug!(client = %from, "{why}");
        if let Some(reply) = why.reply() {
            self.meter.add_down(reply.len());
            let _ = self.socket.queue(&reply, from);
        }
    }
}

/// Serves the connections of a TCP socket.
struct StreamServer {
    responder: Arc<DnsResponder>,
    sessions: Arc<ListenerSessions>,
    idle: Duration,
    max: usize,
    max_per_client: usize,
    clients: Arc<ClientCounts>,
}

impl StreamServer {
    /// Serves connections until the listener is closed or handed over. Then it serves those that it has accepted.
    async fn run(self, socket: TcpListener, mut permit: AcceptPermit) {
        let server = Arc::new(self);
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                biased;
                () = permit.is_paused_or_closed() => match permit.wait_until_open().await {
                    true => continue,
                    false => break,
                },
                accepted = socket.accept() => accepted,
            };
            let (stream, from) = match accepted {
                Ok(accepted) => accepted,
                Err(why) => {
                    warn!("cannot accept queries over TCP: {why}");
                    sleep(ERROR_PAUSE).await;
                    continue;
                }
            };
            while connections.try_join_next().is_some() {}
            let slot = ClientSlot::reserve(&server.clients, from, server.max_per_client);
            let (Some(slot), true) = (slot, connections.len() < server.max) else {
                debug!(client = %from, "closed: too many connections");
                continue;
            };
            tcp::set_stream_options(&stream);
            let server = server.clone();
            connections.spawn(async move {
                let session = server.sessions.open(NewSession {
                    kind: SessionKind::Tcp,
                    user: None,
                    account: None,
                    target: None,
                });
                let serving = pin!(server.serve(stream, from, &session));
                if let Some(Err(why)) = session.run_until_ended(serving).await {
                    debug!(client = %from, "the connection ends: {why}");
                }
                drop(slot);
            });
        }
        drop((socket, permit));
        while connections.join_next().await.is_some() {}
    }

    /// Serves the queries of a connection until it is idle or closed. Replies can be in another order than the queries
    /// (RFC 7766, section 7).
    async fn serve(
        &self,
        stream: TcpStream,
        from: SocketAddr,
        session: &SessionEntry,
    ) -> std::io::Result<()> {
        let (mut reading, mut writing) = stream.into_split();
        let mut buffer: Vec<u8> = Vec::new();
        let mut lookups: JoinSet<Vec<u8>> = JoinSet::new();
        let mut is_open = true;
        loop {
            // Without a free slot for a lookup, the client has to wait.
            while lookups.len() < MAX_PIPELINED
                && let Some(query) = take_message(&mut buffer)?
            {
                session.add_up(query.len());
                let reply = match ClientQuery::parse(&query) {
                    Ok(query) => match self.responder.answer(query.with_stream_limit(), from) {
                        FirstAnswer::Reply(reply) => Some(reply),
                        FirstAnswer::Lookup(pending) => {
                            let responder = self.responder.clone();
                            lookups.spawn(async move { responder.look_up(pending).await });
                            None
                        }
                    },
                    Err(why) => match why.reply() {
                        Some(reply) => Some(reply),
                        None => return Err(std::io::Error::other(why)),
                    },
                };
                if let Some(reply) = reply {
                    self.write_reply(&mut writing, &reply, session).await?;
                }
            }
            if !is_open && lookups.is_empty() {
                return Ok(());
            }
            tokio::select! {
                read = timeout(self.idle, reading.read_buf(&mut buffer)),
                    if is_open && lookups.len() < MAX_PIPELINED =>
                {
                    match read {
                        Ok(read) => is_open = read? > 0,
                        Err(_) => is_open = false,
                    }
                }
                Some(reply) = lookups.join_next() => {
                    let reply = reply.map_err(std::io::Error::other)?;
                    self.write_reply(&mut writing, &reply, session).await?;
                }
            }
        }
    }

    async fn write_reply(
        &self,
        writing: &mut (impl AsyncWriteExt + Unpin),
        reply: &[u8],
        session: &SessionEntry,
    ) -> std::io::Result<()> {
        session.add_down(reply.len());
        let mut message = narrow_int::<u16>(reply.len()).to_be_bytes().to_vec();
        message.extend_from_slice(reply);
        let written = timeout(WRITE_TIMEOUT, writing.write_all(&message)).await;
        written.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()))
    }
}

/// Removes the first message from the bytes of a connection, if it is complete.
fn take_message(buffer: &mut Vec<u8>) -> std::io::Result<Option<Vec<u8>>> {
    let Some(length) = buffer.first_chunk() else {
        return Ok(None);
    };
    let length = usize::from(u16::from_be_bytes(*length));
    if length > MAX_QUERY {
        let why = format!("a query of {length} bytes");
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, why));
    }
    let end = 2 + length;
    if buffer.len() < end {
        return Ok(None);
    }
    let message = subslice(buffer, 2..end).to_vec();
    buffer.drain(..end);
    Ok(Some(message))
}
