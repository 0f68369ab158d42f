//! A plan made to run, and changed while it runs.

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

/// A running plan. Routes can be added and removed; everything else goes on.
pub struct Engine {
    gate: Arc<Gate>,
    associations: Arc<Associations>,
    /// What was seen under each key.
    replays: Replays,
    /// When it began.
    started: Unix,
    /// What all KCP sessions count, of listeners and of hops.
    kcp: Arc<adit_kcp::Counters>,
    running: Mutex<Vec<Running>>,
}

/// A listener and its tasks, which end with it.
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
    /// Ends the listener; once this is done its port is free.
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

/// A keyed listener and whom it serves.
#[derive(Debug, Clone)]
pub struct Server {
    /// The listener.
    pub listening: Listening,
    /// Its users.
    pub roster: Arc<Roster>,
}

/// A listener that accepts.
#[derive(Debug, Clone)]
pub struct Listening {
    /// The address.
    pub addr: SocketAddr,
    /// The route it belongs to.
    pub route: String,
    /// Whether it takes connections, datagrams or both.
    pub carries: &'static str,
    /// What the system gave each of its UDP sockets for datagrams that wait.
    pub buffers: Option<Buffers>,
}

impl Engine {
    /// Binds every listener and begins to accept. Nothing is left running on an error.
    ///
    /// How many connections there may be follows from the limit of open descriptors, which stays as it
    /// is. A program that wants more raises it before.
    ///
    /// In a runtime of several threads, flows that keep a processor busy go to threads of their own,
    /// which begin with the first of them: see [`adit_stream::lane`].
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

    /// Begins one more route: all of its listeners, or none.
    pub async fn add(&self, route: &Route) -> Result<Vec<Listening>, StartError> {
        // First: who connects sooner is refused by the system and tries again, and not met with the
        // silence that a request from before the start gets.
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

    /// Ends the listeners of a route; says whether there were any. Open connections go on, the
    /// sessions of its users and its datagrams do not.
    pub fn remove(&self, route: &str) -> bool {
        let mut running = self.lock();
        let before = running.len();
        running.retain(|r| r.listening.route != route);
        running.len() < before
    }

    /// As [`remove`](Self::remove), and waits until the ports are free and plugins have ended.
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

    /// Sends the requests of a route that runs by the rules and the chain of `route` from now on;
    /// says whether there is one of this name and as many listeners. Open connections stay on
    /// their way.
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

    /// The listeners, in the order in which they were begun.
    #[must_use]
    pub fn listening(&self) -> Vec<Listening> {
        self.lock().iter().map(|r| r.listening.clone()).collect()
    }

    /// The keyed listeners, in the order in which they were begun.
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

    /// Connections open now.
    #[must_use]
    pub fn open_connections(&self) -> usize {
        self.gate.open()
    }

    /// Payload and sessions of each listener so far, in the order in which they were begun.
    #[must_use]
    pub fn traffic(&self) -> Vec<(Listening, Counts)> {
        let running = self.lock();
        let each = running.iter();
        each.map(|r| (r.listening.clone(), r.meter.counts()))
            .collect()
    }

    /// Payload carried by all listeners so far.
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

    /// What the KCP sessions of all listeners and hops have counted so far.
    #[must_use]
    pub fn kcp_counts(&self) -> adit_kcp::Counts {
        self.kcp.counts()
    }

    /// Stops accepting, and lets open connections go on for at most `drain`.
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

    /// Waits for the end of the second in which the engine began: strict listeners refuse what is
    /// stamped with it, so nobody should find them before.
    async fn second_turned(&self) {
        if ambient::unix() <= self.started {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            let begun = now.map_or(0, |now| now.subsec_millis());
            sleep(Duration::from_millis(1001_u64.saturating_sub(begun.into()))).await;
        }
    }

    /// A panic of another thread leaves the list whole.
    fn lock(&self) -> MutexGuard<'_, Vec<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
