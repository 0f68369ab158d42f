//! The running plan, and changes to it at run time.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use adit_config::{Listen, Plan, Route};
use adit_net::{Buffers, ambient, limits};
use adit_stream::{Counts, Meter};
use adit_wire::Unix;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};
use tracing::debug;

use crate::chain;
use crate::listener::{self, Kept, Process, Replays};
use crate::serve::{Descriptors, Gate};
use crate::udp::Associations;
use crate::{Roster, Router, StartError};

/// A running plan. Routes can be added and removed without disturbing the others.
pub struct Engine {
    gate: Arc<Gate>,
    associations: Arc<Associations>,
    /// Salts and sessions seen under each key.
    replays: Replays,
    /// Start time of the engine.
    started: Unix,
    /// Counters of all KCP sessions, of listeners and of hops.
    kcp: Arc<adit_kcp::Counters>,
    running: Mutex<Vec<Running>>,
}

/// A listener and its tasks; dropping it ends them.
struct Running {
    listening: Listening,
    router: Arc<Router>,
    meter: Arc<Meter>,
    roster: Option<Arc<Roster>>,
    kept: Kept,
    tasks: JoinSet<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(roster) = &self.roster {
            roster.end();
        }
    }
}

impl Running {
    /// Stops the listener. Its port is free when this returns.
    async fn stop(&mut self) {
        self.tasks.shutdown().await;
        self.kept.stop().await;
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("listening", &self.listening())
            .finish_non_exhaustive()
    }
}

/// A keyed listener and its users.
#[derive(Debug, Clone)]
pub struct Server {
    /// The listener.
    pub listening: Listening,
    /// Its users.
    pub roster: Arc<Roster>,
}

/// An open listener.
#[derive(Debug, Clone)]
pub struct Listening {
    /// The bound address.
    pub addr: SocketAddr,
    /// Name of the route it belongs to.
    pub route: String,
    /// The transports it serves: `tcp`, `udp`, `tcp+udp`, `kcp` or `fec`.
    pub carries: &'static str,
    /// Receive and send buffer sizes of each of its UDP sockets, in bytes.
    pub buffers: Option<Buffers>,
}

impl Engine {
    /// Binds every listener and starts to accept connections.
    ///
    /// The maximum number of connections follows from the limit on open descriptors (`RLIMIT_NOFILE`), which
    /// this function does not change. Raise the limit first if you need more.
    ///
    /// In a multi-threaded runtime, flows that keep a processor busy move to threads of their own, which
    /// are started with the first such flow: see [`adit_stream::lane`].
    ///
    /// # Errors
    ///
    /// Returns a [`StartError`] if a listener cannot be bound or its settings cannot be used. In this case
    /// nothing is left running.
    pub async fn start(plan: &Plan) -> Result<Self, StartError> {
        let fitting = limits::max_connections(limits::nofile());
        let descriptors = Arc::new(Descriptors::new(fitting.saturating_mul(2)));
        let engine = Self {
            gate: Arc::new(Gate::of_process(descriptors.clone())),
            associations: Associations::new(descriptors),
            replays: Replays::default(),
            started: ambient::unix(),
            kcp: Arc::default(),
            running: Mutex::default(),
        };
        for route in &plan.routes {
            engine.add(route).await?;
        }
        Ok(engine)
    }

    /// Starts one more route: all of its listeners, or none.
    ///
    /// # Errors
    ///
    /// Returns a [`StartError`] if one of its listeners cannot be opened.
    pub async fn add(&self, route: &Route) -> Result<Vec<Listening>, StartError> {
        // Wait before binding: a client that connects too early is then refused by the system and retries,
        // instead of meeting the silence that a request from before the start is answered with.
        if route.listen.iter().any(listener::is_strict) {
            self.second_turned().await;
        }
        let mut begun = Vec::with_capacity(route.listen.len());
        for listen in &route.listen {
            begun.push(self.open(route, listen).await?);
        }
        let listening = begun.iter().map(|r| r.listening.clone()).collect();
        self.lock().extend(begun);
        Ok(listening)
    }

    /// Closes the listeners of a route and returns true if there were any. Open connections continue;
    /// the sessions of its users and its datagrams end.
    pub fn remove(&self, route: &str) -> bool {
        let mut running = self.lock();
        let before = running.len();
        running.retain(|r| r.listening.route != route);
        running.len() < before
    }

    /// Does the same as [`remove`](Self::remove), then waits until the ports are free and plugins have ended.
    pub async fn end(&self, route: &str) -> bool {
        let ended: Vec<Running> = {
            let mut running = self.lock();
            running
                .extract_if(.., |r| r.listening.route == route)
                .collect()
        };
        let any = !ended.is_empty();
        for mut listener in ended {
            listener.stop().await;
        }
        any
    }

    /// Applies the rules and the chain of `route` to new requests of the running route of that name. Open
    /// connections keep their chain.
    ///
    /// Returns false, and changes nothing, if no such route runs or its number of listeners differs.
    ///
    /// # Errors
    ///
    /// Returns a [`StartError`] if the new chain cannot be built.
    pub async fn reroute(&self, route: &Route) -> Result<bool, StartError> {
        let routers: Vec<Arc<Router>> = {
            let running = self.lock();
            let same = running.iter().filter(|r| r.listening.route == route.name);
            same.map(|r| r.router.clone()).collect()
        };
        if routers.is_empty() || routers.len() != route.listen.len() {
            return Ok(false);
        }
        let mut fresh = Vec::with_capacity(routers.len());
        for listen in &route.listen {
            fresh.push(chain::router(route, listen, &self.kcp).await?);
        }
        for (router, fresh) in routers.iter().zip(fresh) {
            router.replace(fresh);
        }
        Ok(true)
    }

    /// Returns all listeners, in the order in which they were opened.
    #[must_use]
    pub fn listening(&self) -> Vec<Listening> {
        self.lock().iter().map(|r| r.listening.clone()).collect()
    }

    /// Returns the keyed listeners, in the order in which they were opened.
    #[must_use]
    pub fn servers(&self) -> Vec<Server> {
        let server = |r: &Running| {
            Some(Server {
                listening: r.listening.clone(),
                roster: r.roster.clone()?,
            })
        };
        self.lock().iter().filter_map(server).collect()
    }

    /// Returns the number of connections that are open now.
    #[must_use]
    pub fn open_connections(&self) -> usize {
        self.gate.open()
    }

    /// Returns payload and session counts of each listener since it was opened, in the order of opening.
    #[must_use]
    pub fn traffic(&self) -> Vec<(Listening, Counts)> {
        let running = self.lock();
        let each = running.iter();
        each.map(|r| (r.listening.clone(), r.meter.counts()))
            .collect()
    }

    /// Returns the sum of the payload and session counts of all listeners.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.lock()
            .iter()
            .map(|r| r.meter.counts())
            .fold(Counts::default(), |a, b| Counts {
                up: a.up + b.up,
                down: a.down + b.down,
                opened: a.opened + b.opened,
                closed: a.closed + b.closed,
                lost: a.lost + b.lost,
            })
    }

    /// Returns the counters of the KCP sessions of all listeners and hops.
    #[must_use]
    pub fn kcp_counts(&self) -> adit_kcp::Counts {
        self.kcp.counts()
    }

    /// Stops accepting, and lets open connections continue for at most `drain`.
    pub async fn stop(&self, drain: Duration) {
        let mut running = std::mem::take(&mut *self.lock());
        for listener in &mut running {
            listener.stop().await;
        }
        let until = Instant::now() + drain;
        while self.gate.open() > 0 && Instant::now() < until {
            sleep_until((Instant::now() + Duration::from_millis(20)).min(until)).await;
        }
    }

    async fn open(&self, route: &Route, listen: &Listen) -> Result<Running, StartError> {
        let process = Process {
            gate: &self.gate,
            associations: &self.associations,
            replays: &self.replays,
            started: self.started,
            kcp: &self.kcp,
        };
        let listener = listener::open(route, listen, &process).await?;
        let opened = listener.opened;
        let listening = Listening {
            addr: opened.addr,
            route: route.name.clone(),
            carries: opened.carries,
            buffers: opened.buffers,
        };
        if let Some(buffers) = listening.buffers {
            debug!("UDP buffers on {}: {buffers}", listening.addr);
        }
        Ok(Running {
            listening,
            router: listener.router,
            meter: listener.meter,
            roster: listener.roster,
            kept: listener.kept,
            tasks: opened.tasks.into_iter().collect(),
        })
    }

    /// Waits for the end of the second in which the engine started. Strict listeners refuse requests
    /// stamped with that second, so clients should not be able to connect before it is over.
    async fn second_turned(&self) {
        if ambient::unix() <= self.started {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            let begun = now.map_or(0, |now| now.subsec_millis());
            sleep(Duration::from_millis(1001_u64.saturating_sub(begun.into()))).await;
        }
    }

    /// Ignores poisoning: a panic of another thread leaves the list intact.
    fn lock(&self) -> MutexGuard<'_, Vec<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
