//! The running plan, and changes to it at run time.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use adit_config::{ListenerConfig, Plan, Route};
use adit_net::{BufferSizes, limits, system};
use adit_stream::{MeterStats, TrafficMeter};
use adit_wire::UnixTime;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};
use tracing::debug;

use crate::chain_builder;
use crate::listener::{self, ListenerResources, ProcessState, ReplayRegistry};
use crate::serve::{ConnectionLimiter, DescriptorPool};
use crate::udp::AssociationRegistry;
use crate::{Router, RuleSetStore, RuleSetTable, StartError, UserTable};

/// A running plan. Routes can be added and removed without disturbing the others.
pub struct Engine {
    gate: Arc<ConnectionLimiter>,
    associations: Arc<AssociationRegistry>,
    /// Salts and sessions seen under each key.
    replays: ReplayRegistry,
    /// Start time of the engine.
    started: UnixTime,
    /// Counters of all KCP sessions, of listeners and of hops.
    kcp: Arc<adit_kcp::Counters>,
    /// The rule sets of the plan.
    sets: RuleSetTable,
    running: Mutex<Vec<RunningListener>>,
}

/// A listener and its tasks; dropping it ends them.
struct RunningListener {
    listening: ListenerInfo,
    router: Arc<Router>,
    meter: Arc<TrafficMeter>,
    roster: Option<Arc<UserTable>>,
    kept: ListenerResources,
    tasks: JoinSet<()>,
}

impl Drop for RunningListener {
    fn drop(&mut self) {
        if let Some(roster) = &self.roster {
            roster.end_sessions();
        }
    }
}

impl RunningListener {
    /// Stops the listener. Its port is free when this returns.
    async fn stop(&mut self) {
        self.tasks.shutdown().await;
        self.kept.stop_plugin().await;
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("listening", &self.listeners())
            .finish_non_exhaustive()
    }
}

/// A keyed listener and its users.
#[derive(Debug, Clone)]
pub struct KeyedServer {
    /// The listener.
    pub listening: ListenerInfo,
    /// Its users.
    pub roster: Arc<UserTable>,
}

/// An open listener.
#[derive(Debug, Clone)]
pub struct ListenerInfo {
    /// The bound address.
    pub addr: SocketAddr,
    /// Name of the route it belongs to.
    pub route: String,
    /// The transports it serves: `tcp`, `udp`, `tcp+udp`, `kcp` or `fec`.
    pub transports: &'static str,
    /// Receive and send buffer sizes of each of its UDP sockets, in bytes.
    pub buffers: Option<BufferSizes>,
}

impl Engine {
    /// Binds every listener and starts to accept connections.
    ///
    /// The maximum number of connections follows from the limit on open descriptors (`RLIMIT_NOFILE`), which
    /// this function does not change. Raise the limit first if you need more.
    ///
    /// In a multi-threaded runtime, flows that keep a processor busy move to threads of their own, which
    /// are started with the first such flow: see `adit_stream::probe_fec_channel`.
    ///
    /// # Errors
    ///
    /// Returns a [`StartError`] if a listener cannot be bound, its settings cannot be used or a rule set cannot be
    /// read; those with URLs have to be loaded before, see [`Self::start_with_rule_sets`]. In this case
    /// nothing is left running.
    pub async fn start(plan: &Plan) -> Result<Self, StartError> {
        let mut sets = RuleSetTable::default();
        if !plan.sets.is_empty() {
            let configs = plan.sets.clone();
            let load = move || RuleSetTable::load(&configs, &RuleSetStore::default());
            let loaded = tokio::task::spawn_blocking(load).await;
            sets = match loaded {
                Ok(Ok((sets, _))) => sets,
                Ok(Err(errors)) => return Err(StartError::RuleSets(errors)),
                // The runtime ends, and the engine with it.
                Err(_) => sets,
            };
        }
        Self::start_with_rule_sets(plan, sets).await
    }

    /// Does the same as [`Self::start`] with rule sets that are loaded already, and can be replaced later.
    ///
    /// # Errors
    ///
    /// Returns a [`StartError`] as [`Self::start`] does, and if a rule names a set that is missing.
    pub async fn start_with_rule_sets(plan: &Plan, sets: RuleSetTable) -> Result<Self, StartError> {
        let fitting = limits::max_connections(limits::nofile_limit());
        let descriptors = Arc::new(DescriptorPool::new(fitting.saturating_mul(2)));
        let engine = Self {
            gate: Arc::new(ConnectionLimiter::for_process(descriptors.clone())),
            associations: AssociationRegistry::new(descriptors),
            replays: ReplayRegistry::default(),
            started: system::unix_now(),
            kcp: Arc::default(),
            sets,
            running: Mutex::default(),
        };
        for route in &plan.routes {
            engine.add_route(route).await?;
        }
        Ok(engine)
    }

    /// Starts one more route: all of its listeners, or none.
    ///
    /// # Errors
    ///
    /// Returns a [`StartError`] if one of its listeners cannot be opened.
    pub async fn add_route(&self, route: &Route) -> Result<Vec<ListenerInfo>, StartError> {
        // Wait before binding: a client that connects too early is then refused by the system and retries,
        // instead of meeting the silence that a request from before the start is answered with.
        if route.listen.iter().any(listener::is_strict_listener) {
            self.wait_past_start_second().await;
        }
        let mut begun = Vec::with_capacity(route.listen.len());
        for listen in &route.listen {
            begun.push(self.open_listener(route, listen).await?);
        }
        let listening = begun.iter().map(|r| r.listening.clone()).collect();
        self.lock_running().extend(begun);
        Ok(listening)
    }

    /// Closes the listeners of a route and returns true if there were any. Open connections continue;
    /// the sessions of its users and its datagrams end.
    pub fn remove_route(&self, route: &str) -> bool {
        let mut running = self.lock_running();
        let before = running.len();
        running.retain(|r| r.listening.route != route);
        running.len() < before
    }

    /// Does the same as [`Self::remove_route`], then waits until the ports are free and plugins have ended.
    pub async fn remove_route_and_wait(&self, route: &str) -> bool {
        let ended: Vec<RunningListener> = {
            let mut running = self.lock_running();
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
    pub async fn replace_routing(&self, route: &Route) -> Result<bool, StartError> {
        let routers: Vec<Arc<Router>> = {
            let running = self.lock_running();
            let same = running.iter().filter(|r| r.listening.route == route.name);
            same.map(|r| r.router.clone()).collect()
        };
        if routers.is_empty() || routers.len() != route.listen.len() {
            return Ok(false);
        }
        let mut fresh = Vec::with_capacity(routers.len());
        for listen in &route.listen {
            fresh.push(chain_builder::build_router(route, listen, &self.sets, &self.kcp).await?);
        }
        for (router, fresh) in routers.iter().zip(fresh) {
            router.replace_rules(fresh);
        }
        Ok(true)
    }

    /// Returns all listeners, in the order in which they were opened.
    #[must_use]
    pub fn listeners(&self) -> Vec<ListenerInfo> {
        self.lock_running()
            .iter()
            .map(|r| r.listening.clone())
            .collect()
    }

    /// Returns the keyed listeners, in the order in which they were opened.
    #[must_use]
    pub fn keyed_servers(&self) -> Vec<KeyedServer> {
        let server = |r: &RunningListener| {
            Some(KeyedServer {
                listening: r.listening.clone(),
                roster: r.roster.clone()?,
            })
        };
        self.lock_running().iter().filter_map(server).collect()
    }

    /// Returns the number of connections that are open now.
    #[must_use]
    pub fn open_connections(&self) -> usize {
        self.gate.open_count()
    }

    /// Returns payload and session counts of each listener since it was opened, in the order of opening.
    #[must_use]
    pub fn listener_counts(&self) -> Vec<(ListenerInfo, MeterStats)> {
        let running = self.lock_running();
        let each = running.iter();
        each.map(|r| (r.listening.clone(), r.meter.stats()))
            .collect()
    }

    /// Returns the sum of the payload and session counts of all listeners.
    #[must_use]
    pub fn total_counts(&self) -> MeterStats {
        self.lock_running()
            .iter()
            .map(|r| r.meter.stats())
            .fold(MeterStats::default(), |a, b| MeterStats {
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
    pub async fn drain_and_stop(&self, drain: Duration) {
        let mut running = std::mem::take(&mut *self.lock_running());
        for listener in &mut running {
            listener.stop().await;
        }
        let until = Instant::now() + drain;
        while self.gate.open_count() > 0 && Instant::now() < until {
            sleep_until((Instant::now() + Duration::from_millis(20)).min(until)).await;
        }
    }

    async fn open_listener(
        &self,
        route: &Route,
        listen: &ListenerConfig,
    ) -> Result<RunningListener, StartError> {
        let process = ProcessState {
            gate: &self.gate,
            associations: &self.associations,
            replays: &self.replays,
            started: self.started,
            kcp: &self.kcp,
            sets: &self.sets,
        };
        let listener = listener::open_listener(route, listen, &process).await?;
        let opened = listener.opened;
        let listening = ListenerInfo {
            addr: opened.addr,
            route: route.name.clone(),
            transports: opened.transports,
            buffers: opened.buffers,
        };
        if let Some(buffers) = listening.buffers {
            debug!("UDP buffers on {}: {buffers}", listening.addr);
        }
        Ok(RunningListener {
            listening,
            router: listener.router,
            meter: listener.meter,
            roster: listener.roster,
            kept: listener.resources,
            tasks: opened.tasks.into_iter().collect(),
        })
    }

    /// Waits for the end of the second in which the engine started. Strict listeners refuse requests
    /// stamped with that second, so clients should not be able to connect before it is over.
    async fn wait_past_start_second(&self) {
        if system::unix_now() <= self.started {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            let begun = now.map_or(0, |now| now.subsec_millis());
            sleep(Duration::from_millis(1001_u64.saturating_sub(begun.into()))).await;
        }
    }

    /// Ignores poisoning: a panic of another thread leaves the list intact.
    fn lock_running(&self) -> MutexGuard<'_, Vec<RunningListener>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
