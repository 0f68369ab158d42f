//! The running plan, and changes to it at run time.

mod apply;
mod comparison;
mod counters;
mod observation;
mod successor;

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use adit_config::{ListenerConfig, Plan, Route};
use adit_net::{BufferSizes, limits, system};
use adit_stream::{MeterStats, TrafficMeter};
use adit_wire::UnixTime;
use tokio::time::sleep;
use tracing::debug;

use crate::chain_builder::{self, ChainResources, NamedResources};
use crate::connector::{GroupRegistry, GroupState, MemberSelections};
use crate::dns::{DnsRegistry, NameResolver};
use crate::fleet::FleetUsers;
use crate::handover::{InheritedSockets, SharedSockets, SocketSource};
use crate::listener::{
    self, BoundListener, ListenerParts, ListenerResources, LiveState, ProcessState, ProxyUsers,
    ReplayRegistry,
};
use crate::serve::{ConnectionLimiter, DescriptorPool};
use crate::session_table::{SessionList, SessionTable};
use crate::stage_meter::ListenerMeters;
use crate::udp::AssociationRegistry;
use crate::user_registry::TimerTask;
use crate::{DnsTable, Router, RuleSetStore, RuleSetTable, StartError, UserRegistry, UserTable};

pub use apply::{ApplyError, ReloadSummary};
pub use counters::{EngineCounters, ListenerCounters};
pub use successor::{Inheritance, PreparedEngine};

/// Interval at which the number of open connections is checked while they end.
const DRAIN_CHECK: Duration = Duration::from_millis(20);

/// A running plan. Routes can be added and removed without disturbing the others.
pub struct Engine {
    gate: Arc<ConnectionLimiter>,
    associations: Arc<AssociationRegistry>,
    /// The open sessions of all listeners.
    sessions: Arc<SessionTable>,
    /// Salts and sessions seen under each key.
    replays: ReplayRegistry,
    /// The users of all listeners.
    registry: Arc<UserRegistry>,
    /// The users of the fleet, for listeners that have them.
    fleet: Arc<FleetUsers>,
    _user_timer: TimerTask,
    /// Start time of the engine.
    started: UnixTime,
    /// Groups, and the counters of all KCP sessions, of listeners and of hops.
    chains: ChainResources,
    /// The rule sets of the plan.
    sets: Mutex<RuleSetTable>,
    /// The DNS tables of the plan.
    dns: Mutex<DnsRegistry>,
    running: Mutex<Vec<RunningListener>>,
    /// Counters of listeners that a reload or [`remove_route`](Self::remove_route) has closed.
    closed: Mutex<ClosedListeners>,
    /// Held during a change of the plan.
    changing: tokio::sync::Mutex<()>,
    last_id: AtomicU64,
    /// True once it accepts nothing more.
    draining: AtomicBool,
}

/// A listener and its tasks; dropping it ends them.
struct RunningListener {
    /// Unique in the engine.
    id: u64,
    /// Its number among the listeners of its route.
    index: usize,
    listening: ListenerInfo,
    live: LiveState,
    kept: ListenerResources,
    parts: ListenerParts,
    /// True if the sessions of its users continue when it is dropped.
    spares_sessions: bool,
}

impl Drop for RunningListener {
    fn drop(&mut self) {
        if let Some(user_table) = self
            .live
            .user_table
            .as_ref()
            .filter(|_| !self.spares_sessions)
        {
            user_table.end_sessions();
        }
    }
}

/// Counters of listeners that were closed.
#[derive(Debug, Default)]
struct ClosedListeners {
    sum: MeterStats,
    /// Those that may have open sessions.
    open: Vec<Arc<TrafficMeter>>,
}

impl ClosedListeners {
    fn add(&mut self, meter: Arc<TrafficMeter>) {
        self.open.push(meter);
        let sum = &mut self.sum;
        self.open.retain(|meter| {
            let is_used = Arc::strong_count(meter) > 1;
            if !is_used {
                *sum = sum_of(*sum, meter.stats());
            }
            is_used
        });
    }

    fn total(&self) -> MeterStats {
        let open = self.open.iter().map(|meter| meter.stats());
        open.fold(self.sum, sum_of)
    }
}

fn sum_of(a: MeterStats, b: MeterStats) -> MeterStats {
    MeterStats {
        up: a.up + b.up,
        down: a.down + b.down,
        opened: a.opened + b.opened,
        closed: a.closed + b.closed,
        lost: a.lost + b.lost,
    }
}

impl RunningListener {
    /// Stops the listener. Its port is free when this returns.
    async fn stop(&mut self) {
        self.parts.stop().await;
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
    pub user_table: Arc<UserTable>,
}

/// A proxy listener and its users.
#[derive(Debug, Clone)]
pub struct ProxyServer {
    /// The listener.
    pub listening: ListenerInfo,
    /// Its users.
    pub users: Arc<ProxyUsers>,
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
        let replays = ReplayRegistry::default();
        let selections = MemberSelections::default();
        let fleet = Arc::default();
        let engine = Self::without_routes(sets, replays, system::unix_now(), selections, fleet);
        engine.start_dns(plan).await?;
        for route in &plan.routes {
            engine.add_route(route).await?;
        }
        Ok(engine)
    }

    /// Creates an engine of a process that started at `started`.
    fn without_routes(
        sets: RuleSetTable,
        replays: ReplayRegistry,
        started: UnixTime,
        selections: MemberSelections,
        fleet: Arc<FleetUsers>,
    ) -> Self {
        let fitting = limits::max_connections(limits::nofile_limit());
        let descriptors = Arc::new(DescriptorPool::new(fitting.saturating_mul(2)));
        let registry = fleet.registry().clone();
        Self {
            gate: Arc::new(ConnectionLimiter::for_process(descriptors.clone())),
            associations: AssociationRegistry::new(descriptors),
            sessions: Arc::default(),
            replays,
            _user_timer: registry.start_timer(),
            registry,
            fleet,
            started,
            chains: ChainResources {
                groups: GroupRegistry::with_selections(selections),
                ..ChainResources::default()
            },
            dns: Mutex::default(),
            sets: Mutex::new(sets),
            running: Mutex::default(),
            closed: Mutex::default(),
            changing: tokio::sync::Mutex::default(),
            last_id: AtomicU64::new(0),
            draining: AtomicBool::new(false),
        }
    }

    /// Starts the DNS tables of a plan, which its routes refer to.
    async fn start_dns(&self, plan: &Plan) -> Result<(), StartError> {
        let sets = self.rule_sets();
        self.use_dns(DnsRegistry::build(plan, &sets, &self.chains, None).await?);
        Ok(())
    }

    /// Starts one more route: all of its listeners, or none.
    ///
    /// # Errors
    ///
    /// Returns a [`StartError`] if one of its listeners cannot be opened.
    pub async fn add_route(&self, route: &Route) -> Result<Vec<ListenerInfo>, StartError> {
        let bound = self.bind_route(route, None).await?;
        Ok(self.start_route(&route.name, bound, &mut SharedSockets::default()))
    }

    /// Binds all listeners of a route, or continues their sockets.
    async fn bind_route(
        &self,
        route: &Route,
        inherited: Option<&InheritedSockets>,
    ) -> Result<Vec<BoundListener>, StartError> {
        // Wait before binding: a client that connects too early is then refused by the system and retries,
        // instead of meeting the silence that a request from before the start is answered with.
        if route.listen.iter().any(listener::is_strict_listener) {
            self.wait_past_start_second().await;
        }
        let (sets, dns) = (self.rule_sets(), self.dns_registry());
        let named = NamedResources {
            sets: &sets,
            dns: &dns,
        };
        let mut bound = Vec::with_capacity(route.listen.len());
        for (at, listen) in route.listen.iter().enumerate() {
            let source = SocketSource::new(inherited, &route.name, at);
            let opened = self.bind_listener(route, listen, None, named, source);
            bound.push(opened.await?);
        }
        Ok(bound)
    }

    /// Starts the tasks of all listeners of a route.
    fn start_route(
        &self,
        route: &str,
        bound: Vec<BoundListener>,
        shared: &mut SharedSockets,
    ) -> Vec<ListenerInfo> {
        let start = |(at, bound)| self.start_listener(route, at, bound, shared);
        let begun: Vec<RunningListener> = bound.into_iter().enumerate().map(start).collect();
        let listening = begun.iter().map(|r| r.listening.clone()).collect();
        self.lock_running().extend(begun);
        listening
    }

    /// Closes the listeners of a route and returns true if there were any. Open connections continue;
    /// the sessions of its users and its datagrams end.
    pub fn remove_route(&self, route: &str) -> bool {
        let mut running = self.lock_running();
        let ended: Vec<RunningListener> = running
            .extract_if(.., |r| r.listening.route == route)
            .collect();
        drop(running);
        let any = !ended.is_empty();
        self.count_closed(&ended);
        any
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
        self.count_closed(&ended);
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
            same.map(|r| r.live.router.clone()).collect()
        };
        if routers.is_empty() || routers.len() != route.listen.len() {
            return Ok(false);
        }
        let (sets, dns) = (self.rule_sets(), self.dns_registry());
        let named = NamedResources {
            sets: &sets,
            dns: &dns,
        };
        let mut fresh = Vec::with_capacity(routers.len());
        for listen in &route.listen {
            let router = chain_builder::build_router(route, listen, &self.chains, named, None);
            fresh.push(router.await?);
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
                user_table: r.live.user_table.clone()?,
            })
        };
        self.lock_running().iter().filter_map(server).collect()
    }

    /// Returns the proxy listeners, in the order in which they were opened.
    #[must_use]
    pub fn proxy_servers(&self) -> Vec<ProxyServer> {
        let server = |r: &RunningListener| {
            Some(ProxyServer {
                listening: r.listening.clone(),
                users: r.live.proxy_users.clone()?,
            })
        };
        self.lock_running().iter().filter_map(server).collect()
    }

    /// Returns the users of all listeners, with their limits and usage.
    #[must_use]
    pub const fn user_registry(&self) -> &Arc<UserRegistry> {
        &self.registry
    }

    /// Returns the users of the fleet.
    #[must_use]
    pub const fn fleet_users(&self) -> &Arc<FleetUsers> {
        &self.fleet
    }

    /// Announces that the engine will stop to accept, or that it will not after all: it is not ready meanwhile, and
    /// accepts as before.
    pub fn announce_drain(&self, will_drain: bool) {
        self.draining.store(will_drain, Ordering::Relaxed);
    }

    /// Returns the number of connections that are open now.
    #[must_use]
    pub fn open_connections(&self) -> usize {
        self.gate.open_count()
    }

    /// Returns the maximum number of connections, which follows from the limit on open descriptors.
    #[must_use]
    pub fn connection_limit(&self) -> usize {
        self.gate.limit()
    }

    /// Returns the number of UDP associations that are open now.
    #[must_use]
    pub fn open_associations(&self) -> usize {
        self.associations.open_count()
    }

    /// Returns the open sessions, newest first: at most `limit` of them, and the number of all.
    #[must_use]
    pub fn sessions(&self, limit: usize) -> SessionList {
        self.sessions.newest(limit)
    }

    /// Ends a session by its number. Its connections are reset, so that a transfer does not look complete. Returns false
    /// if no such session is open.
    pub fn end_session(&self, id: u64) -> bool {
        self.sessions.end(id)
    }

    /// Returns the time at which the engine started, or the first of the processes that this one succeeds.
    #[must_use]
    pub const fn started(&self) -> UnixTime {
        self.started
    }

    /// Returns payload and session counts of each listener since it was opened, in the order of opening.
    #[must_use]
    pub fn listener_counts(&self) -> Vec<(ListenerInfo, MeterStats)> {
        let running = self.lock_running();
        let each = running.iter();
        each.map(|r| (r.listening.clone(), r.live.meter.stats()))
            .collect()
    }

    /// Returns the sum of the payload and session counts of all listeners, those that were closed included.
    #[must_use]
    pub fn total_counts(&self) -> MeterStats {
        let closed = self.lock_closed().total();
        let running = self.lock_running();
        let each = running.iter().map(|r| r.live.meter.stats());
        each.fold(closed, sum_of)
    }

    /// Returns the counters of the KCP sessions of all listeners and hops.
    #[must_use]
    pub fn kcp_counts(&self) -> crate::carrier::KcpCounts {
        self.chains.kcp.counts()
    }

    /// Returns the groups of the chains in use.
    #[must_use]
    pub fn groups(&self) -> Vec<Arc<GroupState>> {
        self.chains.groups.groups()
    }

    /// Selects the member of a manual group by its name, or by its number from 1. Returns the selections of all
    /// groups, to be stored; `None` if the group is not manual or has no such member.
    pub fn select_member(&self, group: &GroupState, member: &str) -> Option<MemberSelections> {
        self.chains.groups.select_member(group, member)
    }

    /// Returns the rule sets of the plan, which the routers share.
    #[must_use]
    pub fn rule_sets(&self) -> RuleSetTable {
        self.lock_sets().clone()
    }

    /// Returns the DNS tables of the plan, ordered by name.
    #[must_use]
    pub fn dns_tables(&self) -> Vec<Arc<DnsTable>> {
        self.dns_registry().tables().cloned().collect()
    }

    /// Returns the resolver of the plan that runs, for names that belong to no route.
    #[must_use]
    pub fn names(&self) -> NameResolver {
        NameResolver::with_default(self.chains.default_dns.clone())
    }

    fn dns_registry(&self) -> DnsRegistry {
        let dns = self.dns.lock().unwrap_or_else(PoisonError::into_inner);
        dns.clone()
    }

    /// Uses these DNS tables for new routes and for the lookups of their own chains.
    fn use_dns(&self, registry: DnsRegistry) {
        registry.set_default(&self.chains.default_dns);
        let mut dns = self.dns.lock().unwrap_or_else(PoisonError::into_inner);
        *dns = registry;
    }

    /// Stops accepting, and lets open connections continue for at most `drain`.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, nothing is accepted, and open connections continue: [`Self::resume`] accepts again.
    pub async fn drain_and_stop(&self, drain: Duration) {
        self.draining.store(true, Ordering::Relaxed);
        let mut running = std::mem::take(&mut *self.lock_running());
        // The sums continue if the listeners are opened again.
        self.count_closed(&running);
        for listener in &mut running {
            listener.spares_sessions = true;
        }
        for listener in &mut running {
            listener.stop().await;
        }
        self.wait_until_idle(drain).await;
        for listener in &mut running {
            listener.spares_sessions = false;
        }
    }

    /// Binds a listener, which accepts nothing yet.
    async fn bind_listener(
        &self,
        route: &Route,
        listen: &ListenerConfig,
        meters: Option<ListenerMeters>,
        named: NamedResources<'_>,
        source: SocketSource<'_>,
    ) -> Result<BoundListener, StartError> {
        listener::open_listener(route, listen, meters, &self.process_state(named), source).await
    }

    /// Starts the tasks of a bound listener.
    fn start_listener(
        &self,
        route: &str,
        index: usize,
        listener: BoundListener,
        shared: &mut SharedSockets,
    ) -> RunningListener {
        let opened = listener.opened;
        let listening = ListenerInfo {
            addr: opened.addr,
            route: route.to_owned(),
            transports: opened.transports,
            buffers: opened.buffers,
        };
        if let Some(buffers) = listening.buffers {
            debug!("UDP buffers on {}: {buffers}", listening.addr);
        }
        listener.live.sessions.set_listening(route, listening.addr);
        #[cfg(target_os = "linux")]
        listener.resources.resume_plugin();
        RunningListener {
            id: self.last_id.fetch_add(1, Ordering::Relaxed),
            index,
            listening,
            live: listener.live,
            kept: listener.resources,
            parts: ListenerParts::start(opened, shared),
            spares_sessions: false,
        }
    }

    const fn process_state<'a>(&'a self, named: NamedResources<'a>) -> ProcessState<'a> {
        ProcessState {
            gate: &self.gate,
            associations: &self.associations,
            sessions: &self.sessions,
            replays: &self.replays,
            registry: &self.registry,
            fleet: &self.fleet,
            started: self.started,
            chains: &self.chains,
            named,
        }
    }

    /// Keeps the counters of listeners that are about to be dropped.
    fn count_closed(&self, ended: &[RunningListener]) {
        let mut closed = self.lock_closed();
        for listener in ended {
            closed.add(listener.live.meter.clone());
        }
    }

    fn lock_sets(&self) -> MutexGuard<'_, RuleSetTable> {
        self.sets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_closed(&self) -> MutexGuard<'_, ClosedListeners> {
        self.closed.lock().unwrap_or_else(PoisonError::into_inner)
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
