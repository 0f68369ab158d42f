//! One listener of a plan.
//!
//! ```text
//! kind (dialect) ─▶ Served: connections, datagrams, keys ─┐
//! way to it: ports | plugin | transparent | carrier ──────┴▶ Opened: sockets with their tasks
//! ```
//!
//! [`served`] makes what the dialect needs, and each way to a listener has a module that binds it
//! and says which tasks serve it: [`ports`], [`transparent`], and [`crate::carrier`].

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

/// Associations that only ask for names.
const DNS_IDLE: Duration = Duration::from_secs(10);

/// A listener that is bound; it accepts once its tasks run, and ends with them.
pub(crate) struct Listener {
    pub(crate) opened: Opened,
    /// The ways of its requests.
    pub(crate) router: Arc<Router>,
    /// The counters.
    pub(crate) meter: Arc<Meter>,
    /// Whom it serves, if it has keys.
    pub(crate) roster: Option<Arc<Roster>>,
    pub(crate) kept: Kept,
}

/// What serves the clients of a dialect.
struct Served {
    /// Connections.
    worker: Option<Worker>,
    /// Datagrams.
    packets: Option<Packets>,
    /// Who they are, where they have keys.
    keyed: Option<KeyedClients>,
}

impl Served {
    /// Connections alone.
    fn connections(worker: Worker) -> Self {
        Self {
            worker: Some(worker),
            packets: None,
            keyed: None,
        }
    }
}

/// Whom a listener with keys serves, and what it keeps in files.
struct KeyedClients {
    roster: Arc<Roster>,
    /// Where its users are kept.
    users: Option<UsersFile>,
    /// Where its salts are kept.
    salts: Option<Arc<SaltsFile>>,
}

/// What a listener has besides its tasks, and what must be ended in order.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    plugin: Option<Host>,
    salts: Option<Arc<SaltsFile>>,
}

impl Kept {
    /// Ends the plugin and writes what a restart needs.
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

/// What all listeners of a process share.
pub(crate) struct Process<'a> {
    pub(crate) gate: &'a Arc<Gate>,
    pub(crate) associations: &'a Arc<Associations>,
    pub(crate) replays: &'a Replays,
    pub(crate) started: Unix,
    pub(crate) kcp: &'a Arc<Counters>,
}

/// Binds a listener. What its kind needs is made before there are sockets.
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

/// What serves the clients of each kind of listener.
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
            // Without one the far end of the chain has it, and nobody asks for this.
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

/// A codec for each socket, where what one knows is of no use to the others.
fn for_each_core(codec: impl Fn() -> Box<dyn PacketCodec>) -> Vec<Box<dyn PacketCodec>> {
    (0..limits::udp_sockets()).map(|_| codec()).collect()
}

/// What every kind of listener is made from.
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
        // Behind a plugin everybody comes from loopback.
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
