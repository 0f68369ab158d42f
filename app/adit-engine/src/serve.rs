//! Serving a connection, from accepting to the relay. The accept loop is in `gate`; requests for anything
//! but streams are in `udp_and_bind`.

mod gate;
mod proxied;
mod udp_and_bind;

use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use adit_shadowsocks::uot;
use adit_stream::{BoxStream, Count, End, Limits, Meter, Outcome, Stream, fill, lane, relay};
use adit_wire::{Host, Target};
use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};

use crate::Peer;
use crate::acceptor::{Acceptor, Again, Inbound, Many, Pending};
use crate::account::{Account, Both, Open, asker, during};
use crate::circle;
use crate::connector::{Standing, Watch};
use crate::error::{AcceptError, DialError};
use crate::guard::{Guard, Place, Source};
use crate::router::Router;
use crate::udp::{Share, Ttl};

pub(crate) use gate::Descriptors;
use gate::Ticket;
pub use gate::{Gate, accept_loop};

/// Maximum number of bytes that are read from a client before its request is granted.
const EARLY: usize = 16 << 10;
/// Number of checks of a full listener for a freed slot, within 1 s.
const LOOKS: u32 = 1000;
/// Time without an answer after which a keyed hop is reported.
const SILENCE: Duration = Duration::from_secs(6);
/// The same if the client has closed the connection.
const GIVEN_UP: Duration = Duration::from_secs(2);

/// Everything that one listener needs to serve its connections.
pub struct Worker {
    /// Reads requests.
    pub acceptor: Box<dyn Acceptor>,
    /// Chooses the connector.
    pub router: Arc<Router>,
    /// Timeouts of relayed sessions.
    pub limits: Limits,
    /// Counters of the listener.
    pub meter: Arc<Meter>,
    /// Timeouts of associations.
    pub ttl: Ttl,
    /// Options of UDP ASSOCIATE.
    pub associate: Associate,
    /// Limits on unauthenticated peers.
    pub(crate) guard: Option<Arc<Guard>>,
    /// True if sources are distinguished by address, which is useless if all are on this machine.
    pub(crate) sources: bool,
    /// Time limit for the PROXY header, if one is required.
    pub(crate) proxied: Option<Duration>,
    /// Time to wait for a first payload, instead of that of the hop.
    pub first_wait: Option<Duration>,
    /// True if UDP over TCP may be requested.
    pub over_tcp: bool,
    /// Counts the open connections of the listener, and limits them.
    pub gate: Arc<Gate>,
    /// Counts the associations of the listener, and limits them.
    pub share: Arc<Share>,
    /// Closed when the listener has ended.
    pub(crate) over: Option<watch::Receiver<()>>,
}

/// Options of UDP ASSOCIATE.
#[derive(Debug, Clone, Copy, Default)]
pub struct Associate {
    /// The address reported to clients, if the local one is not reachable for them.
    pub advertise: Option<IpAddr>,
    /// True if fragments are reassembled.
    pub reassemble: bool,
}

impl Worker {
    /// Serves a connection in a task of its own, if the limits allow it.
    pub(crate) fn admit(self: &Arc<Self>, io: BoxStream, peer: Peer) -> bool {
        let ticket = self.gate.enter();
        let admitted = ticket.is_some();
        if let Some(ticket) = ticket {
            self.begin(ticket, io, peer);
        }
        admitted
    }

    /// Does the same; at the limit, evicts the oldest unauthenticated peer and waits for its slot.
    pub(crate) async fn admit_soon(self: &Arc<Self>, io: BoxStream, peer: Peer) -> bool {
        let Some(ticket) = self.ticket().await else {
            return false;
        };
        self.begin(ticket, io, peer);
        true
    }

    fn begin(self: &Arc<Self>, ticket: Ticket, io: BoxStream, peer: Peer) {
        // Assigned here, so that slots are as old as their connections, whenever their tasks start.
        let place = self.place(peer);
        lane::spawn(self.session(self.clone().meet(io, peer, place), Some(ticket)));
    }

    async fn ticket(&self) -> Option<Ticket> {
        if let Some(ticket) = self.gate.enter() {
            return Some(ticket);
        }
        let guard = self.guard.as_ref()?;
        for look in 0..LOOKS {
            // On a busy machine evicted connections take a while to end, and others take their slots.
            if look % 8 == 0 && !guard.make_room() {
                return None;
            }
            if look < 4 {
                yield_now().await;
            } else {
                sleep(Duration::from_millis(1)).await;
            }
            if let Some(ticket) = self.gate.enter() {
                return Some(ticket);
            }
        }
        None
    }

    /// Serves one connection until it is closed.
    pub fn serve(
        self: &Arc<Self>,
        io: BoxStream,
        peer: Peer,
    ) -> impl Future<Output = ()> + Send + use<> {
        self.session(self.clone().meet(io, peer, self.place(peer)), None)
    }

    /// Runs a session, from `opening` to its end.
    ///
    /// Most sessions are long, and opening one takes much more memory than running it: that memory is freed
    /// before the session runs.
    fn session<O>(
        self: &Arc<Self>,
        opening: O,
        ticket: Option<Ticket>,
    ) -> impl Future<Output = ()> + Send + use<O>
    where
        O: Future<Output = Option<Session>> + Send,
    {
        let (worker, opening) = (self.clone(), Box::pin(opening));
        async move {
            // Run in place: moving it to another future would double the size of an idle connection.
            let mut session = opening.await;
            while let Some(open) = &mut session {
                worker.pump(open).await;
                let Some(again) = open.again.take() else {
                    break;
                };
                let (peer, rounds) = (open.about.peer, open.about.rounds);
                drop(session.take());
                session = Box::pin(worker.clone().further(again, peer, rounds)).await;
            }
            drop(session);
            drop(ticket);
        }
    }

    /// Waits for the next request on a connection whose last exchange has finished, and opens its stream.
    async fn further(
        self: Arc<Self>,
        again: Box<dyn Again>,
        peer: Peer,
        rounds: u8,
    ) -> Option<Session> {
        let pending = tokio::select! {
            () = ended(self.over.clone()) => return None,
            pending = again.next() => pending?,
        };
        self.open(pending, peer, rounds).await
    }

    /// Does everything up to an open session. Requests for anything but streams are served here.
    async fn meet(
        self: Arc<Self>,
        mut io: BoxStream,
        mut peer: Peer,
        place: Option<Place>,
    ) -> Option<Session> {
        let (mut place, met) = (place?, peer);
        if let Some(patience) = self.proxied {
            let read = proxied::client(&mut io, peer, patience);
            match place.keep(read).await {
                Ok(None) => {}
                Ok(Some(client)) => {
                    peer.remote = client;
                    place = self.place_of(client.ip().into(), peer)?;
                }
                Err(why) => {
                    debug!(proxy = %peer.remote, "no PROXY header: {why}");
                    return None;
                }
            }
        }
        let inbound = self.acceptor.accept(io, peer, place.clone()).await;
        match &inbound {
            Err(AcceptError::Login(_)) => place.failed(),
            Err(AcceptError::Wasted(_)) => place.wasted(),
            Err(_) | Ok(Inbound::Rejected(_)) => {}
            Ok(_) => std::mem::take(&mut place).proved(),
        }
        drop(place);
        // Not earlier: this process records a connection of its own before it sends data over it.
        let rounds = circle::rounds(&met);
        match inbound {
            Ok(Inbound::Stream(pending)) => return self.open(pending, peer, rounds).await,
            Ok(Inbound::Many(many)) => self.streams(many, peer, rounds).await,
            Ok(Inbound::Bind(binding)) => return self.bind(binding, peer).await,
            Ok(Inbound::Datagrams(association)) => self.datagrams(association).await,
            Ok(Inbound::InStream(carried)) => {
                let account = carried.account;
                let asker = asker(account.as_ref(), peer.remote.ip());
                let work = self.carry(carried.datagrams, None, account.as_ref(), peer);
                let work = Box::pin(asker.scope(work));
                let end = during(account.as_deref(), work).await;
                debug!(client = %peer.remote, "UDP over TCP ends: {end:?}");
            }
            Ok(Inbound::Served) => debug!(client = %peer.remote, "served"),
            Ok(Inbound::Rejected(rejection)) => {
                debug!(client = %peer.remote, "rejected: {}", rejection.why);
                rejection.carry_out().await;
            }
            Err(why) => debug!(client = %peer.remote, "no request: {why}"),
        }
        None
    }

    /// Returns a slot for a connection; `None` if its source is refused.
    fn place(&self, peer: Peer) -> Option<Place> {
        let source = if self.sources {
            peer.remote.ip().into()
        } else {
            Source::Unknown
        };
        self.place_of(source, peer)
    }

    fn place_of(&self, source: Source, peer: Peer) -> Option<Place> {
        let Some(guard) = &self.guard else {
            return Some(Place::default());
        };
        let place = guard.enter(source);
        if place.is_none() {
            debug!(client = %peer.remote, "refused: too many failed logins");
        }
        place
    }

    /// Serves the requests of one connection, each stream in a task of its own, until the client closes it.
    /// When the listener ends, open streams continue and no new ones start.
    async fn streams(self: &Arc<Self>, mut many: Box<dyn Many>, peer: Peer, rounds: u8) {
        loop {
            let pending = tokio::select! {
                () = ended(self.over.clone()) => break,
                next = many.next() => match next {
                    Some(pending) => pending,
                    None => break,
                },
            };
            if let Some(ticket) = self.gate.enter() {
                let worker = self.clone();
                let opening = async move { worker.open(pending, peer, rounds).await };
                lane::spawn(self.session(opening, Some(ticket)));
                continue;
            }
            let why = "too many connections are open";
            debug!(client = %peer.remote, "a stream is refused: {why}");
            // The client may have closed the connection already.
            let _ = pending.refuse(&DialError::exhausted(why)).await;
        }
        debug!(client = %peer.remote, "the connection ends");
    }

    /// Opens the stream that a client requests.
    async fn open(&self, mut pending: Pending, peer: Peer, rounds: u8) -> Option<Session> {
        let target = pending.request.target.clone();
        let user = pending.request.user.clone().unwrap_or_default();
        let account = pending.request.account.clone();
        let asker = asker(account.as_ref(), peer.remote.ip());
        if let Some(version) = uot::version(&target).filter(|_| self.over_tcp) {
            let carried = self.over_tcp(pending, version, account.as_ref(), peer);
            let carried = Box::pin(asker.scope(carried));
            let end = during(account.as_deref(), carried).await;
            debug!(client = %peer.remote, user, "UDP over TCP ends: {end:?}");
            return None;
        }
        if rounds > circle::MOST {
            let why = "the hops lead back to this listener";
            warn!(%target, listener = %peer.local, "refused: {why}");
            // The client is this process.
            let _ = pending.refuse(&DialError::denied(why)).await;
            return None;
        }
        let connector = self.router.pick(&target);
        let first = std::mem::take(&mut pending.request.first);
        let mut dial = connector.connect(&target, &first);
        // The scope adds a small cost to each poll, and most requests need neither.
        if matches!(target.host, Host::Name(_)) {
            dial = Box::pin(asker.scope(dial));
        }
        if rounds > 0 {
            dial = Box::pin(circle::scope(rounds, dial));
        }
        let dialled = tokio::select! {
            dialled = dial => dialled.inspect(|_| {
                // These were sent ahead of the relay, which counts the rest.
                let both = Both { meter: &self.meter, account: account.as_ref() };
                both.add_up(first.len());
            }),
            why = left(pending.client()) => {
                debug!(client = %peer.remote, user, %target, "the client closed before the connection was open: {why}");
                return None;
            }
        };
        let mut far = match dialled {
            Ok(far) => far,
            Err(why) => {
                debug!(client = %peer.remote, user, %target, cause = why.cause.label(), "refused: {why}");
                // The client may have closed the connection already.
                let _ = pending.refuse(&why).await;
                return None;
            }
        };
        let again = pending.again();
        let bound = match pending.shows_bound() {
            true => far.bound(),
            false => None,
        };
        let mut near = match pending.proceed(bound).await {
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
            let _ = timeout(first_wait, fill(&mut near, 1)).await;
        }
        Some(Session {
            near,
            far: far.io,
            watch: far.watch,
            standing: far.standing,
            again,
            account,
            about: Box::new(About {
                peer,
                target,
                user,
                first: first.len(),
                rounds,
            }),
        })
    }

    /// Relays the session and watches its keyed hop; ends when the user is removed.
    async fn pump(&self, session: &mut Session) {
        let Session {
            near,
            far,
            watch,
            standing,
            account,
            about,
            ..
        } = session;
        let About {
            peer,
            target,
            user,
            first,
            ..
        } = &**about;
        if let Some(account) = account {
            account.begin_tcp();
        }
        let _open = Open::new(&self.meter);
        let asked = Asked {
            both: Both {
                meter: &self.meter,
                account: account.as_ref(),
            },
            anything: AtomicBool::new(*first > 0),
        };
        let eye = watch.as_ref().map(|watch| Eye {
            watch,
            standing: standing.as_ref(),
        });
        let outcome = {
            let mut relay = pin!(relay(&mut **near, &mut **far, &self.limits, &asked));
            let watched = pin!(watched(eye.as_ref(), &asked, relay.as_mut()));
            during(account.as_deref(), watched).await
        };
        let Some(outcome) = outcome else {
            // A truncated transfer must not look complete.
            near.abort();
            far.abort();
            return debug!(client = %peer.remote, user, %target, "closed: the user was removed");
        };
        if let Some(eye) = &eye {
            eye.judge(&outcome, asked.anything());
        }
        let (up, down, end) = (outcome.up, outcome.down, &outcome.end);
        debug!(client = %peer.remote, user, %target, up, down, "closed: {end:?}");
    }
}

/// The watch on a session's keyed hop, with the health records to update.
struct Eye<'a> {
    watch: &'a Watch,
    standing: Option<&'a Arc<Standing>>,
}

impl Eye<'_> {
    /// Updates the health of the server: healthy if it is authenticated, otherwise suspect if there is a
    /// complaint.
    fn look(&self, complaint: Option<&str>) {
        let Watch {
            health,
            progress,
            since,
        } = self.watch;
        if progress.authenticated() {
            health.proof(progress.skew());
            if let Some(standing) = self.standing {
                standing.well();
            }
        } else if let Some(complaint) = complaint {
            let standing = self.standing.cloned();
            if let Some(standing) = &standing {
                standing.failed(*since);
            }
            health.suspect(complaint, *since, move || {
                if let Some(standing) = standing {
                    standing.well();
                }
            });
        }
    }

    /// Updates the health at the end of a session. A server that received no payload need not answer, and a
    /// client may close the connection before the answer.
    fn judge(&self, outcome: &Outcome, asked: bool) {
        let waited = self.watch.since.elapsed();
        let gone = match &outcome.end {
            End::Far(_) => true,
            End::Finished => outcome.far_first,
            End::Idle | End::Near(_) => false,
        };
        if !asked {
            self.look(None);
        } else if gone {
            self.look(Some("has closed the connection without an answer"));
        } else if waited >= GIVEN_UP {
            let complaint = format!("has not answered in {} s", waited.as_secs());
            self.look(Some(&complaint));
        } else {
            self.look(None);
        }
    }
}

/// A counter that also records if the client has sent anything.
struct Asked<'a> {
    both: Both<'a>,
    anything: AtomicBool,
}

impl Asked<'_> {
    fn anything(&self) -> bool {
        self.anything.load(Ordering::Relaxed)
    }
}

impl Count for Asked<'_> {
    fn add_up(&self, n: usize) {
        self.both.add_up(n);
        // Written once, so that the cache line stays shared.
        if !self.anything() {
            self.anything.store(true, Ordering::Relaxed);
        }
    }

    fn add_down(&self, n: usize) {
        self.both.add_down(n);
    }
}

/// An open session: two streams and their context.
struct Session {
    near: BoxStream,
    far: BoxStream,
    watch: Option<Watch>,
    /// The health of the group member that the session passes through.
    standing: Option<Arc<Standing>>,
    /// Further requests on the same connection.
    again: Option<Box<dyn Again>>,
    account: Option<Arc<Account>>,
    about: Box<About>,
}

/// Details of a session for the log.
struct About {
    peer: Peer,
    target: Target,
    user: String,
    /// Number of bytes that were sent ahead of the relay.
    first: usize,
    /// Number of times that the request has come back to this process.
    rounds: u8,
}

/// Relays, and reports a keyed hop that does not answer.
async fn watched(
    eye: Option<&Eye<'_>>,
    asked: &Asked<'_>,
    mut relay: Pin<&mut (impl Future<Output = Outcome> + Send)>,
) -> Outcome {
    if let Some(eye) = eye {
        tokio::select! {
            outcome = relay.as_mut() => return outcome,
            () = sleep(SILENCE) => {
                let complaint = asked.anything().then_some("has not answered for 6 s");
                eye.look(complaint);
            }
        }
    }
    relay.await
}

/// Waits until the listener has ended.
async fn ended(over: Option<watch::Receiver<()>>) {
    match over {
        Some(mut over) => while over.changed().await.is_ok() {},
        None => std::future::pending().await,
    }
}

/// Waits until the client has closed the connection or violated its protocol, as far as this is visible.
/// Returns the reason.
async fn left(client: Option<&mut BoxStream>) -> String {
    match client {
        Some(io) => reset(io).await,
        None => std::future::pending().await,
    }
}

/// Waits until reading from the client fails, and keeps the bytes read. An end of the stream is no reason
/// to give up, because the client may have sent everything.
async fn reset(io: &mut BoxStream) -> String {
    loop {
        let have = io.filled().len();
        match fill(io, have + 1).await {
            Ok(n) if n > have && n < EARLY => {}
            Ok(_) => return std::future::pending().await,
            // The error of a codec: the client's bytes were invalid.
            Err(e) if e.kind() == std::io::ErrorKind::InvalidData => {
                return format!("the client violated its protocol: {e}");
            }
            Err(e) => return format!("the client closed the connection: {e}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The budget of an idle connection is 3 KiB; two sockets and the allocator use two thirds of it.
    #[test]
    fn a_session_is_small_however_it_was_opened() {
        fn size_of_future<F>(_: impl Fn(&Arc<Worker>, BoxStream, Peer) -> F) -> usize {
            size_of::<F>()
        }
        let size = size_of_future(|worker, io, peer| worker.serve(io, peer));
        assert!(size <= 1100, "{size} bytes");
    }
}
