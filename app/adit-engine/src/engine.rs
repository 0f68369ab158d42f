//! A plan made to run.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use adit_config::{
    Chain, Hop as HopPlan, HopKind, Listen, ListenKind, Plan, Prefer, Proxy as ProxyPlan,
    Restart as RestartPlan, Route, ServerHop, SsServer, Steering, Transparent,
};
use adit_net::ambient::{self, SystemChance};
use adit_net::dial::{self, Family};
use adit_net::{Udp, accept, limits, tcp, transparent};
use adit_shadowsocks::{Edition, Key, KeyError, Restart, SaltPool};
use adit_stream::{Counts, Limits, Meter};
use adit_wire::{Entropy, Host, Target};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use crate::acceptor::{Acceptor, Fixed, Intercepted, Keyed, Proxy, Rejects};
use crate::access::Access;
use crate::connector::{Connector, Direct, Group, Hop, Reject};
use crate::credentials::Credentials;
use crate::dialect::{Http, Shadowsocks, Socks4a, Socks5};
use crate::guard::Guard;
use crate::serve::{Associate, Gate, Worker, accept_loop};
use crate::udp::{Filter, FixedPackets, Interception, KeyedPackets, Listener, PacketCodec, Ttl};
use crate::{Health, Router};

/// Tries to find a port that is free for TCP and UDP.
const PORT_TRIES: usize = 16;
/// A 2022 session must be remembered at least this long.
const MIN_SESSION: Duration = Duration::from_secs(60);
/// Associations that only ask for names.
const DNS_IDLE: Duration = Duration::from_secs(10);

/// A running plan.
#[derive(Debug)]
pub struct Engine {
    listening: Vec<Listening>,
    tasks: JoinSet<()>,
    gate: Arc<Gate>,
    meters: Vec<Arc<Meter>>,
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
}

/// Why a plan cannot run.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A listener's address cannot be bound.
    #[error("cannot listen on {addr}: {source}")]
    Listen {
        /// The address as it was written.
        addr: String,
        /// What the system said.
        source: io::Error,
    },
    /// A key does not fit its method.
    #[error(transparent)]
    Key(#[from] KeyError),
}

impl Engine {
    /// Binds every listener and begins to accept. Nothing is left running on an error.
    pub async fn start(plan: &Plan) -> Result<Self, StartError> {
        let fitting = limits::max_connections(limits::raise_nofile());
        let gate = Arc::new(Gate::new(fitting, None));
        let mut engine = Self {
            listening: Vec::new(),
            tasks: JoinSet::new(),
            gate,
            meters: Vec::new(),
        };
        for route in &plan.routes {
            for listen in &route.listen {
                engine.open(route, listen).await?;
            }
        }
        Ok(engine)
    }

    /// The listeners, in the order of the plan.
    #[must_use]
    pub fn listening(&self) -> &[Listening] {
        &self.listening
    }

    /// Connections open now.
    #[must_use]
    pub fn open_connections(&self) -> usize {
        self.gate.open()
    }

    /// Payload carried by all listeners so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.meters
            .iter()
            .map(|m| m.counts())
            .fold(Counts::default(), |a, b| Counts {
                up: a.up + b.up,
                down: a.down + b.down,
                opened: a.opened + b.opened,
                closed: a.closed + b.closed,
            })
    }

    /// Stops accepting, and lets open connections go on for at most `drain`.
    pub async fn stop(mut self, drain: Duration) {
        self.tasks.shutdown().await;
        let until = Instant::now() + drain;
        while self.gate.open() > 0 && Instant::now() < until {
            sleep_until((Instant::now() + Duration::from_millis(20)).min(until)).await;
        }
    }

    async fn open(&mut self, route: &Route, listen: &Listen) -> Result<(), StartError> {
        let router = Arc::new(router(route, listen)?);
        let meter = Arc::new(Meter::default());
        self.meters.push(meter.clone());
        let ttl = Ttl {
            idle: listen.limits.udp_idle,
            dns: DNS_IDLE.min(listen.limits.udp_idle),
        };
        let guard = (!listen.addr.is_loopback()).then(|| Arc::new(Guard::default()));
        let max = listen.limits.max_connections.unwrap_or(usize::MAX);
        let worker = |acceptor: Box<dyn Acceptor>, associate: Associate| Worker {
            acceptor,
            router: router.clone(),
            limits: Limits {
                idle: listen.limits.idle,
                half_close_idle: listen.limits.half_close_idle,
            },
            meter: meter.clone(),
            ttl,
            associate,
            guard: guard.clone(),
            first_wait: match &listen.kind {
                ListenKind::Forward(forward) => Some(forward.first_wait),
                _ => None,
            },
            gate: Arc::new(Gate::new(max, Some(self.gate.clone()))),
        };
        let (worker, packets): (Option<Worker>, Option<Packets>) = match &listen.kind {
            ListenKind::Proxy(proxy) => {
                let associate = Associate {
                    advertise: proxy.udp_advertise,
                    reassemble: proxy.udp_reassembly,
                };
                (
                    Some(worker(Box::new(proxy_acceptor(proxy, listen)), associate)),
                    None,
                )
            }
            ListenKind::Shadowsocks(server) => {
                let key = Key::parse(server.method, server.secret.expose())?;
                let acceptor = keyed_acceptor(server, listen, key.clone());
                let ttl = match key.method().edition() {
                    Edition::Aead2022 => Ttl {
                        idle: ttl.idle.max(MIN_SESSION),
                        dns: MIN_SESSION,
                    },
                    _ => ttl,
                };
                (
                    server
                        .tcp
                        .then(|| worker(Box::new(acceptor), Associate::default())),
                    server.udp.then(|| {
                        (
                            Box::new(KeyedPackets::new(&key)) as Box<dyn PacketCodec>,
                            ttl,
                        )
                    }),
                )
            }
            ListenKind::Transparent(plan) => {
                let acceptor = Intercepted {
                    steering: plan.steering,
                    port: listen.addr.port,
                };
                (Some(worker(Box::new(acceptor), Associate::default())), None)
            }
            ListenKind::Forward(forward) => {
                let target = forward.target.clone();
                (
                    forward.tcp.then(|| {
                        worker(
                            Box::new(Fixed {
                                target: target.clone(),
                            }),
                            Associate::default(),
                        )
                    }),
                    forward.udp.then(|| {
                        (
                            Box::new(FixedPackets {
                                target: target.clone(),
                            }) as Box<dyn PacketCodec>,
                            ttl,
                        )
                    }),
                )
            }
        };
        let sockets = bind(&listen.addr.host, listen.addr.port, |addr| {
            match &listen.kind {
                ListenKind::Transparent(plan) => bind_transparent(addr, plan),
                _ => bind_once(addr, worker.is_some(), packets.is_some()),
            }
        })
        .await
        .map_err(|source| StartError::Listen {
            addr: listen.addr.to_string(),
            source,
        })?;
        self.listening.push(Listening {
            addr: sockets.addr,
            route: route.name.clone(),
            carries: match (sockets.tcp.is_some(), sockets.carries_udp()) {
                (true, true) => "tcp+udp",
                (false, _) => "udp",
                _ => "tcp",
            },
        });
        if let (Some(worker), Some(socket)) = (worker, sockets.tcp) {
            self.tasks
                .spawn(accept_loop(accept::Acceptor::new(socket), Arc::new(worker)));
        }
        if let (Some((codec, ttl)), Some(socket)) = (packets, sockets.udp) {
            let table = Listener::new(Arc::new(socket), codec, router, meter, ttl);
            self.tasks.spawn(table.run());
        } else if let Some(interception) = sockets.taken {
            let table = Listener::transparent(interception, router, meter, ttl);
            self.tasks.spawn(table.run());
        }
        Ok(())
    }
}

/// A datagram codec and how long its associations are kept.
type Packets = (Box<dyn PacketCodec>, Ttl);

struct Sockets {
    addr: SocketAddr,
    tcp: Option<tokio::net::TcpListener>,
    udp: Option<Udp>,
    /// UDP that is meant for others.
    taken: Option<Interception>,
}

impl Sockets {
    const fn carries_udp(&self) -> bool {
        self.udp.is_some() || self.taken.is_some()
    }
}

/// Binds one port for what `open` opens.
async fn bind(
    host: &Option<Host>,
    port: u16,
    open: impl Fn(SocketAddr) -> io::Result<Sockets>,
) -> io::Result<Sockets> {
    let candidates: Vec<SocketAddr> = match host {
        // Both families by one socket; IPv4 alone where there is no IPv6.
        None => vec![
            SocketAddr::from(([0u16; 8], port)),
            SocketAddr::from(([0u8; 4], port)),
        ],
        Some(Host::Ip(ip)) => vec![SocketAddr::new(*ip, port)],
        Some(Host::Name(name)) => dial::resolve(name.as_str(), port, Family::V4First)
            .await?
            .into_iter()
            .take(1)
            .collect(),
    };
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for addr in candidates {
        for _ in 0..PORT_TRIES {
            match open(addr) {
                Ok(sockets) => return Ok(sockets),
                Err(e) => last = e,
            }
            // Only an ephemeral port can turn out better the next time.
            if port != 0 || last.kind() != io::ErrorKind::AddrInUse {
                break;
            }
            sleep(Duration::from_millis(1)).await;
        }
        if last.kind() == io::ErrorKind::AddrInUse {
            break;
        }
    }
    Err(last)
}

fn bind_once(mut addr: SocketAddr, tcp: bool, udp: bool) -> io::Result<Sockets> {
    let tcp = if tcp { Some(tcp::listen(addr)?) } else { None };
    if let Some(socket) = &tcp {
        addr = socket.local_addr()?;
    }
    let udp = if udp { Some(Udp::bind(addr)?) } else { None };
    if let (None, Some(socket)) = (&tcp, &udp) {
        addr = SocketAddr::new(addr.ip(), socket.local_addr()?.port());
    }
    let taken = None;
    Ok(Sockets {
        addr,
        tcp,
        udp,
        taken,
    })
}

fn bind_transparent(addr: SocketAddr, plan: &Transparent) -> io::Result<Sockets> {
    let tcp = match plan.steering {
        Steering::Redirect => transparent::listen_redirected(addr)?,
        Steering::Tproxy => transparent::listen(addr)?,
    };
    let taken = if plan.udp {
        let socket = transparent::Taken::bind(addr)?;
        Some(Interception::new(socket, addr.port(), plan.full_cone))
    } else {
        None
    };
    Ok(Sockets {
        addr,
        tcp: Some(tcp),
        udp: None,
        taken,
    })
}

fn proxy_acceptor(proxy: &ProxyPlan, listen: &Listen) -> Proxy {
    Proxy {
        languages: crate::acceptor::Languages {
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

/// The router of one listener: its targets are judged by its own access rule.
fn router(route: &Route, listen: &Listen) -> Result<Router, KeyError> {
    let family = match listen.prefer {
        Prefer::Auto => Family::Any,
        Prefer::V4 => Family::V4First,
        Prefer::V6 => Family::V6First,
        Prefer::V4Only => Family::V4Only,
        Prefer::V6Only => Family::V6Only,
    };
    let filter = match &listen.kind {
        ListenKind::Proxy(proxy) if !proxy.full_cone => Filter::Contacted,
        ListenKind::Transparent(transparent) if !transparent.full_cone => Filter::Contacted,
        _ => Filter::Anyone,
    };
    let deadline = listen.limits.dial;
    let public = !listen.addr.is_loopback();
    let guarded: Arc<dyn Connector> = Arc::new(Direct {
        access: Access::new(listen.access.private.clone(), public),
        family,
        deadline,
        filter,
    });
    let rules = route
        .rules
        .iter()
        .map(|rule| Ok((rule.matches.clone(), chain(&rule.via, &guarded)?)))
        .collect::<Result<_, KeyError>>()?;
    Ok(Router::new(rules, chain(&route.via, &guarded)?))
}

/// The chain is a fold: each hop reaches its server through what stands before it.
fn chain(plan: &Chain, end: &Arc<dyn Connector>) -> Result<Arc<dyn Connector>, KeyError> {
    if plan.hops.is_empty() {
        return Ok(end.clone());
    }
    plan.hops.iter().try_fold(free(), |via, stage| {
        let mut members = stage
            .hops()
            .iter()
            .map(|hop| over(hop, &via, end))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(match (members.pop(), members.is_empty()) {
            (Some(only), true) => only,
            (last, _) => {
                members.extend(last);
                Arc::new(Group::new(members))
            }
        })
    })
}

/// This machine's sockets without a rule, for servers that the configuration names.
#[must_use]
pub(crate) fn free() -> Arc<dyn Connector> {
    Arc::new(Direct {
        access: Access::FREE,
        family: Family::Any,
        deadline: Duration::from_secs(10),
        filter: Filter::Anyone,
    })
}

fn over(
    plan: &HopPlan,
    via: &Arc<dyn Connector>,
    end: &Arc<dyn Connector>,
) -> Result<Arc<dyn Connector>, KeyError> {
    match plan {
        HopPlan::Direct => Ok(end.clone()),
        HopPlan::Reject => Ok(Arc::new(Reject)),
        HopPlan::Server(plan) => server_hop(plan, via),
    }
}

fn server_hop(plan: &ServerHop, via: &Arc<dyn Connector>) -> Result<Arc<dyn Connector>, KeyError> {
    let login = |l: &Option<adit_config::Login>| {
        l.as_ref()
            .map(|l| (l.user.clone(), l.password.expose().to_owned()))
    };
    Ok(match &plan.kind {
        HopKind::Socks5 { login: l, udp } => hop(
            "socks5",
            Socks5 {
                login: login(l),
                udp: *udp,
            },
            plan,
            via,
        ),
        HopKind::Socks4a { user } => {
            let user = (!user.is_empty()).then(|| user.clone());
            hop("socks4a", Socks4a { user }, plan, via)
        }
        HopKind::Http { login: l } => hop("http", Http { login: login(l) }, plan, via),
        HopKind::Shadowsocks {
            method,
            secret,
            udp,
            first_wait,
        } => {
            let key = Key::parse(*method, secret.expose())?;
            let name = format!("ss://{}", plan.server);
            let health = Arc::new(Health::new(name, key.id().to_string()));
            hop(
                "ss",
                Shadowsocks {
                    key,
                    udp: *udp,
                    first_wait: *first_wait,
                    health,
                },
                plan,
                via,
            )
        }
    })
}

fn hop<D: crate::dialect::Dialect + 'static>(
    scheme: &str,
    dialect: D,
    plan: &ServerHop,
    via: &Arc<dyn Connector>,
) -> Arc<dyn Connector> {
    let server: Target = plan.server.clone();
    let name = format!("{scheme}://{server}");
    Arc::new(Hop {
        dialect,
        server,
        name,
        deadline: plan.dial,
        via: via.clone(),
    })
}
