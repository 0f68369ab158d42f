//! Opening one listener of a plan.
//!
//! ```text
//! kind (dialect) ───▶ Served: connections, datagrams, keys ─────┐
//! transport: ports | plugin | transparent | carrier ────────────┴▶ Opened: sockets with their tasks
//! ```
//!
//! [`served`] creates what the dialect needs. Each transport of a listener has a module that binds its
//! address and returns the tasks that serve it: [`ports`], [`transparent`], and [`crate::carrier`].

mod keyed;
mod opened;
mod ports;
mod replays;
mod salts_file;
mod ssh;
mod ssr;
mod transparent;
mod users_file;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use adit_config::{Listen, ListenKind, Proxy as ProxyPlan, Route, Steering};
use adit_kcp::Counters;
use adit_net::limits;
use adit_net::tcp::FastOpen;
use adit_stream::{Limits, Meter};
use adit_wire::{Target, Unix};

pub(crate) use self::keyed::is_strict;
use self::opened::Packets;
pub(crate) use self::opened::{Common, Opened, listen_error, task};
use self::ports::Ports;
pub(crate) use self::replays::Replays;
use self::salts_file::SaltsFile;
use self::users_file::UsersFile;
use crate::acceptor::{Acceptor, Fixed, HttpRules, Intercepted, Proxy, SocksRules};
use crate::carrier;
use crate::chain::router;
use crate::circle;
use crate::credentials::Credentials;
use crate::guard::Guard;
use crate::plugin::Host;
use crate::serve::{Associate, Gate, Worker};
use crate::udp::{Associations, FixedPackets, PacketCodec, Ttl};
use crate::{Roster, Router, StartError};

/// Idle timeout of associations that only carry DNS queries.
const DNS_IDLE: Duration = Duration::from_secs(10);

/// A bound listener. It accepts connections once its tasks run, and ends with them.
pub(crate) struct Listener {
    pub(crate) opened: Opened,
    /// Routes its requests.
    pub(crate) router: Arc<Router>,
    /// Counts its payload and sessions.
    pub(crate) meter: Arc<Meter>,
    /// Its users, if it is keyed.
    pub(crate) roster: Option<Arc<Roster>>,
    pub(crate) kept: Kept,
}

/// The handlers of a dialect's clients.
struct Served {
    /// Serves connections.
    worker: Option<Worker>,
    /// Serve datagrams.
    packets: Option<Packets>,
    /// The users, if the dialect is keyed.
    keyed: Option<KeyedClients>,
}

impl Served {
    /// Serves connections only.
    fn connections(worker: Worker) -> Self {
        Self {
            worker: Some(worker),
            packets: None,
            keyed: None,
        }
    }
}

/// The users of a keyed listener, and the files that belong to them.
struct KeyedClients {
    roster: Arc<Roster>,
    /// The users file.
    users: Option<UsersFile>,
    /// The file that keeps its salts.
    salts: Option<Arc<SaltsFile>>,
}

/// The parts of a listener that have to be ended in order after its tasks.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    plugin: Option<Host>,
    salts: Option<Arc<SaltsFile>>,
}

impl Kept {
    /// Stops the plugin. The salts are written when this is dropped.
    pub(crate) async fn stop(&mut self) {
        if let Some(plugin) = self.plugin.take() {
            plugin.stop().await;
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(salts) = &self.salts {
            salts.write();
        }
    }
}

/// State that all listeners of a process share.
pub(crate) struct Process<'a> {
    pub(crate) gate: &'a Arc<Gate>,
    pub(crate) associations: &'a Arc<Associations>,
    pub(crate) replays: &'a Replays,
    pub(crate) started: Unix,
    pub(crate) kcp: &'a Arc<Counters>,
}

/// Binds a listener. Settings are checked before any socket is opened.
pub(crate) async fn open(
    route: &Route,
    listen: &Listen,
    process: &Process<'_>,
) -> Result<Listener, StartError> {
    let bench = Bench::new(route, listen, process).await?;
    let Served {
        worker,
        packets,
        keyed,
    } = served(&bench)?;
    let (addr, common) = (&listen.addr, bench.common);
    let mut kept = Kept {
        plugin: None,
        salts: keyed.as_ref().and_then(|keyed| keyed.salts.clone()),
    };
    let mut opened = match (&listen.kind, &listen.carried, worker) {
        (ListenKind::Transparent(plan), _, Some(worker)) => {
            transparent::open(plan, worker, addr, &common).await?
        }
        (_, Some(carried), worker) => {
            carrier::open(listen, carried, worker, &common, process.kcp).await?
        }
        (kind, None, worker) => {
            let ports = Ports {
                worker,
                packets,
                fast_open: fast_open(kind),
            };
            match kind.plugin() {
                None => ports.open(addr, &common).await?,
                Some(plugin) => {
                    let (opened, host) = ports.open_behind(plugin, addr, &common).await?;
                    kept.plugin = Some(host);
                    opened
                }
            }
        }
    };
    let mut roster = None;
    if let Some(keyed) = keyed {
        roster = Some(keyed.roster.clone());
        let users = keyed.users.map(|users| task(users.watch(keyed.roster)));
        let salts = keyed.salts.map(|salts| task(salts.keep()));
        opened.tasks.extend(users.into_iter().chain(salts));
    }
    Ok(Listener {
        opened,
        router: common.router,
        meter: common.meter,
        roster,
        kept,
    })
}

/// Creates the handlers for a kind of listener.
fn served(bench: &Bench<'_>) -> Result<Served, StartError> {
    let listen = bench.listen;
    Ok(match &listen.kind {
        ListenKind::Proxy(proxy) => {
            let mut worker = bench.worker(Box::new(proxy_acceptor(proxy, listen)));
            worker.associate = Associate {
                advertise: proxy.udp_advertise,
                reassemble: proxy.udp_reassembly,
            };
            Served::connections(worker)
        }
        ListenKind::Shadowsocks(server) => keyed::served(server, bench)?,
        ListenKind::ShadowsocksR(server) => ssr::served(server, bench)?,
        ListenKind::Ssh(server) => ssh::served(server, bench)?,
        ListenKind::Transparent(plan) => {
            if plan.steering == Steering::Redirect {
                circle::listens_on_all();
            }
            let acceptor = Intercepted {
                steering: plan.steering,
                port: listen.addr.port,
            };
            Served::connections(bench.worker(Box::new(acceptor)))
        }
        ListenKind::Forward(forward) => {
            // Without a target the last hop chooses it, and this one is never used.
            let nowhere = || Target::from(SocketAddr::from(([0u8; 4], 0)));
            let target = &forward.target.clone().unwrap_or_else(nowhere);
            let fixed = Fixed {
                target: target.clone(),
            };
            let mut worker = bench.worker(Box::new(fixed));
            worker.first_wait = Some(forward.first_wait);
            let codec = || -> Box<dyn PacketCodec> {
                Box::new(FixedPackets {
                    target: target.clone(),
                })
            };
            let ttl = bench.common.ttl;
            Served {
                worker: forward.tcp.then_some(worker),
                packets: forward.udp.then(|| (for_each_core(codec), ttl)),
                keyed: None,
            }
        }
    })
}

fn fast_open(kind: &ListenKind) -> FastOpen {
    let wanted = match kind {
        ListenKind::Shadowsocks(server) => server.fast_open,
        ListenKind::ShadowsocksR(server) => server.fast_open,
        _ => false,
    };
    if wanted { FastOpen::On } else { FastOpen::Off }
}

/// Returns a codec for each socket, for codecs that share no state.
fn for_each_core(codec: impl Fn() -> Box<dyn PacketCodec>) -> Vec<Box<dyn PacketCodec>> {
    (0..limits::udp_sockets()).map(|_| codec()).collect()
}

/// The inputs that every kind of listener is created from.
struct Bench<'a> {
    listen: &'a Listen,
    common: Common,
    guard: Arc<Guard>,
    sources: bool,
    gate: Arc<Gate>,
    replays: &'a Replays,
    started: Unix,
}

impl<'a> Bench<'a> {
    async fn new(
        route: &Route,
        listen: &'a Listen,
        process: &Process<'a>,
    ) -> Result<Self, StartError> {
        let max = listen.limits.max_connections.unwrap_or(usize::MAX);
        let gate = Arc::new(Gate::new(max, Some(process.gate.clone())));
        // Behind a plugin all clients have a loopback address.
        let sources = !listen.addr.is_loopback() && listen.kind.plugin().is_none();
        Ok(Self {
            listen,
            common: Common {
                router: Arc::new(router(route, listen, process.kcp).await?),
                meter: Arc::default(),
                share: process.associations.of_listener(sources),
                ttl: Ttl {
                    idle: listen.limits.udp_idle,
                    dns: DNS_IDLE.min(listen.limits.udp_idle),
                },
            },
            guard: Arc::new(Guard::new(gate.limit())),
            sources,
            gate,
            replays: process.replays,
            started: process.started,
        })
    }

    fn worker(&self, acceptor: Box<dyn Acceptor>) -> Worker {
        let limits = &self.listen.limits;
        let Common {
            router,
            meter,
            share,
            ttl,
        } = self.common.clone();
        Worker {
            acceptor,
            router,
            limits: Limits {
                idle: limits.idle,
                half_close_idle: limits.half_close_idle,
            },
            meter,
            ttl,
            associate: Associate::default(),
            guard: Some(self.guard.clone()),
            sources: self.sources,
            proxied: self.listen.proxy_protocol.then_some(limits.handshake),
            first_wait: None,
            over_tcp: false,
            gate: self.gate.clone(),
            share,
            over: None,
        }
    }
}

fn proxy_acceptor(proxy: &ProxyPlan, listen: &Listen) -> Proxy {
    let credentials = Arc::new(Credentials::new(&proxy.users));
    let deadline = listen.limits.handshake;
    Proxy {
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
