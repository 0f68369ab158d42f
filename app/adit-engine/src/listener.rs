//! One listener of a plan: what serves its connections, what serves its datagrams, its sockets.

mod keyed;
mod replays;
mod salts_file;
mod ssh;
mod ssr;
mod users_file;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use adit_config::{Listen, ListenKind, Proxy as ProxyPlan, Route, Steering};
use adit_kcp::Counters;
use adit_net::tcp::FastOpen;
use adit_net::{accept, limits};
use adit_stream::{Limits, Meter};
use adit_wire::{Host as WireHost, Target, Unix};
use tokio::sync::watch;
use tokio::task::JoinSet;

pub(crate) use self::keyed::is_strict;
pub(crate) use self::replays::Replays;
use self::salts_file::SaltsFile;
use self::users_file::UsersFile;
use crate::acceptor::{Acceptor, Fixed, Intercepted, Languages, Proxy};
use crate::carrier::{self, Bound};
use crate::chain::{router, spec};
use crate::circle;
use crate::credentials::Credentials;
use crate::guard::Guard;
use crate::listen_port::{self, Sockets};
use crate::plugin::{Host, Side};
use crate::serve::{Associate, Gate, Worker, accept_loop};
use crate::udp::{Associations, FixedPackets, Listener as Table, PacketCodec, Share, Ttl};
use crate::{Roster, Router, StartError};

/// Associations that only ask for names.
const DNS_IDLE: Duration = Duration::from_secs(10);

/// A listener without its sockets.
pub(crate) struct Prepared {
    router: Arc<Router>,
    meter: Arc<Meter>,
    share: Arc<Share>,
    ttl: Ttl,
    served: Served,
}

/// What serves the clients of a listener.
#[derive(Default)]
struct Served {
    worker: Option<Worker>,
    packets: Option<Packets>,
    /// Whom it serves, if it has keys.
    roster: Option<Arc<Roster>>,
    /// Where its users are kept.
    users: Option<UsersFile>,
    /// Where its salts are kept.
    salts: Option<Arc<SaltsFile>>,
}

/// The datagram codecs of a listener, one for each of its sockets, and how long associations are
/// kept.
type Packets = (Vec<Box<dyn PacketCodec>>, Ttl);

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

/// Makes everything that needs no socket for clients.
pub(crate) async fn prepare(
    route: &Route,
    listen: &Listen,
    process: &Process<'_>,
) -> Result<Prepared, StartError> {
    let bench = Bench::new(route, listen, process).await?;
    let served = match &listen.kind {
        ListenKind::Proxy(proxy) => {
            let mut worker = bench.worker(Box::new(proxy_acceptor(proxy, listen)));
            worker.associate = Associate {
                advertise: proxy.udp_advertise,
                reassemble: proxy.udp_reassembly,
            };
            Served {
                worker: Some(worker),
                ..Served::default()
            }
        }
        ListenKind::Shadowsocks(server) => keyed::prepare(server, &bench)?,
        ListenKind::ShadowsocksR(server) => ssr::prepare(server, &bench)?,
        ListenKind::Ssh(server) => ssh::prepare(server, &bench)?,
        ListenKind::Transparent(plan) => {
            if plan.steering == Steering::Redirect {
                circle::listens_on_all();
            }
            let acceptor = Intercepted {
                steering: plan.steering,
                port: listen.addr.port,
            };
            Served {
                worker: Some(bench.worker(Box::new(acceptor))),
                ..Served::default()
            }
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
            Served {
                worker: forward.tcp.then_some(worker),
                packets: forward.udp.then(|| (for_each_core(codec), bench.ttl)),
                ..Served::default()
            }
        }
    };
    Ok(Prepared {
        router: bench.router,
        meter: bench.meter,
        share: bench.share,
        ttl: bench.ttl,
        served,
    })
}

impl Prepared {
    /// Binds the listener's address, behind a plugin if there is one.
    pub(crate) async fn bind(
        &self,
        listen: &Listen,
        kcp: &Arc<Counters>,
    ) -> Result<(Sockets, Kept), StartError> {
        let fast = match &listen.kind {
            ListenKind::Shadowsocks(server) => server.fast_open,
            ListenKind::ShadowsocksR(server) => server.fast_open,
            _ => false,
        };
        let tcp = self.served.worker.as_ref().map(|_| match fast {
            true => FastOpen::On,
            false => FastOpen::Off,
        });
        let codecs = self.served.packets.as_ref();
        let udp = codecs.map_or(0, |(codecs, _)| codecs.len());
        let failed = |why| StartError::Listen {
            addr: listen.addr.to_string(),
            why,
        };
        let (host, port) = (&listen.addr.host, listen.addr.port);
        let mut kept = Kept {
            plugin: None,
            salts: self.served.salts.clone(),
        };
        if let ListenKind::Transparent(plan) = &listen.kind {
            let taken = listen_port::bind_transparent(host, port, plan).await;
            return Ok((taken.map_err(failed)?, kept));
        }
        if let Some(carried) = &listen.carried {
            return Ok((carrier::bind(listen, carried, kcp).await?, kept));
        }
        let Some(plugin) = listen.kind.plugin() else {
            let sockets = listen_port::bind(host, port, tcp, udp)
                .await
                .map_err(failed)?;
            return Ok((sockets, kept));
        };
        let spec = spec(plugin);
        let (inner_tcp, inner_udp) = (
            tcp.filter(|_| spec.mode.tcp()),
            if spec.mode.udp() { udp } else { 0 },
        );
        let outer_tcp = tcp.filter(|_| inner_tcp.is_none());
        let outer_udp = udp - inner_udp;
        let here = Some(std::net::Ipv4Addr::LOCALHOST.into());
        let inner = listen_port::bind(&here.map(WireHost::Ip), 0, inner_tcp, inner_udp).await;
        let inner = inner.map_err(failed)?;
        let public = listen_port::address(host, port).await.map_err(failed)?;
        let outer = match (outer_tcp, outer_udp) {
            (None, 0) => None,
            (tcp, udp) => Some(
                listen_port::bind(host, port, tcp, udp)
                    .await
                    .map_err(failed)?,
            ),
        };
        let side = Side::Server {
            public,
            local: inner.addr,
        };
        kept.plugin = Some(Host::start(spec, side).await?);
        let (outer_tcp, outer_udp) = outer.map_or_else(Default::default, |o| (o.tcp, o.udp));
        let sockets = Sockets {
            addr: public,
            tcp: inner.tcp.or(outer_tcp),
            udp: inner.udp.into_iter().chain(outer_udp).collect(),
            taken: None,
            carried: None,
        };
        Ok((sockets, kept))
    }

    /// The ways of its requests.
    pub(crate) fn router(&self) -> Arc<Router> {
        self.router.clone()
    }

    /// The counters.
    pub(crate) fn meter(&self) -> Arc<Meter> {
        self.meter.clone()
    }

    /// Whom it serves, if it has keys.
    pub(crate) fn roster(&self) -> Option<Arc<Roster>> {
        self.served.roster.clone()
    }

    /// Begins to accept; the listener ends with its tasks.
    pub(crate) fn run(self, sockets: Sockets) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        let mut served = self.served;
        match (
            sockets.carried,
            served.worker.take_if(|_| sockets.tcp.is_none()),
        ) {
            (Some(Bound::Kcp(listener, smux)), Some(worker)) => {
                let worker = Arc::new(worker);
                tasks.spawn(carrier::sessions(listener, smux, worker, sockets.addr));
            }
            (Some(Bound::Fec(listener, target)), _) => {
                let (router, meter) = (self.router.clone(), self.meter.clone());
                let share = self.share.clone();
                let lanes = carrier::lanes(listener, target, router, meter, self.ttl, share);
                tasks.spawn(lanes);
            }
            _ => {}
        }
        if let (Some(mut worker), Some(socket)) = (served.worker, sockets.tcp) {
            let (running, over) = watch::channel(());
            worker.over = Some(over);
            tasks.spawn(async move {
                accept_loop(accept::Acceptor::new(socket), Arc::new(worker)).await;
                drop(running);
            });
        }
        if let Some((codecs, ttl)) = served.packets {
            // Fewer sockets than were asked for take fewer codecs.
            for (codec, socket) in codecs.into_iter().zip(sockets.udp) {
                let (router, meter) = (self.router.clone(), self.meter.clone());
                let (socket, share) = (Arc::new(socket), self.share.clone());
                let table = Table::new(socket, codec, router, meter, ttl, share);
                tasks.spawn(table.run());
            }
        } else if let Some(interception) = sockets.taken {
            let (router, meter) = (self.router, self.meter);
            let table = Table::transparent(interception, router, meter, self.ttl, self.share);
            tasks.spawn(table.run());
        }
        if let (Some(users), Some(roster)) = (served.users, served.roster) {
            tasks.spawn(users.watch(roster));
        }
        if let Some(salts) = served.salts {
            tasks.spawn(salts.keep());
        }
        tasks
    }
}

/// A codec for each socket, where what one knows is of no use to the others.
fn for_each_core(codec: impl Fn() -> Box<dyn PacketCodec>) -> Vec<Box<dyn PacketCodec>> {
    (0..limits::udp_sockets()).map(|_| codec()).collect()
}

/// What every kind of listener is made from.
struct Bench<'a> {
    listen: &'a Listen,
    router: Arc<Router>,
    meter: Arc<Meter>,
    guard: Arc<Guard>,
    sources: bool,
    gate: Arc<Gate>,
    share: Arc<Share>,
    replays: &'a Replays,
    started: Unix,
    ttl: Ttl,
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
            router: Arc::new(router(route, listen, process.kcp).await?),
            meter: Arc::default(),
            guard: Arc::new(Guard::new(gate.limit())),
            sources,
            gate,
            share: process.associations.of_listener(sources),
            replays: process.replays,
            started: process.started,
            ttl: Ttl {
                idle: listen.limits.udp_idle,
                dns: DNS_IDLE.min(listen.limits.udp_idle),
            },
        })
    }

    fn worker(&self, acceptor: Box<dyn Acceptor>) -> Worker {
        let limits = &self.listen.limits;
        Worker {
            acceptor,
            router: self.router.clone(),
            limits: Limits {
                idle: limits.idle,
                half_close_idle: limits.half_close_idle,
            },
            meter: self.meter.clone(),
            ttl: self.ttl,
            associate: Associate::default(),
            guard: Some(self.guard.clone()),
            sources: self.sources,
            proxied: self.listen.proxy_protocol.then_some(limits.handshake),
            first_wait: None,
            over_tcp: false,
            gate: self.gate.clone(),
            share: self.share.clone(),
            over: None,
        }
    }
}

fn proxy_acceptor(proxy: &ProxyPlan, listen: &Listen) -> Proxy {
    Proxy {
        languages: Languages {
            socks5: proxy.socks5,
            socks4: proxy.socks4,
            http: proxy.http,
        },
        credentials: Arc::new(Credentials::new(&proxy.users)),
        deadline: listen.limits.handshake,
        udp: proxy.udp,
        bind: proxy.bind,
        hide_bind: proxy.hide_bind,
        verbose_errors: proxy.verbose_errors,
    }
}
