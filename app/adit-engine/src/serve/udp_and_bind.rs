//! Requests for anything but a stream to a target: UDP over TCP, UDP ASSOCIATE and BIND.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use adit_net::{BatchUdpSocket, system, tcp};
use adit_shadowsocks::uot;
use adit_stream::{BoxStream, CountBytes, Tcp, fill_to};
use adit_wire::{Host, Target};
use tokio::time::{Instant, timeout};
use tracing::debug;

use super::open_session::{FirstByteClock, SessionEnds};
use super::opening_client::MAX_EARLY_BYTES;
use super::{ConnectionHandler, DatagramClient, OpenSession, SessionInfo, SessionUser};
use crate::acceptor::{BindRequest, PendingRequest, UdpAssociateRequest, UdpOverTcpRequest};
use crate::connector::BoundSocket;
use crate::error::{DialError, DialStage};
use crate::session_span::{record_end, record_refusal, run_in_span, session_span};
use crate::session_table::{NewSession, SessionKind};
use crate::udp::{
    AssociationUser, SocksPackets, UdpListener, UdpOverTcp, accept_over_tcp, exchange_datagrams,
};
use crate::user_account::{client_lookup_owner, run_until_ended};
use crate::{ConnectionAddrs, RequestContext};

/// Maximum time that BIND waits for its connection.
const BIND_TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum number of bytes on the control connection of an association before it is closed.
const MAX_CONTROL_BYTES: usize = 4096;

impl ConnectionHandler {
    /// Serves UDP over TCP in the requested stream.
    pub(super) async fn serve_udp_over_tcp(
        &self,
        mut pending: PendingRequest,
        version: uot::Version,
        client: DatagramClient<'_>,
    ) -> std::io::Result<()> {
        let first = std::mem::take(&mut pending.request.first_bytes);
        let near = pending.reply_success(None).await?;
        let deadline = self.ttl.idle;
        let late = |_| std::io::Error::from(std::io::ErrorKind::TimedOut);
        let (near, target) = timeout(deadline, accept_over_tcp(near, first, version))
            .await
            .map_err(late)??;
        self.relay_datagrams(near, target, client).await
    }

    /// Relays the datagrams of a stream; `target` is that of the first one, if known.
    pub(super) async fn relay_datagrams(
        &self,
        near: UdpOverTcp,
        target: Option<Target>,
        client: DatagramClient<'_>,
    ) -> std::io::Result<()> {
        let DatagramClient {
            account,
            user,
            peer,
            session: id,
        } = client;
        let anywhere = Target::from(SocketAddr::from(([0u8; 4], 0)));
        // The stream was counted as a connection, including an outgoing descriptor.
        let place = self.udp_quota.reserve_slot(account, peer.remote.ip(), 0);
        let place = place.ok_or(std::io::ErrorKind::QuotaExceeded)?;
        let context = RequestContext::datagrams(peer.remote, user.as_deref());
        let connector = self
            .router
            .select_connector(target.as_ref().unwrap_or(&anywhere), &context);
        let far = connector
            .open_datagrams()
            .await
            .map_err(std::io::Error::other)?;
        let session = self.sessions.open_with_id(
            id,
            NewSession {
                kind: SessionKind::Udp,
                user: user.as_deref(),
                account,
                target: target.as_ref(),
            },
        );
        debug!(client = %peer.remote, "UDP over TCP is open");
        if let Some(account) = account {
            account.count_udp_session();
        }
        let passes = |n: Option<usize>, up| {
            place.record_activity(system::monotonic_now());
            let passes = n.filter(|n| account.is_none_or(|account| account.pass_datagram(*n, up)));
            match passes {
                Some(n) if up => session.add_up(n),
                Some(n) => session.add_down(n),
                None if up => self.meter.count_lost(),
                None => {}
            }
            passes.is_some()
        };
        let exchange = pin!(exchange_datagrams(&near, &*far, self.ttl, &passes));
        let exchange = session.run_until_ended(exchange);
        let end = place.run_until_evicted(exchange).await;
        record_end(&session, "closed");
        let end = end.ok_or(std::io::ErrorKind::QuotaExceeded)?;
        end.unwrap_or_else(|| Err(std::io::ErrorKind::ConnectionAborted.into()))
    }

    /// Serves a stream that carries datagrams by its own protocol, in the span of its session.
    pub(super) async fn serve_carried_datagrams(
        &self,
        carried: UdpOverTcpRequest,
        peer: ConnectionAddrs,
    ) {
        let account = carried.account;
        let id = self.sessions.next_id();
        let span = session_span(id, SessionKind::Udp, peer.remote, &self.sessions);
        let work = async {
            let permit = self.admit_user(account.as_deref(), peer);
            let permit = match permit {
                Ok(permit) => permit,
                // The protocol has no words for a refusal.
                Err(why) => return record_refusal(why.cause()),
            };
            let asker = client_lookup_owner(account.as_ref(), peer.remote.ip());
            let client = DatagramClient {
                account: account.as_ref(),
                user: account
                    .as_ref()
                    .and_then(|account| account.name().map(str::to_owned)),
                peer,
                session: id,
            };
            let relay = self.relay_datagrams(carried.datagrams, None, client);
            let relay = Box::pin(asker.scope(relay));
            let end = run_until_ended(account.as_deref(), permit.as_ref(), relay).await;
            debug!(client = %peer.remote, "UDP over TCP ends: {end:?}");
        };
        run_in_span(span, work).await;
    }

    /// Waits for the incoming connection, in the span of its session.
    pub(super) async fn serve_bind(
        &self,
        binding: BindRequest,
        peer: ConnectionAddrs,
    ) -> Option<OpenSession> {
        let id = self.sessions.next_id();
        let span = session_span(id, SessionKind::Tcp, peer.remote, &self.sessions);
        let waiting = self.wait_for_bound_peer(id, binding, peer);
        let mut open = run_in_span(span.clone(), waiting).await?;
        open.span = span;
        Some(open)
    }

    async fn wait_for_bound_peer(
        &self,
        id: u64,
        mut binding: BindRequest,
        peer: ConnectionAddrs,
    ) -> Option<OpenSession> {
        let user = binding.user.clone();
        let account = user
            .as_deref()
            .and_then(|user| self.logins.account_of(user));
        let permit = match self.admit_user(account.as_deref(), peer) {
            Ok(permit) => permit,
            Err(why) => {
                record_refusal(why.cause());
                binding.reply_failure(&DialError::refused_user(why)).await;
                return None;
            }
        };
        let context = RequestContext::stream(peer.remote, user.as_deref());
        let connector = self.router.select_connector(&binding.expected, &context);
        let BoundSocket { socket, access } = match connector.listen_for_one(peer.local).await {
            Ok(bound) => bound,
            Err(why) => {
                record_refusal(why.cause);
                binding.reply_failure(&why).await;
                return None;
            }
        };
        let bound = socket.local_addr().ok()?;
        binding.reply_listening(bound).await.ok()?;
        debug!(client = %peer.remote, "BIND waits on {bound}");
        let expected = binding.expected.clone();
        let wanted = |from: SocketAddr| {
            let named = match &expected.host {
                Host::Ip(ip) => ip.is_unspecified() || *ip == adit_wire::unmap_ipv4(from.ip()),
                Host::Name(_) => true,
            };
            named && access.check_addr(from).is_ok()
        };
        let accept = async {
            loop {
                let (stream, from) = socket.accept().await?;
                if wanted(from) {
                    return Ok::<_, std::io::Error>((stream, from));
                }
            }
        };
        let come = tokio::select! {
            come = timeout(BIND_TIMEOUT, accept) => come,
            // Early bytes stay in the buffer and are sent to the peer when it connects.
            gone = wait_for_close(binding.control_stream()) => {
                debug!(client = %peer.remote, "the client abandoned BIND: {gone}");
                return None;
            }
        };
        let (stream, from) = match come {
            Ok(Ok(come)) => come,
            failed => {
                let e = match failed {
                    Ok(Err(e)) => e,
                    _ => std::io::ErrorKind::TimedOut.into(),
                };
                let why = DialError::new(DialStage::Connect, e);
                record_refusal(why.cause);
                binding.reply_failure(&why).await;
                return None;
            }
        };
        tcp::set_stream_options(&stream);
        let target = Target::from(from);
        Some(OpenSession {
            near: binding.reply_accepted(from).await.ok()?,
            far: Box::new(Tcp::new(stream)),
            watch: None,
            again: None,
            span: None,
            about: Box::new(SessionInfo {
                entry: self.sessions.open_with_id(
                    id,
                    NewSession {
                        kind: SessionKind::Tcp,
                        user: user.as_deref(),
                        account: account.as_ref(),
                        target: Some(&target),
                    },
                ),
                user: SessionUser::of(account, permit),
                ends: SessionEnds::for_log(peer.remote, target),
                // The wait for the peer to connect is not that for its answer.
                first_byte: FirstByteClock::of_request(Instant::now()),
                _chain: connector,
            }),
        })
    }

    pub(super) async fn serve_udp_associate(&self, association: UdpAssociateRequest) {
        let peer = association.peer;
        let user = association.user.clone();
        let account = user
            .as_deref()
            .and_then(|user| self.logins.account_of(user));
        let permit = match self.admit_user(account.as_deref(), peer) {
            Ok(permit) => permit,
            Err(why) => {
                let why = DialError::refused_user(why);
                return association.reply_failure(&why).await;
            }
        };
        // The control connection was counted with an outgoing descriptor, used by the local socket. The
        // outgoing socket is one more.
        let Some(place) = self
            .udp_quota
            .reserve_slot(account.as_ref(), peer.remote.ip(), 1)
        else {
            let why = DialError::limit_reached("too many associations are open");
            return association.reply_failure(&why).await;
        };
        let opened = BatchUdpSocket::bind(SocketAddr::new(peer.local.ip(), 0))
            .and_then(|socket| Ok((socket.local_addr()?, socket)));
        let (at, socket) = match opened {
            Ok(opened) => opened,
            Err(e) => {
                return association
                    .reply_failure(&DialError::new(DialStage::Connect, e))
                    .await;
            }
        };
        let shown = SocketAddr::new(
            self.associate.advertise.unwrap_or_else(|| at.ip()),
            at.port(),
        );
        let codec = SocksPackets::new(
            peer.remote.ip(),
            &association.declared,
            self.associate.reassemble,
        );
        let Ok(mut control) = association.reply_success(shown).await else {
            return;
        };
        debug!(client = %peer.remote, "association open on {at}");
        let place = Arc::new(place);
        let listener = UdpListener::for_association(
            Arc::new(socket),
            Box::new(codec),
            self.router.clone(),
            self.sessions.clone(),
            self.ttl,
            place.clone(),
            AssociationUser {
                name: user,
                account: account.clone(),
            },
        );
        let served = async {
            tokio::select! {
                () = listener.run() => {}
                () = discard_until_close(&mut control) => {}
            }
        };
        let permit = permit.as_ref();
        let served = run_until_ended(account.as_deref(), permit, served);
        match place.run_until_evicted(served).await {
            Some(Some(())) => {}
            Some(None) => {
                let account = account.as_ref();
                let why = account.map_or("", |account| account.end_text(permit));
                debug!(client = %peer.remote, "the association ends: {why}");
            }
            None => debug!(client = %peer.remote, "the association's slot is needed"),
        }
        debug!(client = %peer.remote, "association closed");
    }
}

/// Waits until the client closes the connection, and keeps the bytes read.
async fn wait_for_close(io: &mut BoxStream) -> &'static str {
    loop {
        let have = io.filled().len();
        match fill_to(io, have + 1).await {
            Ok(n) if n > have && n < MAX_EARLY_BYTES => {}
            Ok(n) if n > have => return "too much early data",
            _ => return "closed",
        }
    }
}

/// Waits until the control connection of an association is closed, or too much is sent on it.
async fn discard_until_close(io: &mut BoxStream) {
    let mut noise = 0;
    while let Ok(n) = fill_to(io, 1).await {
        noise += n;
        if n == 0 || noise > MAX_CONTROL_BYTES {
            return;
        }
        io.consume(n);
    }
}
