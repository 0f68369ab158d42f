//! Conversion of a plan's hops to connectors.

use std::sync::Arc;
use std::time::Duration;

use adit_config::{
    Carried, Chain, Hop as HopPlan, HopKind, Listen, ListenKind, Match, Plugin, PluginMode, Prefer,
    Route, ServerHop, SsRole, Stage,
};
use adit_kcp::Counters;
use adit_net::dial::Family;
use adit_net::tcp::FastOpen;
use adit_shadowsocks::{Edition, KeyChain};
use adit_wire::Target;
use ipnet::IpNet;

use crate::access::Access;
use crate::carrier::{FecHop, KcpCarrier};
use crate::connector::{Connector, Direct, Group, Hop, Judged, Reject};
use crate::dialect::{Http, Shadowsocks, ShadowsocksR, Socks4a, Socks5};
use crate::plugin::{Host, Mode, Side, Spec};
use crate::probe::Check;
use crate::router::RuleWay;
use crate::ssh::SshHop;
use crate::udp::Filter;
use crate::{Health, Router, StartError};

/// Creates the router of one listener, whose access rule applies to its targets.
/// `kcp` counts for hops over KCP.
pub(crate) async fn router(
    route: &Route,
    listen: &Listen,
    kcp: &Arc<Counters>,
) -> Result<Router, StartError> {
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
    let access = Access::new(listen.access.private.clone(), public).without(denied(route));
    let guarded: Arc<dyn Connector> = Arc::new(Direct {
        access: access.clone(),
        family,
        deadline,
        filter,
        fast_open: FastOpen::Off,
    });
    let relays = matches!(&listen.kind, ListenKind::Shadowsocks(server)
        if matches!(server.role, SsRole::Relay { .. }));
    // The operator of a relay configures the servers behind it, so they may be anywhere.
    let end = if relays { free() } else { guarded };
    let judged = |chain: Arc<dyn Connector>, plan: &Chain| -> Arc<dyn Connector> {
        // Without hops the resolved addresses are checked.
        if relays || access.is_open() || plan.hops.is_empty() {
            return chain;
        }
        let access = access.clone();
        Arc::new(Judged { access, chain })
    };
    let is_straight = |via: &Chain| via.hops.is_empty() || is_reject(via);
    let mut ways = route.rules.iter().map(|rule| &rule.via).chain([&route.via]);
    let straight = !relays && ways.all(is_straight);
    let mut rules = Vec::with_capacity(route.rules.len());
    for rule in &route.rules {
        let way = chain(&rule.via, &end, kcp).await?;
        let way = judged(way, &rule.via);
        rules.push(RuleWay {
            matches: rule.matches.clone(),
            // Targets that are connected to from here are checked then, see `denied`.
            resolve: rule.resolve && !(straight && is_reject(&rule.via)),
            way,
        });
    }
    let otherwise = chain(&route.via, &end, kcp).await?;
    let otherwise = judged(otherwise, &route.via);
    Ok(Router::new(rules, otherwise, family))
}

fn is_reject(via: &Chain) -> bool {
    via.hops == [Stage::One(HopPlan::Reject)]
}

/// Returns the networks that the first rules of a route reject, names included. They are checked when an
/// address is connected or sent to, so that neither a name with changing addresses nor a later datagram of
/// an association reaches them.
fn denied(route: &Route) -> Vec<IpNet> {
    let rules = route.rules.iter().take_while(|rule| is_reject(&rule.via));
    let matches = rules.filter(|rule| rule.resolve).flat_map(|r| &r.matches);
    let nets = matches.filter_map(|m| match m {
        Match::Cidr(net) => Some(*net),
        _ => None,
    });
    nets.collect()
}

/// Creates a chain by folding: each hop reaches its server through the connector before it.
async fn chain(
    plan: &Chain,
    end: &Arc<dyn Connector>,
    kcp: &Arc<Counters>,
) -> Result<Arc<dyn Connector>, StartError> {
    if plan.hops.is_empty() {
        return Ok(end.clone());
    }
    let mut via = free();
    for (place, stage) in plan.hops.iter().enumerate() {
        let mut members = Vec::new();
        for hop in stage.hops() {
            members.push(match hop {
                HopPlan::Direct => end.clone(),
                HopPlan::Reject => Arc::new(Reject),
                HopPlan::Server(plan) => server_hop(plan, &via, place == 0, kcp).await?,
            });
        }
        via = match (members.pop(), members.is_empty()) {
            (Some(only), true) => only,
            (last, _) => {
                members.extend(last);
                Arc::new(Group::new(members))
            }
        };
    }
    Ok(via)
}

/// Returns a direct connector without restrictions, for servers that the configuration names.
#[must_use]
pub(crate) fn free() -> Arc<dyn Connector> {
    straight(FastOpen::Off)
}

fn straight(fast_open: FastOpen) -> Arc<dyn Connector> {
    Arc::new(Direct {
        access: Access::FREE,
        family: Family::Any,
        deadline: Duration::from_secs(10),
        filter: Filter::Anyone,
        fast_open,
    })
}

/// Creates the carrier that leads to a hop's server instead of TCP.
pub(crate) fn carrier(
    plan: &ServerHop,
    carried: &adit_config::Kcp,
    kcp: Arc<Counters>,
) -> Result<Arc<KcpCarrier>, StartError> {
    let (server, name) = (plan.server.clone(), plan.name());
    let carrier = KcpCarrier::new(server, name, plan.dial, carried, kcp)?;
    Ok(Arc::new(carrier))
}

/// Creates a hop over `via`; `first` is true if there is no hop before it.
pub(crate) async fn server_hop(
    plan: &ServerHop,
    via: &Arc<dyn Connector>,
    first: bool,
    kcp: &Arc<Counters>,
) -> Result<Arc<dyn Connector>, StartError> {
    let via = &match &plan.carried {
        None => via.clone(),
        Some(Carried::Fec(fec)) => {
            return Ok(Arc::new(FecHop::new(
                plan.server.clone(),
                plan.name(),
                fec,
            )?));
        }
        Some(Carried::Kcp(carried)) => {
            let carrier = carrier(plan, carried, kcp.clone())?;
            // As in kcptun, mismatches are reported before the first connection.
            if carried.kcptun {
                carrier.begin();
            }
            carrier
        }
    };
    let plugin = match plan.kind.plugin() {
        None => None,
        Some(_) if !first => return Err(StartError::PluginBehind(plan.server.clone())),
        Some(plugin) => Some(Arc::new(start_plugin(plugin, &plan.server).await?)),
    };
    // The hop before this one, or its carrier, opens connections differently.
    let begun = |fast_open: bool| match fast_open && first && plan.carried.is_none() {
        true => straight(FastOpen::On),
        false => via.clone(),
    };
    let login = |l: &Option<adit_config::Login>| {
        l.as_ref()
            .map(|l| (l.user.clone(), l.password.expose().to_owned()))
    };
    Ok(match &plan.kind {
        HopKind::Socks5 { login: l, udp } => hop(
            Socks5 {
                login: login(l),
                udp: *udp,
            },
            plan,
            via,
            None,
        ),
        HopKind::Socks4a { user } => {
            let user = (!user.is_empty()).then(|| user.clone());
            hop(Socks4a { user }, plan, via, None)
        }
        HopKind::Http { login: l } => hop(Http { login: login(l) }, plan, via, None),
        HopKind::Shadowsocks {
            method,
            secret,
            udp,
            first_wait,
            fast_open,
            plugin: _,
        } => {
            let keys = KeyChain::parse(*method, secret.expose())?;
            let name = plan.name();
            let dated = crate::probe::is_dated(&keys);
            let health = Arc::new(Health::new(name, keys.key().id().to_string(), dated));
            // A legacy cipher decrypts any bytes, and the method `none` has no key.
            if matches!(method.edition(), Edition::Aead | Edition::Aead2022) {
                health.asking(Check {
                    via: via.clone(),
                    server: plan.server.clone(),
                    plugin: plugin.clone(),
                    keys: keys.clone(),
                });
            }
            let dialect = Shadowsocks {
                keys,
                udp: *udp,
                first_wait: *first_wait,
                health,
            };
            hop(dialect, plan, &begun(*fast_open), plugin)
        }
        HopKind::ShadowsocksR(ssr) => {
            let dialect = ShadowsocksR::new(ssr, &plan.server)?;
            hop(dialect, plan, &begun(ssr.fast_open), plugin)
        }
        HopKind::Ssh(ssh) => Arc::new(SshHop::new(plan, ssh, via.clone())?),
        // The remote end of the carrier chooses the target.
        HopKind::Far => via.clone(),
    })
}

async fn start_plugin(plugin: &Plugin, server: &Target) -> Result<Host, StartError> {
    let remote = server.clone();
    Ok(Host::start(spec(plugin), Side::Client { remote }).await?)
}

/// Returns the plugin's configuration for its host.
pub(crate) fn spec(plugin: &Plugin) -> Spec {
    Spec {
        program: plugin.program.clone(),
        options: plugin.options.clone(),
        mode: match plugin.mode {
            PluginMode::TcpOnly => Mode::Tcp,
            PluginMode::UdpOnly => Mode::Udp,
            PluginMode::TcpAndUdp => Mode::TcpAndUdp,
        },
    }
}

fn hop<D: crate::dialect::Dialect + 'static>(
    dialect: D,
    plan: &ServerHop,
    via: &Arc<dyn Connector>,
    plugin: Option<Arc<Host>>,
) -> Arc<dyn Connector> {
    let server: Target = plan.server.clone();
    let name = plan.name();
    let health = dialect.health().cloned();
    Arc::new(Hop {
        health: health.unwrap_or_else(|| Arc::new(Health::keyless(&name))),
        dialect,
        server,
        name,
        deadline: plan.dial,
        via: via.clone(),
        plugin,
    })
}
