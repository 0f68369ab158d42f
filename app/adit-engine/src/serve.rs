//! Serving a connection, from accepting to the relay. `connection_limiter` bounds the connections;
//! requests for anything but streams are in `udp_and_bind`; open sessions are in `open_session`.

mod accept_switch;
mod busy_timer;
mod connection_limiter;
mod explained_stream;
mod handler_slot;
mod login_table;
mod open_session;
mod opening_client;
mod proxy_header;
mod sniffing;
mod udp_and_bind;
mod unsettled;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use adit_shadowsocks::uot;
use adit_stream::{BoxStream, CountBytes, RelayTimeouts, Stream, TrafficMeter, fill_to, lane};
use adit_wire::{Host, ProtocolError};
use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep, timeout};
use tracing::{Instrument, debug, warn};

use crate::acceptor::{
    InboundRequest, PendingRejection, PendingRequest, RequestAcceptor, RequestStream,
};
use crate::error::{AcceptError, DialError};
use crate::handshake_limiter::{ConnectionSource, HandshakeLimiter, HandshakeSlot};
use crate::loop_detection;
use crate::reject_cause::RejectCause;
use crate::router::Router;
use crate::session_span::{dial_span, record_refusal, run_step, session_span};
use crate::session_table::{ListenerSessions, NewSession, SessionKind};
use crate::stage_meter::StageMeter;
use crate::udp::{AssociationTtl, ListenerQuota};
use crate::user_account::{DualCounter, UserAccount, client_lookup_owner, run_until_ended};
use crate::user_registry::{SessionPermit, UserRefusal};
use crate::{ConnectionAddrs, Request, RequestContext};

pub(crate) use accept_switch::{AcceptPermit, AcceptSwitch};
pub use connection_limiter::ConnectionLimiter;
pub(crate) use connection_limiter::DescriptorPool;
pub(crate) use connection_limiter::accept_loop;
use connection_limiter::{ConnectionPermit, SlotKind};
use explained_stream::ExplainedStream;
pub use handler_slot::HandlerSlot;
pub(crate) use login_table::LoginTable;
use open_session::{
    FirstByteClock, OpenSession, ReusableConnection, SessionEnds, SessionInfo, SessionUser,
};
use opening_client::OpeningClient;

/// Number of checks of a full listener for a freed slot, within 1 s.
const SLOT_CHECKS: u32 = 1000;

/// Everything that one listener needs to serve its connections.
pub struct ConnectionHandler {
    /// Reads requests.
    pub acceptor: Box<dyn RequestAcceptor>,
    /// Chooses the connector.
    pub router: Arc<Router>,
    /// Timeouts of relayed sessions.
    pub limits: RelayTimeouts,
    /// Counters of the listener.
    pub meter: Arc<TrafficMeter>,
    /// Its open sessions.
    pub(crate) sessions: Arc<ListenerSessions>,
    /// Measures the stages of connections.
    pub(crate) stages: Arc<StageMeter>,
    /// Timeouts of associations.
    pub ttl: AssociationTtl,
    /// Options of UDP ASSOCIATE.
    pub associate: UdpAssociateOptions,
    /// Limits on unauthenticated peers.
    pub(crate) guard: Option<Arc<HandshakeLimiter>>,
    /// True if sources are distinguished by address, which is useless if all are on this machine.
    pub(crate) limits_sources: bool,
    /// Time limit for the PROXY header, if one is required.
    pub(crate) proxy_header_timeout: Option<Duration>,
    /// Time to wait for a first payload, instead of that of the hop.
    pub first_wait: Option<Duration>,
    /// True if UDP over TCP may be requested.
    pub over_tcp: bool,
    /// True if rules see the name in a client's first bytes when it requests an address.
    pub sniffs_names: bool,
    /// Counts the open connections of the listener, and limits them.
    pub connection_limiter: Arc<ConnectionLimiter>,
    /// Counts the associations of the listener, and limits them.
    pub udp_quota: Arc<ListenerQuota>,
    /// The accounts of users with passwords.
    pub(crate) logins: Arc<LoginTable>,
    /// Closed when the listener has ended.
    pub(crate) listener_ended: Option<watch::Receiver<()>>,
}

/// Options of UDP ASSOCIATE.
#[derive(Debug, Clone, Copy, Default)]
pub struct UdpAssociateOptions {
    /// The address reported to clients, if the local one is not reachable for them.
    pub advertise: Option<IpAddr>,
    /// True if fragments are reassembled.
    pub reassemble: bool,
}

/// The client whose datagrams a stream carries.
struct DatagramClient<'a> {
    account: Option<&'a Arc<UserAccount>>,
    /// Name of the user, for rules.
    user: Option<String>,
    peer: ConnectionAddrs,
    /// The ID of the session.
    session: u64,
}

impl ConnectionHandler {
    /// Serves a stream of a connection that has many in a task of its own, if the limits allow it.
    #[cfg(feature = "kcp")]
    pub(crate) fn try_serve(self: &Arc<Self>, io: BoxStream, peer: ConnectionAddrs) -> bool {
        let ticket = self.connection_limiter.try_acquire(SlotKind::Stream);
        let admitted = ticket.is_some();
        match ticket {
            Some(ticket) => self.spawn_connection(ticket, io, peer),
            None => self.stages.count_reject(RejectCause::Exhausted),
        }
        admitted
    }

    /// Does the same; at the limit, evicts the oldest unauthenticated peer and waits for its slot.
    pub(crate) async fn serve_or_wait(
        self: &Arc<Self>,
        io: BoxStream,
        peer: ConnectionAddrs,
    ) -> bool {
        let Some(ticket) = self.wait_for_slot().await else {
            self.stages.count_reject(RejectCause::Exhausted);
            return false;
        };
        self.spawn_connection(ticket, io, peer);
        true
    }

    fn spawn_connection(
        self: &Arc<Self>,
        ticket: ConnectionPermit,
        io: BoxStream,
        peer: ConnectionAddrs,
    ) {
        // Assigned here, so that slots are as old as their connections, whenever their tasks start.
        let place = self.slot_for_peer(peer);
        lane::spawn_movable(self.run_session(
            self.clone().accept_connection(io, peer, place),
            Some(ticket),
        ));
    }

    async fn wait_for_slot(&self) -> Option<ConnectionPermit> {
        if let Some(ticket) = self.connection_limiter.try_acquire(SlotKind::Connection) {
            return Some(ticket);
        }
        let guard = self.guard.as_ref()?;
        for look in 0..SLOT_CHECKS {
            // On a busy machine evicted connections take a while to end, and others take their slots.
            if look % 8 == 0 && !guard.evict_oldest() {
                return None;
            }
            if look < 4 {
                yield_now().await;
            } else {
                sleep(Duration::from_millis(1)).await;
            }
            if let Some(ticket) = self.connection_limiter.try_acquire(SlotKind::Connection) {
                return Some(ticket);
            }
        }
        None
    }

    /// Serves one connection until it is closed.
    pub fn serve_connection(
        self: &Arc<Self>,
        io: BoxStream,
        peer: ConnectionAddrs,
    ) -> impl Future<Output = ()> + Send + use<> {
        self.run_session(
            self.clone()
                .accept_connection(io, peer, self.slot_for_peer(peer)),
            None,
        )
    }

    /// Runs a session, from `opening` to its end.
    ///
    /// Most sessions are long, and opening one takes much more memory than running it: that memory is freed
    /// before the session runs.
    fn run_session<O>(
        self: &Arc<Self>,
        opening: O,
        ticket: Option<ConnectionPermit>,
    ) -> impl Future<Output = ()> + Send + use<O>
    where
        O: Future<Output = Option<OpenSession>> + Send,
    {
        let (worker, opening) = (self.clone(), Box::pin(opening));
        async move {
            // Run in place: moving it to another future would double the size of an idle connection.
            let mut session = opening.await;
            while let Some(open) = &mut session {
                match open.span.take() {
                    None => worker.relay_session(open).await,
                    Some(span) => Box::pin(worker.relay_session(open)).instrument(*span).await,
                }
                let Some(again) = open.again.take() else {
                    break;
                };
                drop(session.take());
                session = Box::pin(worker.clone().open_next_request(again)).await;
            }
            drop(session);
            drop(ticket);
        }
    }

    /// Waits for the next request on a connection whose last exchange has finished, and opens its stream.
    async fn open_next_request(
        self: Arc<Self>,
        again: Box<ReusableConnection>,
    ) -> Option<OpenSession> {
        let ReusableConnection {
            requests,
            peer,
            rounds,
        } = *again;
        let pending = tokio::select! {
            () = wait_for_listener_end(self.listener_ended.clone()) => return None,
            pending = requests.next_request() => pending?,
        };
        self.open_stream(pending, SessionKind::Tcp, peer, rounds)
            .await
    }

    /// Does everything up to an open session. Requests for anything but streams are served here.
    async fn accept_connection(
        self: Arc<Self>,
        mut io: BoxStream,
        mut peer: ConnectionAddrs,
        place: Option<HandshakeSlot>,
    ) -> Option<OpenSession> {
        let accepted = Instant::now();
        let (mut place, met) = (place?, peer);
        if let Some(patience) = self.proxy_header_timeout {
            let read = proxy_header::read_client_addr(&mut io, peer, patience);
            match place.run_while_held(read).await {
                Ok(None) => {}
                Ok(Some(client)) => {
                    peer.remote = client;
                    place = self.slot_for_source(client.ip().into(), peer)?;
                }
                Err(why) => {
                    self.stages.count_reject(RejectCause::from_error(&why));
                    debug!(proxy = %peer.remote, "no PROXY header: {why}");
                    return None;
                }
            }
        }
        let inbound = self.acceptor.accept_request(io, peer, place.clone()).await;
        let requested = Instant::now();
        match &inbound {
            Err(AcceptError::Login(_)) => place.record_failed_login(),
            Err(AcceptError::AbandonedKeyExchange(_)) => place.record_abandoned_key_exchange(),
            Err(_) | Ok(InboundRequest::Rejected(_)) => {}
            Ok(_) => std::mem::take(&mut place).record_request(),
        }
        match &inbound {
            Err(why) | Ok(InboundRequest::Rejected(PendingRejection { why, .. })) => {
                self.stages.count_reject(RejectCause::from_error(why));
            }
            Ok(_) => self.stages.handshake.record(requested - accepted),
        }
        drop(place);
        // Not earlier: this process records a connection of its own before it sends data over it.
        let rounds = loop_detection::rounds_of(&met);
        match inbound {
            Ok(InboundRequest::Stream(pending)) => {
                return self
                    .open_stream(pending, SessionKind::Tcp, peer, rounds)
                    .await;
            }
            Ok(InboundRequest::Multiplexed(many)) => {
                self.serve_multiplexed(many, peer, rounds).await;
            }
            Ok(InboundRequest::Bind(binding)) => return self.serve_bind(binding, peer).await,
            Ok(InboundRequest::Datagrams(association)) => {
                self.serve_udp_associate(association).await;
            }
            Ok(InboundRequest::UdpOverTcp(carried)) => {
                self.serve_carried_datagrams(carried, peer).await;
            }
            Ok(InboundRequest::Answered) => debug!(client = %peer.remote, "served"),
            Ok(InboundRequest::Rejected(rejection)) => {
                debug!(client = %peer.remote, "rejected: {}", rejection.why);
                rejection.apply_policy().await;
            }
            Err(why) => debug!(client = %peer.remote, "no request: {why}"),
        }
        None
    }

    /// Returns a slot for a connection; `None` if its source is refused.
    fn slot_for_peer(&self, peer: ConnectionAddrs) -> Option<HandshakeSlot> {
        let source = if self.limits_sources {
            peer.remote.ip().into()
        } else {
            ConnectionSource::Unknown
        };
        self.slot_for_source(source, peer)
    }

    fn slot_for_source(
        &self,
        source: ConnectionSource,
        peer: ConnectionAddrs,
    ) -> Option<HandshakeSlot> {
        let Some(guard) = &self.guard else {
            return Some(HandshakeSlot::default());
        };
        let place = guard.take_slot(source);
        if place.is_none() {
            self.stages.count_reject(RejectCause::Blocked);
            debug!(client = %peer.remote, "refused: too many failed logins");
        }
        place
    }

    /// Serves the requests of one connection with a login, until its user is removed or their limits do not allow it.
    async fn serve_multiplexed(
        self: &Arc<Self>,
        mut many: Box<dyn RequestStream>,
        peer: ConnectionAddrs,
        rounds: u8,
    ) {
        let account = many.user().and_then(|user| self.logins.account_of(user));
        let Some(account) = account else {
            return self.serve_streams(&mut *many, peer, rounds).await;
        };
        let why = match account.admit_connection(peer.remote.ip()) {
            Ok(permit) => {
                let permit = permit.as_ref();
                let streams = self.serve_streams(&mut *many, peer, rounds);
                match account.run_until_ended(permit, streams).await {
                    Some(()) => return,
                    None => account.end_text(permit),
                }
            }
            Err(why) => {
                self.stages.count_reject(RejectCause::from_refusal(why));
                why.text()
            }
        };
        debug!(client = %peer.remote, "closed: {why}");
        many.end_connection(why);
    }

    /// Serves the requests of one connection, each stream in a task of its own, until the client closes it.
    /// When the listener ends, open streams continue and no new ones start.
    async fn serve_streams(
        self: &Arc<Self>,
        many: &mut dyn RequestStream,
        peer: ConnectionAddrs,
        rounds: u8,
    ) {
        loop {
            let pending = tokio::select! {
                () = wait_for_listener_end(self.listener_ended.clone()) => break,
                next = many.next_request() => match next {
                    Some(pending) => pending,
                    None => break,
                },
            };
            if let Some(ticket) = self.connection_limiter.try_acquire(SlotKind::Stream) {
                let worker = self.clone();
                let opening = async move {
                    worker
                        .open_stream(pending, SessionKind::Ssh, peer, rounds)
                        .await
                };
                lane::spawn_movable(self.run_session(opening, Some(ticket)));
                continue;
            }
            self.stages.count_reject(RejectCause::Exhausted);
            let why = "too many connections are open";
            debug!(client = %peer.remote, "a stream is refused: {why}");
            // The client may have closed the connection already.
            let _ = pending.reply_failure(&DialError::limit_reached(why)).await;
        }
        debug!(client = %peer.remote, "the connection ends");
    }

    /// Returns the account of a request's user.
    fn account_of(&self, request: &Request) -> Option<Arc<UserAccount>> {
        let account = request.account.clone();
        account.or_else(|| self.logins.account_of(request.user.as_deref()?))
    }

    /// Counts a request that another node of the fleet has seen before.
    fn note_replay(&self, peer: ConnectionAddrs) {
        let why = AcceptError::Rejected(ProtocolError::Replayed);
        self.stages.count_reject(RejectCause::from_error(&why));
        debug!(client = %peer.remote, "{why}: another node has seen this request");
    }

    /// Waits until other nodes have decided about a request. A replay is rejected, and is no session of its user.
    async fn settle(
        &self,
        mut pending: PendingRequest,
        permit: Option<SessionPermit>,
        peer: ConnectionAddrs,
    ) -> Option<(PendingRequest, Option<SessionPermit>)> {
        if pending.is_settled() || pending.settle().await {
            return Some((pending, permit));
        }
        self.note_replay(peer);
        drop(permit);
        pending.reject().await;
        None
    }

    /// Opens the stream that a client requests, in the span of its session.
    async fn open_stream(
        &self,
        pending: PendingRequest,
        kind: SessionKind,
        peer: ConnectionAddrs,
        rounds: u8,
    ) -> Option<OpenSession> {
        let id = self.sessions.next_id();
        let Some(span) = session_span(id, kind, peer.remote, &self.sessions) else {
            return self.open_session(id, pending, kind, peer, rounds).await;
        };
        let opening = self.open_session(id, pending, kind, peer, rounds);
        let mut open = Box::pin(opening.instrument((*span).clone())).await?;
        open.span = Some(span);
        Some(open)
    }

    /// Counts a session of a client, unless the limits of its user allow no further one.
    fn admit_user(
        &self,
        account: Option<&UserAccount>,
        peer: ConnectionAddrs,
    ) -> Result<Option<SessionPermit>, UserRefusal> {
        let admitted = account.map(|account| account.admit_session(peer.remote.ip()));
        let admitted = admitted.unwrap_or(Ok(None));
        if let Err(why) = &admitted {
            self.stages.count_reject(RejectCause::from_refusal(*why));
            debug!(client = %peer.remote, "refused: {}", why.text());
        }
        admitted
    }

    async fn open_session(
        &self,
        id: u64,
        mut pending: PendingRequest,
        kind: SessionKind,
        peer: ConnectionAddrs,
        rounds: u8,
    ) -> Option<OpenSession> {
        let requested = Instant::now();
        let target = pending.request.target.clone();
        let user = pending.request.user.clone().unwrap_or_default();
        let account = self.account_of(&pending.request);
        let permit = match self.admit_user(account.as_deref(), peer) {
            Ok(permit) => permit,
            Err(why) => {
                record_refusal(why.cause());
                // The client may have closed the connection already.
                let _ = pending.reply_failure(&DialError::refused_user(why)).await;
                return None;
            }
        };
        let asker = client_lookup_owner(account.as_ref(), peer.remote.ip());
        if let Some(version) = uot::requested_version(&target).filter(|_| self.over_tcp) {
            let (pending, permit) = self.settle(pending, permit, peer).await?;
            let client = DatagramClient {
                account: account.as_ref(),
                user: pending.request.user.clone(),
                peer,
                session: id,
            };
            let carried = self.serve_udp_over_tcp(pending, version, client);
            let carried = Box::pin(asker.scope(carried));
            let end = run_until_ended(account.as_deref(), permit.as_ref(), carried).await;
            debug!(client = %peer.remote, user, "UDP over TCP ends: {end:?}");
            return None;
        }
        if rounds > loop_detection::MAX_ROUNDS {
            let why = "the hops lead back to this listener";
            warn!(%target, listener = %peer.local, "refused: {why}");
            // The client is this process.
            let _ = pending.reply_failure(&DialError::denied_by_rule(why)).await;
            return None;
        }
        let stated_user = pending.request.user.take();
        let mut context = RequestContext::stream(peer.remote, stated_user.as_deref());
        let mut first = std::mem::take(&mut pending.request.first_bytes);
        let depends = self.sniffs_names && self.router.depends_on_name(&target, &context);
        let (pending, permit) = match depends {
            // The name is in bytes that belong to the reject policy if the request is a replay.
            true => self.settle(pending, permit, peer).await?,
            false => (pending, permit),
        };
        let (mut client, sniffed) = match depends {
            true => match sniffing::read_name(pending, &mut first).await {
                Ok(read) => read,
                Err(e) => {
                    debug!(client = %peer.remote, user, %target, "the client closed before its first bytes: {e}");
                    return None;
                }
            },
            false => (OpeningClient::Waiting(pending), None),
        };
        if let Some(name) = &sniffed {
            debug!(client = %peer.remote, user, %target, "its first bytes are for {name}");
        }
        context.sniffed = sniffed.as_ref();
        let connector = self.router.select_connector(&target, &context);
        let is_settled = client.is_settled();
        // Other nodes decide while the target is dialled, and first bytes wait for that.
        let ahead: &[u8] = if is_settled { &first } else { &[] };
        let mut dial = connector.connect(&target, ahead);
        // The scope adds a small cost to each poll, and most requests need neither.
        if matches!(target.host, Host::Name(_)) {
            dial = Box::pin(asker.scope(dial));
        }
        if rounds > 0 {
            dial = Box::pin(loop_detection::with_rounds(rounds, dial));
        }
        let span = dial_span();
        if !span.is_disabled() {
            dial = Box::pin(run_step(span, dial));
        }
        if !is_settled {
            match unsettled::settle_and_dial(dial, &mut client, &first).await {
                Some(settled) => dial = settled,
                None => {
                    self.note_replay(peer);
                    drop(permit);
                    client.reject().await;
                    return None;
                }
            }
        }
        let dialled = tokio::select! {
            dialled = dial => dialled.inspect(|_| {
                // These were sent ahead of the relay, which counts the rest.
                let both = DualCounter { meter: &self.meter, account: account.as_ref() };
                both.add_up(first.len());
            }),
            why = client.wait_for_close() => {
                debug!(client = %peer.remote, user, %target, "the client closed before the connection was open: {why}");
                return None;
            }
        };
        let mut far = match dialled {
            Ok(far) => {
                self.stages.dial.record(requested.elapsed());
                far
            }
            Err(why) => {
                self.stages.count_dial_failure(why.cause);
                record_refusal(why.cause);
                debug!(client = %peer.remote, user, %target, cause = why.cause.label(), "refused: {why}");
                // The client may have closed the connection already.
                let _ = client.reply_failure(&why).await;
                return None;
            }
        };
        let again = client.further_requests();
        let late_failure = client.late_failure();
        let bound = match client.reveals_bound_addr() {
            true => far.visible_addr(),
            false => None,
        };
        let mut near = match client.reply_success(bound).await {
            Ok(near) => near,
            Err(e) => {
                debug!(client = %peer.remote, "the client closed the connection: {e}");
                return None;
            }
        };
        debug!(client = %peer.remote, user, %target, "open");
        let first_wait = self.first_wait.unwrap_or(far.first_wait);
        if !first_wait.is_zero() && far.io.owes_head() {
            // The header is sent now, with or without a payload.
            let _ = timeout(first_wait, fill_to(&mut near, 1)).await;
        }
        let far_io: BoxStream = match late_failure {
            Some(reply) => Box::new(ExplainedStream::new(far.io, reply, far.watch.as_ref())),
            None => far.io,
        };
        let entry = self.sessions.open_with_id(
            id,
            NewSession {
                kind,
                user: Some(&user),
                account: account.as_ref(),
                target: Some(&target),
            },
        );
        entry.record_up(first.len());
        Some(OpenSession {
            near,
            far: far_io,
            watch: far.watch,
            again: again.map(|requests| {
                let connection = ReusableConnection {
                    requests,
                    peer,
                    rounds,
                };
                Box::new(connection)
            }),
            span: None,
            about: Box::new(SessionInfo {
                user: SessionUser::of(account, permit),
                entry,
                ends: SessionEnds::for_log(peer.remote, target),
                first_byte: FirstByteClock::of_request(requested),
                _chain: connector.clone(),
            }),
        })
    }
}

/// Waits until the listener has ended.
async fn wait_for_listener_end(over: Option<watch::Receiver<()>>) {
    match over {
        Some(mut over) => while over.changed().await.is_ok() {},
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The budget of an idle connection is 3 KiB; two sockets and the allocator use two thirds of it.
    #[test]
    fn a_session_is_small_however_it_was_opened() {
        fn size_of_future<F>(
            _: impl Fn(&Arc<ConnectionHandler>, BoxStream, ConnectionAddrs) -> F,
        ) -> usize {
            size_of::<F>()
        }
        let size = size_of_future(|worker, io, peer| worker.serve_connection(io, peer));
        assert!(size <= 1152, "{size} bytes");
    }
}
