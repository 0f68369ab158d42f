//! Opening one listener of a plan.
//!
//! ```text
//! kind (dialect) ───▶ Served: connections, datagrams, keys ─────┐
//! transport: ports | plugin | transparent | carrier ────────────┴▶ Opened: sockets with their tasks
//! ```
//!
//! [`build_handlers`] creates what the dialect needs. Each transport of a listener has a module that binds its
//! address and returns the tasks that serve it: [`ports`], [`transparent`], and [`crate::carrier`].

mod change;
mod dns;
mod keyed;
mod open_sockets;
mod ports;
mod proxy_users;
mod replay_handover;
mod replay_state;
mod salts_file;
mod ssh;
mod ssr;
mod ssr_stores;
mod transparent;
mod users_file;

#[cfg(target_os = "linux")]
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use adit_config::{
    Family, InterceptMethod, LeftOut, ListenerConfig, ListenerKind, ProxyListener as ProxyPlan,
    Route, SsrServer, UserPassword,
};
use adit_net::limits;
use adit_net::tcp::FastOpen;
use adit_shadowsocks::Users;
use adit_stream::{RelayTimeouts, TrafficMeter};
use adit_wire::{Target, UnixTime};

pub(crate) use self::change::{ListenerChange, ListenerParts, PartsShape};
pub(crate) use self::keyed::is_strict_listener;
use self::open_sockets::PacketHandlers;
pub(crate) use self::open_sockets::{ListenerState, ListenerTask, OpenSockets, box_task};
#[cfg(feature = "kcp")]
pub(crate) use self::open_sockets::{StreamService, StreamTask, listen_error};
use self::ports::PortHandlers;
pub use self::proxy_users::ProxyUsers;
pub use self::replay_handover::{ReplayPart, ReplayPartError};
pub(crate) use self::replay_state::ReplayRegistry;
use self::salts_file::SaltsFile;
use self::ssr::SsrState;
use self::users_file::UsersFile;
use crate::acceptor::{
    FixedTarget, HttpRules, InterceptedAcceptor, ProxyAcceptor, RequestAcceptor, SocksRules,
};
use crate::carrier;
use crate::chain_builder::{ChainResources, NamedResources, build_router};
use crate::credentials::ListenerCredentials;
use crate::fleet::FleetUsers;
use crate::handover::SocketSource;
use crate::handshake_limiter::HandshakeLimiter;
use crate::loop_detection;
#[cfg(target_os = "linux")]
use crate::plugin::HandedOverPlugin;
use crate::plugin::PluginHost;
use crate::serve::{ConnectionHandler, ConnectionLimiter, LoginTable, UdpAssociateOptions};
use crate::session_table::{ListenerSessions, SessionTable};
use crate::stage_meter::{ListenerMeters, StageMeter};
use crate::udp::{
    AssociationRegistry, AssociationTtl, FixedTargetPackets, ListenerQuota, PacketCodec,
};
use crate::{Router, StartError, Usage, UserRegistry, UserTable};

/// Idle timeout of associations that only carry DNS queries.
const DNS_IDLE: Duration = Duration::from_secs(10);

/// A bound listener. It accepts connections once its tasks run, and ends with them.
pub(crate) struct BoundListener {
    pub(crate) opened: OpenSockets,
    pub(crate) live: LiveState,
    pub(crate) resources: ListenerResources,
}

/// The state of a listener that outlives its handlers when a reload replaces them.
#[derive(Clone)]
pub(crate) struct LiveState {
    /// Routes its requests.
    pub(crate) router: Arc<Router>,
    /// Counts its payload and sessions.
    pub(crate) meter: Arc<TrafficMeter>,
    /// Its open sessions.
    pub(crate) sessions: Arc<ListenerSessions>,
    /// Measures the stages of its connections.
    pub(crate) stages: Arc<StageMeter>,
    /// Its users, if it is keyed.
    pub(crate) user_table: Option<Arc<UserTable>>,
    quota: Arc<ListenerQuota>,
    gate: Arc<ConnectionLimiter>,
    guard: Arc<HandshakeLimiter>,
    logins: Arc<LoginTable>,
    /// Its users, if it is a proxy.
    pub(crate) proxy_users: Option<Arc<ProxyUsers>>,
    ssr: Option<SsrState>,
}

impl LiveState {
    /// Returns the meters, for a listener that replaces this one.
    pub(crate) fn meters(&self) -> ListenerMeters {
        ListenerMeters {
            traffic: self.meter.clone(),
            stages: self.stages.clone(),
        }
    }

    /// Returns the usage of the users with passwords.
    pub(crate) fn login_usages(&self) -> Vec<(String, Usage)> {
        self.logins.usages()
    }
}

/// A listener that a reload changes or replaces: its settings and its state.
#[derive(Clone, Copy)]
pub(crate) struct PreviousListener<'a> {
    pub(crate) config: &'a ListenerConfig,
    pub(crate) live: &'a LiveState,
}

/// The handlers of a dialect's clients.
struct ListenerHandlers {
    /// Serves connections.
    worker: Option<ConnectionHandler>,
    /// Serve datagrams.
    packets: Option<PacketHandlers>,
    /// The users, if the dialect is keyed.
    keyed: Option<KeyedState>,
    /// The users of a proxy.
    proxy_users: Option<Arc<ProxyUsers>>,
    /// The state of ShadowsocksR.
    ssr: Option<SsrState>,
}

impl ListenerHandlers {
    /// Serves connections only.
    fn connections_only(worker: ConnectionHandler) -> Self {
        Self {
            worker: Some(worker),
            packets: None,
            keyed: None,
            proxy_users: None,
            ssr: None,
        }
    }
}

/// The users of a keyed listener, and the files that belong to them.
struct KeyedState {
    user_table: Arc<UserTable>,
    /// The users of the settings, and the file that they were read from.
    configured: Arc<Users>,
    file: Option<PathBuf>,
    /// The users file.
    users: Option<UsersFile>,
    /// The file that keeps its salts.
    salts: Option<Arc<SaltsFile>>,
}

/// The parts of a listener that have to be ended in order after its tasks.
#[derive(Debug, Default)]
pub(crate) struct ListenerResources {
    plugin: Option<PluginHost>,
    salts: Option<Arc<SaltsFile>>,
}

impl ListenerResources {
    /// Leaves the salts file to a successor, which has the salts, and the plugin.
    pub(crate) fn leave_to_successor(&mut self) -> impl Future<Output = ()> + Send + use<> {
        if let Some(salts) = self.salts.take() {
            salts.stop_writing();
        }
        let plugin = self.plugin.take();
        async {
            #[cfg(target_os = "linux")]
            if let Some(plugin) = plugin {
                plugin.release().await;
            }
            #[cfg(not(target_os = "linux"))]
            drop(plugin);
        }
    }

    /// Returns the plugin for a successor, which is not restarted until [`Self::resume_plugin`].
    #[cfg(target_os = "linux")]
    pub(crate) fn hand_over_plugin(
        &self,
    ) -> Option<impl Future<Output = io::Result<Option<HandedOverPlugin>>> + Send + use<>> {
        self.plugin.as_ref().map(PluginHost::hand_over)
    }

    /// Supervises the plugin again, or takes over that of the process which this one succeeds.
    #[cfg(target_os = "linux")]
    pub(crate) fn resume_plugin(&self) {
        if let Some(plugin) = &self.plugin {
            plugin.resume();
        }
    }

    /// Stops the plugin. The salts are written when this is dropped.
    pub(crate) async fn stop_plugin(&mut self) {
        if let Some(plugin) = self.plugin.take() {
            plugin.stop_plugin().await;
        }
    }
}

impl Drop for ListenerResources {
    fn drop(&mut self) {
        if let Some(salts) = &self.salts {
            salts.write();
        }
    }
}

/// State that all listeners of a process share.
pub(crate) struct ProcessState<'a> {
    pub(crate) gate: &'a Arc<ConnectionLimiter>,
    pub(crate) associations: &'a Arc<AssociationRegistry>,
    pub(crate) sessions: &'a Arc<SessionTable>,
    pub(crate) replays: &'a ReplayRegistry,
    /// The users of the process.
    pub(crate) registry: &'a Arc<UserRegistry>,
    /// The users of the fleet.
    pub(crate) fleet: &'a Arc<FleetUsers>,
    pub(crate) started: UnixTime,
    pub(crate) chains: &'a ChainResources,
    /// The rule sets and the DNS tables of the plan.
    pub(crate) named: NamedResources<'a>,
}

/// Binds a listener, or continues the sockets of `source`. Settings are checked before any socket is opened. It counts
/// on from `meters`, if it replaces another listener.
pub(crate) async fn open_listener(
    route: &Route,
    listen: &ListenerConfig,
    meters: Option<ListenerMeters>,
    process: &ProcessState<'_>,
    source: SocketSource<'_>,
) -> Result<BoundListener, StartError> {
    let router = build_router(route, listen, process.chains, process.named, None);
    let router = Arc::new(router.await?);
    let bench = ListenerBuilder::new(listen, router, meters.unwrap_or_default(), process);
    let ListenerHandlers {
        worker,
        packets,
        keyed,
        proxy_users,
        ssr,
    } = build_handlers(&bench)?;
    let live = bench.live_state(keyed.as_ref(), proxy_users.clone(), ssr);
    let (addr, common) = (&listen.addr, bench.common);
    let mut kept = ListenerResources {
        plugin: None,
        salts: keyed.as_ref().and_then(|keyed| keyed.salts.clone()),
    };
    let mut opened = match (&listen.kind, &listen.carrier, worker) {
        (ListenerKind::Transparent(plan), _, Some(worker)) => {
            transparent::open_transparent(plan, worker, addr, &common, source).await?
        }
        (ListenerKind::Dns(plan), ..) => {
            dns::open_dns(plan, listen, &common, process.chains, source).await?
        }
        (_, Some(carried), worker) => {
            carrier::open_carrier(
                listen,
                carried,
                worker,
                &common,
                &process.chains.kcp,
                source,
            )
            .await?
        }
        (kind, None, worker) => {
            let ports = PortHandlers {
                worker,
                packets,
                fast_open: fast_open_mode(kind),
            };
            match kind.plugin() {
                None => ports.bind_ports(addr, &common, source).await?,
                Some(plugin) => {
                    let bound = ports.bind_behind_plugin(plugin, addr, &common, source);
                    let (opened, host) = bound.await?;
                    kept.plugin = Some(host);
                    opened
                }
            }
        }
    };
    if let Some(keyed) = keyed {
        opened.tasks.extend(keyed.into_tasks());
    }
    opened
        .tasks
        .extend(proxy_users.and_then(ProxyUsers::watch_task));
    Ok(BoundListener {
        opened,
        live,
        resources: kept,
    })
}

impl KeyedState {
    /// Returns the tasks that watch the users file and write the salts.
    fn into_tasks(self) -> impl Iterator<Item = ListenerTask> {
        let watch = |users: UsersFile| box_task(users.watch_for_changes(self.user_table));
        let users = self.users.map(watch);
        let salts = self.salts.map(|salts| box_task(salts.write_periodically()));
        users.into_iter().chain(salts)
    }
}

/// Checks the settings of a listener that replaces a running one, and can only be opened when that is closed.
pub(crate) fn check_settings(
    listen: &ListenerConfig,
    running: &LiveState,
    process: &ProcessState<'_>,
) -> Result<(), StartError> {
    let (router, meters) = (running.router.clone(), running.meters());
    build_handlers(&ListenerBuilder::new(listen, router, meters, process)).map(drop)
}

/// Creates the handlers for a kind of listener.
fn build_handlers(bench: &ListenerBuilder<'_>) -> Result<ListenerHandlers, StartError> {
    let listen = bench.listen;
    Ok(match &listen.kind {
        ListenerKind::Proxy(proxy) => {
            let credentials = bench.credentials(&proxy.users)?;
            let credentials = Arc::new(credentials);
            let users = ProxyUsers::new(listen, proxy, credentials.clone(), bench.logins.clone());
            let acceptor = build_proxy_acceptor(proxy, listen, credentials);
            let mut worker = bench.build_worker(Box::new(acceptor));
            worker.associate = UdpAssociateOptions {
                advertise: proxy.udp_advertise,
                reassemble: proxy.udp_reassembly,
            };
            ListenerHandlers {
                proxy_users: Some(Arc::new(users)),
                ..ListenerHandlers::connections_only(worker)
            }
        }
        ListenerKind::Shadowsocks(server) => keyed::build_handlers(server, bench)?,
        ListenerKind::ShadowsocksR(_) if !cfg!(feature = "ssr") => {
            return Err(StartError::LeftOut(LeftOut(Family::Ssr)));
        }
        ListenerKind::ShadowsocksR(server) => ssr::build_handlers(server, bench)?,
        ListenerKind::Ssh(server) => ssh::build_handlers(server, bench)?,
        ListenerKind::Transparent(plan) => {
            if plan.method == InterceptMethod::Redirect {
                loop_detection::register_all_ports();
            }
            let acceptor = InterceptedAcceptor {
                steering: plan.method,
                port: listen.addr.port,
            };
            ListenerHandlers::connections_only(bench.build_worker(Box::new(acceptor)))
        }
        // Its sockets have tasks of their own.
        ListenerKind::Dns(_) => ListenerHandlers {
            worker: None,
            packets: None,
            keyed: None,
            proxy_users: None,
            ssr: None,
        },
        ListenerKind::Forward(forward) => {
            // Without a target the last hop chooses it, and this one is never used.
            let nowhere = || Target::from(SocketAddr::from(([0u8; 4], 0)));
            let target = &forward.target.clone().unwrap_or_else(nowhere);
            let fixed = FixedTarget {
                target: target.clone(),
            };
            let mut worker = bench.build_worker(Box::new(fixed));
            worker.first_wait = Some(forward.first_wait);
            let codec = || -> Box<dyn PacketCodec> {
                Box::new(FixedTargetPackets {
                    target: target.clone(),
                })
            };
            let ttl = bench.common.ttl;
            ListenerHandlers {
                worker: forward.tcp.then_some(worker),
                packets: forward.udp.then(|| (codec_per_socket(codec), ttl)),
                keyed: None,
                proxy_users: None,
                ssr: None,
            }
        }
    })
}

fn fast_open_mode(kind: &ListenerKind) -> FastOpen {
    let wanted = match kind {
        ListenerKind::Shadowsocks(server) => server.fast_open,
        ListenerKind::ShadowsocksR(server) => server.fast_open,
        _ => false,
    };
    if wanted { FastOpen::On } else { FastOpen::Off }
}

/// Returns a codec for each socket, for codecs that share no state.
fn codec_per_socket(codec: impl Fn() -> Box<dyn PacketCodec>) -> Vec<Box<dyn PacketCodec>> {
    (0..limits::udp_socket_count()).map(|_| codec()).collect()
}

fn association_ttl(listen: &ListenerConfig) -> AssociationTtl {
    AssociationTtl {
        idle: listen.limits.udp_idle,
        dns: DNS_IDLE.min(listen.limits.udp_idle),
    }
}

/// Returns true if the sources of a listener's clients differ by address.
fn limits_sources(listen: &ListenerConfig) -> bool {
    // Behind a plugin all clients have a loopback address.
    !listen.addr.is_loopback() && listen.kind.plugin().is_none()
}

/// The inputs that every kind of listener is created from.
struct ListenerBuilder<'a> {
    listen: &'a ListenerConfig,
    common: ListenerState,
    stages: Arc<StageMeter>,
    guard: Arc<HandshakeLimiter>,
    limits_sources: bool,
    gate: Arc<ConnectionLimiter>,
    replays: &'a ReplayRegistry,
    started: UnixTime,
    logins: Arc<LoginTable>,
    registry: &'a Arc<UserRegistry>,
    fleet: &'a Arc<FleetUsers>,
    previous: Option<PreviousListener<'a>>,
}

impl<'a> ListenerBuilder<'a> {
    fn new(
        listen: &'a ListenerConfig,
        router: Arc<Router>,
        meters: ListenerMeters,
        process: &ProcessState<'a>,
    ) -> Self {
        let max = listen.limits.max_connections.unwrap_or(usize::MAX);
        let gate = Arc::new(ConnectionLimiter::new(max, Some(process.gate.clone())));
        let sources = limits_sources(listen);
        Self {
            listen,
            common: ListenerState {
                router,
                sessions: ListenerSessions::new(process.sessions.clone(), meters.clone()),
                share: process.associations.register_listener(sources),
                ttl: association_ttl(listen),
            },
            stages: meters.stages,
            guard: Arc::new(HandshakeLimiter::new(gate.limit())),
            limits_sources: sources,
            gate,
            replays: process.replays,
            started: process.started,
            logins: Arc::new(
                LoginTable::new(&listen.kind, process.registry)
                    .with_fleet(listen.kind.has_fleet_logins().then_some(process.fleet)),
            ),
            registry: process.registry,
            fleet: process.fleet,
            previous: None,
        }
    }

    /// Creates the builder of the handlers that replace those of a running listener.
    fn for_change(
        listen: &'a ListenerConfig,
        previous: PreviousListener<'a>,
        process: &ProcessState<'a>,
    ) -> Self {
        let live = previous.live;
        let limit = |listen: &ListenerConfig| listen.limits.max_connections;
        let same_limit = limit(listen) == limit(previous.config);
        let guard = match same_limit {
            true => live.guard.clone(),
            // Its capacity follows from the limit.
            false => {
                let max = limit(listen).unwrap_or(usize::MAX);
                Arc::new(HandshakeLimiter::new(max.min(process.gate.limit())))
            }
        };
        Self {
            listen,
            common: ListenerState {
                router: live.router.clone(),
                sessions: live.sessions.clone(),
                share: live.quota.clone(),
                ttl: association_ttl(listen),
            },
            stages: live.stages.clone(),
            guard,
            limits_sources: limits_sources(listen),
            gate: live.gate.clone(),
            replays: process.replays,
            started: process.started,
            logins: Arc::new(
                live.logins
                    .successor(&listen.kind, process.registry)
                    .with_fleet(listen.kind.has_fleet_logins().then_some(process.fleet)),
            ),
            registry: process.registry,
            fleet: process.fleet,
            previous: Some(previous),
        }
    }

    /// Returns the users with passwords, with those of the fleet if the listener has them.
    fn credentials(&self, users: &[UserPassword]) -> Result<ListenerCredentials, StartError> {
        let credentials = ListenerCredentials::new(users);
        match self.listen.kind.has_fleet_users() {
            true => Ok(credentials.with_fleet(self.fleet.logins()?)),
            false => Ok(credentials),
        }
    }

    /// Returns the user table of the previous listener, if this one continues it.
    fn previous_table(&self, continues: impl Fn(&ListenerKind) -> bool) -> Option<Arc<UserTable>> {
        let previous = self.previous.filter(|p| continues(&p.config.kind))?;
        previous.live.user_table.clone()
    }

    /// Returns the settings and the state of the previous ShadowsocksR listener.
    fn previous_ssr(&self) -> Option<(&'a SsrServer, &'a SsrState)> {
        let previous = self.previous?;
        match &previous.config.kind {
            ListenerKind::ShadowsocksR(server) => Some((server, previous.live.ssr.as_ref()?)),
            _ => None,
        }
    }

    fn live_state(
        &self,
        keyed: Option<&KeyedState>,
        proxy_users: Option<Arc<ProxyUsers>>,
        ssr: Option<SsrState>,
    ) -> LiveState {
        LiveState {
            router: self.common.router.clone(),
            meter: self.common.sessions.meter().clone(),
            sessions: self.common.sessions.clone(),
            stages: self.stages.clone(),
            user_table: keyed.map(|keyed| keyed.user_table.clone()),
            quota: self.common.share.clone(),
            gate: self.gate.clone(),
            guard: self.guard.clone(),
            logins: self.logins.clone(),
            proxy_users,
            ssr,
        }
    }

    fn build_worker(&self, acceptor: Box<dyn RequestAcceptor>) -> ConnectionHandler {
        let limits = &self.listen.limits;
        let ListenerState {
            router,
            sessions,
            share,
            ttl,
        } = self.common.clone();
        ConnectionHandler {
            acceptor,
            router,
            limits: RelayTimeouts::NEVER
                .with_idle(limits.idle)
                .with_half_close_idle(limits.half_close_idle),
            meter: sessions.meter().clone(),
            sessions,
            stages: self.stages.clone(),
            ttl,
            associate: UdpAssociateOptions::default(),
            guard: Some(self.guard.clone()),
            limits_sources: self.limits_sources,
            proxy_header_timeout: self.listen.proxy_protocol.then_some(limits.handshake),
            first_wait: None,
            over_tcp: false,
            sniffs_names: self.listen.sniff,
            connection_limiter: self.gate.clone(),
            udp_quota: share,
            logins: self.logins.clone(),
            listener_ended: None,
        }
    }
}

fn build_proxy_acceptor(
    proxy: &ProxyPlan,
    listen: &ListenerConfig,
    credentials: Arc<ListenerCredentials>,
) -> ProxyAcceptor {
    let deadline = listen.limits.handshake;
    ProxyAcceptor {
        socks: proxy.socks5.then(|| SocksRules {
            credentials: credentials.clone(),
            socks4: proxy.socks4,
            udp: proxy.udp,
            bind: proxy.bind,
            hide_bind: proxy.hide_bind,
        }),
        http: proxy.http.then(|| HttpRules {
            credentials,
            deadline,
            verbose: proxy.verbose_errors,
        }),
        deadline,
    }
}
