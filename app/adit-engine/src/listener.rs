//! One listener of a plan: what serves its connections, what serves its datagrams, its sockets.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use adit_config::{
    Listen, ListenKind, Proxy as ProxyPlan, Restart as RestartPlan, Route, SsServer,
};
use adit_net::accept;
use adit_net::ambient::{self, SystemChance};
use adit_shadowsocks::{Edition, Key, Restart, SaltPool};
use adit_stream::{Limits, Meter};
use adit_wire::Entropy;
use tokio::task::JoinSet;

use crate::acceptor::{Acceptor, Fixed, Keyed, Languages, Proxy, Rejects};
use crate::chain::router;
use crate::credentials::Credentials;
use crate::guard::Guard;
use crate::serve::{Associate, Gate, Worker, accept_loop};
use crate::sockets::{self, Sockets};
use crate::udp::{FixedPackets, KeyedPackets, Listener as Packets, PacketCodec, Ttl};
use crate::{Router, StartError};

/// A 2022 session must be remembered at least this long.
const MIN_SESSION: Duration = Duration::from_secs(60);
/// Associations that only ask for names.
const DNS_IDLE: Duration = Duration::from_secs(10);

/// A listener without its sockets.
pub(crate) struct Prepared {
    router: Arc<Router>,
    meter: Arc<Meter>,
    worker: Option<Worker>,
    packets: Option<(Box<dyn PacketCodec>, Ttl)>,
}

/// Makes everything that can fail without a socket.
pub(crate) fn prepare(
    route: &Route,
    listen: &Listen,
    gate: &Arc<Gate>,
) -> Result<Prepared, StartError> {
    let bench = Bench::new(route, listen, gate)?;
    let (worker, packets) = match &listen.kind {
        ListenKind::Proxy(proxy) => {
            let mut worker = bench.worker(Box::new(proxy_acceptor(proxy, listen)));
            worker.associate = Associate {
                advertise: proxy.udp_advertise,
                reassemble: proxy.udp_reassembly,
            };
            (Some(worker), None)
        }
        ListenKind::Shadowsocks(server) => {
            let key = Key::parse(server.method, server.secret.expose())?;
            let acceptor = keyed_acceptor(server, listen, key.clone());
            let ttl = match key.method().edition() {
                Edition::Aead2022 => Ttl {
                    idle: bench.ttl.idle.max(MIN_SESSION),
                    dns: MIN_SESSION,
                },
                _ => bench.ttl,
            };
            let codec: Box<dyn PacketCodec> = Box::new(KeyedPackets::new(&key));
            (
                server.tcp.then(|| Worker {
                    over_tcp: server.udp,
                    ..bench.worker(Box::new(acceptor))
                }),
                server.udp.then_some((codec, ttl)),
            )
        }
        ListenKind::Forward(forward) => {
            let target = &forward.target;
            let fixed = Fixed {
                target: target.clone(),
            };
            let mut worker = bench.worker(Box::new(fixed));
            worker.first_wait = Some(forward.first_wait);
            let codec: Box<dyn PacketCodec> = Box::new(FixedPackets {
                target: target.clone(),
            });
            (
                forward.tcp.then_some(worker),
                forward.udp.then_some((codec, bench.ttl)),
            )
        }
    };
    Ok(Prepared {
        router: bench.router,
        meter: bench.meter,
        worker,
        packets,
    })
}

/// Binds the listener's address.
pub(crate) async fn bind(listen: &Listen, tcp: bool, udp: bool) -> io::Result<Sockets> {
    sockets::bind(&listen.addr.host, listen.addr.port, tcp, udp).await
}

impl Prepared {
    /// Whether it takes connections, and datagrams.
    pub(crate) const fn wants(&self) -> (bool, bool) {
        (self.worker.is_some(), self.packets.is_some())
    }

    /// The counters.
    pub(crate) fn meter(&self) -> Arc<Meter> {
        self.meter.clone()
    }

    /// Begins to accept; the listener ends with its tasks.
    pub(crate) fn run(self, sockets: Sockets) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        if let (Some(worker), Some(socket)) = (self.worker, sockets.tcp) {
            tasks.spawn(accept_loop(accept::Acceptor::new(socket), Arc::new(worker)));
        }
        if let (Some((codec, ttl)), Some(socket)) = (self.packets, sockets.udp) {
            let table = Packets::new(Arc::new(socket), codec, self.router, self.meter, ttl);
            tasks.spawn(table.run());
        }
        tasks
    }
}

/// What every kind of listener is made from.
struct Bench<'a> {
    listen: &'a Listen,
    router: Arc<Router>,
    meter: Arc<Meter>,
    guard: Option<Arc<Guard>>,
    gate: Arc<Gate>,
    ttl: Ttl,
}

impl<'a> Bench<'a> {
    fn new(route: &Route, listen: &'a Listen, gate: &Arc<Gate>) -> Result<Self, StartError> {
        let max = listen.limits.max_connections.unwrap_or(usize::MAX);
        Ok(Self {
            listen,
            router: Arc::new(router(route, listen)?),
            meter: Arc::default(),
            guard: (!listen.addr.is_loopback()).then(Arc::default),
            gate: Arc::new(Gate::new(max, Some(gate.clone()))),
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
            guard: self.guard.clone(),
            first_wait: None,
            over_tcp: false,
            gate: self.gate.clone(),
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

fn keyed_acceptor(server: &SsServer, listen: &Listen, key: Key) -> Keyed {
    let mut seed = [0; 16];
    SystemChance.fill(&mut seed);
    let restart = match server.restart {
        RestartPlan::Strict => Restart::Strict,
        RestartPlan::Lenient => Restart::Lenient,
    };
    Keyed {
        key,
        salts: Arc::new(SaltPool::new(seed, ambient::unix(), restart)),
        rejects: Arc::new(Rejects::new(server.reject.clone())),
        deadline: listen.limits.handshake,
    }
}
