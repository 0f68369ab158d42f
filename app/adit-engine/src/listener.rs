//! One listener of a plan: what serves its connections, what serves its datagrams, its sockets.

mod keyed;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use adit_config::{Listen, ListenKind, Proxy as ProxyPlan, Route};
use adit_net::accept;
use adit_stream::{Limits, Meter};
use tokio::task::JoinSet;

use crate::acceptor::{Acceptor, Fixed, Languages, Proxy};
use crate::chain::router;
use crate::credentials::Credentials;
use crate::guard::Guard;
use crate::serve::{Associate, Gate, Worker, accept_loop};
use crate::sockets::{self, Sockets};
use crate::udp::{FixedPackets, Listener as Table, PacketCodec, Ttl};
use crate::{Roster, Router, StartError};

/// Associations that only ask for names.
const DNS_IDLE: Duration = Duration::from_secs(10);

/// A listener without its sockets.
pub(crate) struct Prepared {
    router: Arc<Router>,
    meter: Arc<Meter>,
    worker: Option<Worker>,
    packets: Option<Packets>,
    roster: Option<Arc<Roster>>,
}

/// A datagram codec and how long its associations are kept.
type Packets = (Box<dyn PacketCodec>, Ttl);

/// Makes everything that can fail without a socket.
pub(crate) fn prepare(
    route: &Route,
    listen: &Listen,
    gate: &Arc<Gate>,
) -> Result<Prepared, StartError> {
    let bench = Bench::new(route, listen, gate)?;
    let mut roster = None;
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
            let served = keyed::prepare(server, &bench)?;
            roster = served.roster;
            (served.worker, served.packets)
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
        roster,
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

    /// Whom it serves, if it has keys.
    pub(crate) fn roster(&self) -> Option<Arc<Roster>> {
        self.roster.clone()
    }

    /// Begins to accept; the listener ends with its tasks.
    pub(crate) fn run(self, sockets: Sockets) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        if let (Some(worker), Some(socket)) = (self.worker, sockets.tcp) {
            tasks.spawn(accept_loop(accept::Acceptor::new(socket), Arc::new(worker)));
        }
        if let (Some((codec, ttl)), Some(socket)) = (self.packets, sockets.udp) {
            let table = Table::new(Arc::new(socket), codec, self.router, self.meter, ttl);
            tasks.spawn(table.run());
        }
        tasks
    }
}

/// What every kind of listener is made from.
pub(crate) struct Bench<'a> {
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
