//! From the hops of a plan to connectors.

use std::sync::Arc;
use std::time::Duration;

use adit_config::{
    Chain, Hop as HopPlan, HopKind, Listen, ListenKind, Plugin, PluginMode, Prefer, Route, ServerHop,
    SsRole,
};
use adit_net::dial::Family;
use adit_shadowsocks::KeyChain;
use adit_wire::Target;

use crate::access::Access;
use crate::connector::{Connector, Direct, Group, Hop, Reject};
use crate::dialect::{Http, Shadowsocks, Socks4a, Socks5};
use crate::udp::Filter;
use crate::plugin::{Host, Mode, Role, Spec};
use crate::{Health, Router, StartError};

/// The router of one listener: its targets are judged by its own access rule.
pub(crate) async fn router(route: &Route, listen: &Listen) -> Result<Router, StartError> {
    let family = match listen.prefer {
        Prefer::Auto => Family::Any,
        Prefer::V4 => Family::V4First,
        Prefer::V6 => Family::V6First,
        Prefer::V4Only => Family::V4Only,
        Prefer::V6Only => Family::V6Only,
    };
    let filter = match &listen.kind {
        ListenKind::Proxy(proxy) if !proxy.full_cone => Filter::Contacted,
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
        .collect::<Result<_, StartError>>()?;
    Ok(Router::new(rules, chain(&route.via, &guarded)?))
}

/// The chain is a fold: each hop reaches its server through what stands before it.
fn chain(plan: &Chain, end: &Arc<dyn Connector>) -> Result<Arc<dyn Connector>, StartError> {
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
) -> Result<Arc<dyn Connector>, StartError> {
    match plan {
        HopPlan::Direct => Ok(end.clone()),
        HopPlan::Reject => Ok(Arc::new(Reject)),
        HopPlan::Server(plan) => server_hop(plan, via),
    }
}

fn server_hop(plan: &ServerHop, via: &Arc<dyn Connector>) -> Result<Arc<dyn Connector>, StartError> {
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
