//! The heart: from an accepted connection to the pump; and the accept loop around it.

use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use adit_net::accept::{self, Turn};
use adit_net::{Udp, tcp};
use adit_shadowsocks::uot;
use adit_stream::{BoxStream, Count, End, Limits, Meter, Outcome, Stream, Tcp, fill, relay};
use adit_wire::{Host, Target};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, warn};

use crate::Peer;
use crate::acceptor::{Acceptor, Association, Binding, Inbound, Many, Pending};
use crate::account::{Account, Both, Open, during};
use crate::connector::{Bound, Watch};
use crate::error::{AcceptError, DialError, Stage};
use crate::guard::Guard;
use crate::router::Router;
use crate::udp::{Listener, OverTcp, SocksPackets, Ttl, accept_over_tcp, between};

/// How long BIND waits for its one connection.
const BIND_WAIT: Duration = Duration::from_secs(120);
/// What a client may say on the control connection of an association before it is closed.
const CONTROL_NOISE: usize = 4096;
/// What a client may say before its request is granted; then reading stops.
const EARLY: usize = 16 << 10;
/// A keyed hop that has not proved itself after this long is worth a word.
const SILENCE: Duration = Duration::from_secs(6);
/// Complaints about exhaustion are at least this far apart.
const QUIET: Duration = Duration::from_secs(10);

/// Everything one listener needs to serve its connections.
pub struct Worker {
    /// Reads requests.
    pub acceptor: Box<dyn Acceptor>,
    /// Chooses the way.
    pub router: Arc<Router>,
    /// Deadlines of relayed sessions.
    pub limits: Limits,
    /// Counters of the listener.
    pub meter: Arc<Meter>,
    /// Deadlines of associations.
    pub ttl: Ttl,
    /// Options of UDP ASSOCIATE.
    pub associate: Associate,
    /// Limits for strangers, unless the listener is on loopback.
    pub(crate) guard: Option<Arc<Guard>>,
    /// How long a first payload is waited for, instead of what the hop says.
    pub first_wait: Option<Duration>,
    /// Whether a stream may be asked for that carries datagrams (UDP over TCP).
    pub over_tcp: bool,
    /// Connections of the listener open now, and how many may be.
    pub gate: Arc<Gate>,
    /// Whose sender is gone once the listener has ended.
    pub(crate) over: Option<watch::Receiver<()>>,
}

/// Options of UDP ASSOCIATE.
#[derive(Debug, Clone, Copy, Default)]
pub struct Associate {
    /// The address that clients are told, where ours is not reachable for them.
    pub advertise: Option<std::net::IpAddr>,
    /// Whether fragments are put together.
    pub reassemble: bool,
}

/// Counts connections and turns away what is too much.
#[derive(Debug)]
pub struct Gate {
    open: AtomicUsize,
    max: usize,
    /// The gate of the whole process, behind that of a listener.
    outer: Option<Arc<Self>>,
}

impl Gate {
    /// Lets `max` connections in at a time, as far as `outer` does.
    #[must_use]
    pub const fn new(max: usize, outer: Option<Arc<Self>>) -> Self {
        Self {
            open: AtomicUsize::new(0),
            max,
            outer,
        }
    }

    /// Connections open now.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// The lowest bound that holds.
    fn limit(&self) -> usize {
        let outer = self
            .outer
            .as_ref()
            .map_or(usize::MAX, |outer| outer.limit());
        self.max.min(outer)
    }

    fn enter(self: &Arc<Self>) -> Option<Ticket> {
        let outer = match &self.outer {
            Some(outer) => Some(Box::new(outer.enter()?)),
            None => None,
        };
        let ticket = Ticket {
            gate: self.clone(),
            _outer: outer,
        };
        (self.open.fetch_add(1, Ordering::Relaxed) < self.max).then_some(ticket)
    }
}

/// One connection's place; leaves when dropped, even by a panic.
struct Ticket {
    gate: Arc<Gate>,
    _outer: Option<Box<Self>>,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.gate.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Accepts for ever; each connection is a task of its own.
pub async fn accept_loop(mut socket: accept::Acceptor, worker: Arc<Worker>) {
    let mut complained: Option<Instant> = None;
    loop {
        let complaint = match socket.next().await {
            Turn::Connection(stream, remote) => {
                let local = stream.local_addr().unwrap_or(remote);
                let peer = Peer { remote, local };
                if worker.clone().admit(Box::new(Tcp::new(stream)), peer) {
                    continue;
                }
                format!(
                    "{} connections are open: closing new ones",
                    worker.gate.limit()
                )
            }
            Turn::Exhausted(e) => format!("accepting connections: {e}"),
        };
        if complained.is_none_or(|at| at.elapsed() >= QUIET) {
            complained = Some(Instant::now());
            warn!("{complaint} (said once in {} s)", QUIET.as_secs());
        }
    }
}

impl Worker {
    /// Serves a connection in a task of its own, if the gate lets it in.
    pub(crate) fn admit(self: Arc<Self>, io: BoxStream, peer: Peer) -> bool {
        let Some(ticket) = self.gate.enter() else {
            return false;
        };
        tokio::spawn(async move {
            self.serve(io, peer).await;
            drop(ticket);
        });
        true
    }

    /// Serves one connection from its first byte to its last.
    pub async fn serve(self: &Arc<Self>, io: BoxStream, peer: Peer) {
        // What opens a session is much larger than what it takes to run one, and most live long.
        let session = Box::pin(self.meet(io, peer)).await;
        if let Some(session) = session {
            self.pump(session, peer).await;
        }
    }

    /// Everything up to an open session; other wishes are served here.
    async fn meet(self: &Arc<Self>, io: BoxStream, peer: Peer) -> Option<Session> {
        let stranger = match &self.guard {
            None => None,
            Some(guard) => match guard.enter(peer.remote.ip()) {
                None => {
                    debug!(client = %peer.remote, "turned away: too many handshakes");
                    return None;
                }
                stranger => stranger,
            },
        };
        let inbound = self.acceptor.accept(io, peer).await;
        if let (Some(stranger), Err(AcceptError::Login(_))) = (&stranger, &inbound) {
            stranger.failed();
        }
        drop(stranger);
        match inbound {
            Ok(Inbound::Stream(pending)) => return self.open(pending, peer).await,
            Ok(Inbound::Many(many)) => self.streams(many, peer).await,
            Ok(Inbound::Bind(binding)) => return self.bind(binding, peer).await,
            Ok(Inbound::Datagrams(association)) => self.datagrams(association).await,
            Ok(Inbound::InStream(carried)) => {
                let account = carried.account;
                let work = Box::pin(self.carry(carried.datagrams, None, account.as_ref()));
                let end = during(account.as_deref(), work).await;
                debug!(client = %peer.remote, "datagrams in a stream end: {end:?}");
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

    /// Serves what is asked for on one connection, each stream in a task of its own, until the
    /// client goes. When the listener ends, streams that are open go on and no new ones begin.
    async fn streams(self: &Arc<Self>, mut many: Box<dyn Many>, peer: Peer) {
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
                tokio::spawn(async move {
                    let session = Box::pin(worker.open(pending, peer)).await;
                    if let Some(session) = session {
                        worker.pump(session, peer).await;
                    }
                    drop(ticket);
                });
                continue;
            }
            let why = "too many connections are open";
            debug!(client = %peer.remote, "a stream is refused: {why}");
            let why = std::io::Error::new(std::io::ErrorKind::QuotaExceeded, why);
            // The client may have left already.
            let _ = pending.refuse(&DialError::new(Stage::Route, why)).await;
        }
        debug!(client = %peer.remote, "the connection ends");
    }

    /// Opens the way that a client asks for.
    async fn open(&self, mut pending: Pending, peer: Peer) -> Option<Session> {
        let target = pending.request.target.clone();
        let user = pending.request.user.clone().unwrap_or_default();
        let account = pending.request.account.clone();
        if let Some(version) = uot::version(&target).filter(|_| self.over_tcp) {
            let carried = Box::pin(self.over_tcp(pending, version, account.as_ref()));
            let end = during(account.as_deref(), carried).await;
            debug!(client = %peer.remote, user, "datagrams in a stream end: {end:?}");
            return None;
        }
        let connector = self.router.pick(&target);
        let first = std::mem::take(&mut pending.request.first);
        let dialled = tokio::select! {
            dialled = connector.connect(&target, &first) => dialled.inspect(|_| {
                // They went ahead of the relay, which counts the others.
                let both = Both { meter: &self.meter, account: account.as_ref() };
                both.add_up(first.len());
            }),
            () = left(pending.client()) => {
                debug!(client = %peer.remote, %target, "the client left before the dial ended");
                return None;
            }
        };
        let far = match dialled {
            Ok(far) => far,
            Err(why) => {
                debug!(client = %peer.remote, user, %target, fault = why.label(), "refused: {why}");
                // The client may have left already.
                let _ = pending.refuse(&why).await;
                return None;
            }
        };
        let mut near = match pending.proceed(far.bound).await {
            Ok(near) => near,
            Err(e) => {
                debug!(client = %peer.remote, "the client left: {e}");
                return None;
            }
        };
        debug!(client = %peer.remote, user, %target, "open");
        let first_wait = self.first_wait.unwrap_or(far.first_wait);
        if !first_wait.is_zero() && far.io.owes_head() {
            // Whether something came or not, the head leaves now.
            let _ = timeout(first_wait, fill(&mut near, 1)).await;
        }
        Some(Session {
            near,
            far: far.io,
            watch: far.watch,
            account,
            about: Box::new((target, user)),
        })
    }

    /// The relay, with an eye on a keyed hop; ends when the user is removed.
    async fn pump(&self, session: Session, peer: Peer) {
        let Session {
            mut near,
            mut far,
            watch,
            account,
            about,
        } = session;
        let (target, user) = &*about;
        if let Some(account) = &account {
            account.begin_tcp();
        }
        let _open = Open::new(&self.meter);
        let both = Both {
            meter: &self.meter,
            account: account.as_ref(),
        };
        let outcome = {
            let mut relay = pin!(relay(&mut *near, &mut *far, &self.limits, &both));
            let watched = pin!(watched(watch.as_ref(), relay.as_mut()));
            during(account.as_deref(), watched).await
        };
        let Some(outcome) = outcome else {
            // A cut transfer must not look complete.
            near.abort();
            far.abort();
            return debug!(client = %peer.remote, user, %target, "closed: the user was removed");
        };
        if let Some(watch) = &watch
            && (outcome.down > 0 || matches!(outcome.end, End::Finished | End::Far(_)))
        {
            watch.look("has closed the connection without an answer");
        }
        let (up, down, end) = (outcome.up, outcome.down, &outcome.end);
        debug!(client = %peer.remote, user, %target, up, down, "closed: {end:?}");
    }

    /// Datagrams inside the stream that was asked for.
    async fn over_tcp(
        &self,
        mut pending: Pending,
        version: uot::Version,
        account: Option<&Arc<Account>>,
    ) -> std::io::Result<()> {
        let first = std::mem::take(&mut pending.request.first);
        let near = pending.proceed(None).await?;
        let deadline = self.ttl.idle;
        let late = |_| std::io::Error::from(std::io::ErrorKind::TimedOut);
        let (near, target) = timeout(deadline, accept_over_tcp(near, first, version))
            .await
            .map_err(late)??;
        self.carry(near, target, account).await
    }

    /// Datagrams in a stream, to wherever each goes; `target` is the first of them, if known.
    async fn carry(
        &self,
        near: OverTcp,
        target: Option<Target>,
        account: Option<&Arc<Account>>,
    ) -> std::io::Result<()> {
        let anywhere = Target::from(SocketAddr::from(([0u8; 4], 0)));
        let connector = self.router.pick(target.as_ref().unwrap_or(&anywhere));
        let far = connector.associate().await.map_err(std::io::Error::other)?;
        let _open = Open::new(&self.meter);
        if let Some(account) = account {
            account.begin_udp();
        }
        between(&near, &*far, self.ttl, &|n, up| {
            if up {
                self.meter.add_up(n);
            } else {
                self.meter.add_down(n);
            }
            match account {
                Some(account) if up => account.packet_up(n),
                Some(account) => account.packet_down(n),
                None => {}
            }
        })
        .await
    }

    /// Waits for the one connection from outside.
    async fn bind(&self, mut binding: Binding, peer: Peer) -> Option<Session> {
        let connector = self.router.pick(&binding.expected);
        let Bound { socket, access } = match connector.listen(peer.local).await {
            Ok(bound) => bound,
            Err(why) => {
                binding.refuse(&why).await;
                return None;
            }
        };
        binding.listening(socket.local_addr().ok()?).await.ok()?;
        let expected = binding.expected.clone();
        let wanted = |from: SocketAddr| {
            let named = match &expected.host {
                Host::Ip(ip) => ip.is_unspecified() || *ip == adit_wire::unmap(from.ip()),
                Host::Name(_) => true,
            };
            named && access.check(from).is_ok()
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
            come = timeout(BIND_WAIT, accept) => come,
            // Early bytes stay where they are and go to the peer when it comes.
            gone = closed(binding.control()) => {
                debug!(client = %peer.remote, "BIND given up by the client: {gone}");
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
                binding.refuse(&DialError::new(Stage::Connect, e)).await;
                return None;
            }
        };
        tcp::tune(&stream);
        Some(Session {
            near: binding.accepted(from).await.ok()?,
            far: Box::new(Tcp::new(stream)),
            watch: None,
            account: None,
            about: Box::new((from.into(), String::new())),
        })
    }

    async fn datagrams(&self, association: Association) {
        let peer = association.peer;
        let opened = Udp::bind(SocketAddr::new(peer.local.ip(), 0))
            .and_then(|socket| Ok((socket.local_addr()?, socket)));
        let (at, socket) = match opened {
            Ok(opened) => opened,
            Err(e) => return association.refuse(&DialError::new(Stage::Connect, e)).await,
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
        let Ok(mut control) = association.proceed(shown).await else {
            return;
        };
        debug!(client = %peer.remote, "association open on {at}");
        let listener = Listener::new(
            Arc::new(socket),
            Box::new(codec),
            self.router.clone(),
            self.meter.clone(),
            self.ttl,
        );
        tokio::select! {
            () = listener.single().run() => {}
            () = swallow(&mut control) => {}
        }
        debug!(client = %peer.remote, "association closed");
    }
}

impl Watch {
    fn look(&self, complaint: &str) {
        if self.progress.authenticated() {
            self.health.proof(self.progress.skew());
        } else {
            self.health.suspect(complaint);
        }
    }
}

/// An open session: two streams and what is known of them.
struct Session {
    near: BoxStream,
    far: BoxStream,
    watch: Option<Watch>,
    account: Option<Arc<Account>>,
    /// Target and user, for the log.
    about: Box<(Target, String)>,
}

/// The relay; a keyed hop that stays silent is worth a word.
async fn watched(
    watch: Option<&Watch>,
    mut relay: Pin<&mut (impl Future<Output = Outcome> + Send)>,
) -> Outcome {
    if let Some(watch) = watch {
        tokio::select! {
            outcome = relay.as_mut() => return outcome,
            () = sleep(SILENCE) => watch.look("is silent since 6 s"),
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

/// Waits until the client has left, as far as that can be seen.
async fn left(client: Option<&mut BoxStream>) {
    match client {
        Some(io) => reset(io).await,
        None => std::future::pending().await,
    }
}

/// Waits until the client resets; what it says is kept. An end is no reason to give up: a client
/// may have said all it has to say.
async fn reset(io: &mut BoxStream) {
    loop {
        let have = io.filled().len();
        match fill(io, have + 1).await {
            Ok(n) if n > have && n < EARLY => {}
            Ok(_) => return std::future::pending().await,
            Err(_) => return,
        }
    }
}

/// Waits until the client closes; what it says is kept.
async fn closed(io: &mut BoxStream) -> &'static str {
    loop {
        let have = io.filled().len();
        match fill(io, have + 1).await {
            Ok(n) if n > have && n < EARLY => {}
            Ok(n) if n > have => return "too much early data",
            _ => return "closed",
        }
    }
}

/// Waits until the control connection of an association ends, or talks too much.
async fn swallow(io: &mut BoxStream) {
    let mut noise = 0;
    while let Ok(n) = fill(io, 1).await {
        noise += n;
        if n == 0 || noise > CONTROL_NOISE {
            return;
        }
        io.consume(n);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_within_a_gate() {
        let outer = Arc::new(Gate::new(3, None));
        let (a, b) = [2, 9]
            .map(|max| Arc::new(Gate::new(max, Some(outer.clone()))))
            .into();
        let (one, two) = (a.enter(), a.enter());
        assert!(
            one.is_some() && two.is_some() && a.enter().is_none(),
            "two of its own"
        );
        assert_eq!(
            (a.open(), outer.open()),
            (2, 2),
            "a refusal leaves no trace"
        );
        let three = b.enter();
        assert!(three.is_some() && b.enter().is_none(), "three in all");
        drop((one, three));
        assert!(b.enter().is_some());
    }
}
