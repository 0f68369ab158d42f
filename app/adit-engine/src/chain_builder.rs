//! Conversion of a plan's hops to connectors.

use std::sync::Arc;
use std::time::Duration;

use adit_config::{
    CarrierSettings, Chain, Condition, GroupKind, Hop as HopPlan, HopKind, LeftOut, ListenerConfig,
    ListenerKind, NamedGroup, Plugin, PluginMode, Route, Rule, RuleCondition, ServerHop, SsRole,
    Stage,
};
use adit_net::dial::Family;
use adit_net::tcp::FastOpen;
use adit_rules::SharedRuleSet;
use adit_shadowsocks::{Edition, KeyChain};
use adit_wire::Target;
use ipnet::IpNet;

use crate::access::AccessRule;
use crate::carrier::{Counters, FecHop, KcpCarrier};
use crate::connector::{
    Connector, ConnectorGroup, DirectConnector, FilteredChain, GroupRegistry, GroupSettings, Hop,
    RejectAll,
};
use crate::dialect::{HttpConnect, ShadowsocksDialect, Socks4a, Socks5, SsrDialect};
use crate::dns::{DefaultDns, DnsRegistry, FakeIps, NameResolver};
use crate::plugin::{PluginHost, PluginSide, PluginSpec, PluginTransports};
use crate::probe::Check;
use crate::route_rules;
use crate::router::RoutingRule;
use crate::ssh::SshHop;
use crate::udp::SenderFilter;
use crate::{Router, RuleSetTable, ServerHealth, StartError};

/// State of the process that chains use.
#[derive(Default)]
pub(crate) struct ChainResources {
    /// Counts for hops over KCP.
    pub(crate) kcp: Arc<Counters>,
    /// The groups.
    pub(crate) groups: GroupRegistry,
    /// The DNS table of the process.
    pub(crate) default_dns: DefaultDns,
    /// The addresses that stand for names.
    pub(crate) fake_ips: Arc<FakeIps>,
}

/// The rule sets and DNS tables that routes refer to by name.
#[derive(Clone, Copy)]
pub(crate) struct NamedResources<'a> {
    pub(crate) sets: &'a RuleSetTable,
    pub(crate) dns: &'a DnsRegistry,
}

/// The chains of a running router, which a reload continues to use where the configuration is the same: their
/// plugins, sessions and connections to servers stay.
#[derive(Default)]
pub(crate) struct RunningChains<'a> {
    chains: Vec<(&'a Chain, Arc<dyn Connector>)>,
}

impl<'a> RunningChains<'a> {
    /// Returns the chains of `router`, which was built from `route` and `listen`, for a router of `new_route` and
    /// `new_listen`; none if their ends differ.
    pub(crate) fn new(
        router: &Router,
        (route, listen, sets): (&'a Route, &'a ListenerConfig, &RuleSetTable),
        (new_route, new_listen, new_sets): (&Route, &ListenerConfig, &RuleSetTable),
    ) -> Self {
        let plans = route.rules.iter().map(|rule| &rule.via).chain([&route.via]);
        let connectors = router.connectors();
        // The router may have been replaced by other means than a reload.
        let same = connectors.len() == route.rules.len() + 1
            && ends_alike(listen, new_listen)
            && rejects_alike((route, sets), (new_route, new_sets));
        let mut chains: Vec<_> = plans.zip(connectors).collect();
        if !same {
            chains.clear();
        }
        Self { chains }
    }

    fn find(&self, plan: &Chain) -> Option<Arc<dyn Connector>> {
        let mut chains = self.chains.iter();
        let (_, connector) = chains.find(|(known, _)| *known == plan)?;
        Some(connector.clone())
    }
}

/// Returns true if the chains of both listeners have the same end: address family, filters and time limit.
pub(crate) fn ends_alike(a: &ListenerConfig, b: &ListenerConfig) -> bool {
    let end = |listen: &ListenerConfig| {
        let contacted = match &listen.kind {
            ListenerKind::Proxy(proxy) => !proxy.full_cone,
            ListenerKind::Transparent(transparent) => !transparent.full_cone,
            _ => false,
        };
        let relays = matches!(&listen.kind, ListenerKind::Shadowsocks(server)
            if matches!(server.role, SsRole::Relay { .. }));
        let public = !listen.addr.is_loopback();
        (contacted, relays, public, listen.prefer, listen.limits.dial)
    };
    end(a) == end(b) && a.access == b.access
}

/// Creates the router of one listener, whose access rule applies to its targets. `sets` has the rule sets of its
/// rules. Chains of `running` are used again.
pub(crate) async fn build_router(
    route: &Route,
    listen: &ListenerConfig,
    resources: &ChainResources,
    named: NamedResources<'_>,
    running: Option<&RunningChains<'_>>,
) -> Result<Router, StartError> {
    let NamedResources { sets, dns } = named;
    let names = dns.resolver(route.dns.as_deref())?;
    let compiled = route_rules::compile_rules(route, listen, sets)?;
    let family = route_rules::address_family(listen);
    let filter = match &listen.kind {
        ListenerKind::Proxy(proxy) if !proxy.full_cone => SenderFilter::Contacted,
        ListenerKind::Transparent(transparent) if !transparent.full_cone => SenderFilter::Contacted,
        _ => SenderFilter::Anyone,
    };
    let deadline = listen.limits.dial;
    let public = !listen.addr.is_loopback();
    let (networks, rejected_sets) = rejected_networks(route, sets);
    let access = AccessRule::new(listen.access.private.clone(), public)
        .denying_networks(networks, rejected_sets);
    let guarded: Arc<dyn Connector> = Arc::new(DirectConnector {
        access: access.clone(),
        family,
        deadline,
        filter,
        fast_open: FastOpen::Off,
        names: names.clone(),
    });
    let relays = matches!(&listen.kind, ListenerKind::Shadowsocks(server)
        if matches!(server.role, SsRole::Relay { .. }));
    // The operator of a relay configures the servers behind it, so they may be anywhere.
    let end = if relays {
        direct_connector(FastOpen::Off, &names)
    } else {
        guarded
    };
    let judged = |chain: Arc<dyn Connector>, plan: &Chain| -> Arc<dyn Connector> {
        // Without hops the resolved addresses are checked.
        if relays || access.is_unrestricted() || plan.stages.is_empty() {
            return chain;
        }
        let layer = access.clone();
        Arc::new(FilteredChain { layer, chain })
    };
    let is_straight = |via: &Chain| via.stages.is_empty() || is_reject(via);
    let mut chains = route.rules.iter().map(|rule| &rule.via).chain([&route.via]);
    // A DNS listener connects to nothing, so nothing is checked later.
    let connects = !matches!(listen.kind, ListenerKind::Dns(_));
    let straight = !relays && connects && chains.all(is_straight);
    let mut rules = Vec::with_capacity(route.rules.len());
    let first_rejects = first_rejects(route).count();
    for (at, (plan, mut rule)) in route.rules.iter().zip(compiled).enumerate() {
        let connector = match running.and_then(|running| running.find(&plan.via)) {
            Some(connector) => connector,
            None => {
                let name = format!("{}.rule{}", route.name, at + 1);
                let chain = build_chain(&name, &plan.via, &end, resources, &names).await?;
                judged(chain, &plan.via)
            }
        };
        // Targets that are connected to from here are checked then, see `denied`.
        let is_checked_later = straight && at < first_rejects && has_networks_alone(plan);
        rule.resolve &= !is_checked_later;
        rules.push(RoutingRule { rule, connector });
    }
    let otherwise = match running.and_then(|running| running.find(&route.via)) {
        Some(connector) => connector,
        None => {
            let chain = build_chain(&route.name, &route.via, &end, resources, &names).await?;
            judged(chain, &route.via)
        }
    };
    let fake_ips = resources.fake_ips.clone();
    Ok(Router::for_route(rules, otherwise, family, names, fake_ips))
}

/// Creates the chain of a DNS table. The names of its servers are looked up with the default of the process.
pub(crate) async fn build_dns_chain(
    name: &str,
    plan: &Chain,
    resources: &ChainResources,
) -> Result<Arc<dyn Connector>, StartError> {
    let names = NameResolver::with_default(resources.default_dns.clone());
    let end = direct_connector(FastOpen::Off, &names);
    build_chain(name, plan, &end, resources, &names).await
}

fn is_reject(via: &Chain) -> bool {
    via.stages == [Stage::Single(HopPlan::Reject)]
}

/// Returns the rules at the start of a route that reject.
fn first_rejects(route: &Route) -> impl Iterator<Item = &Rule> {
    route.rules.iter().take_while(|rule| is_reject(&rule.via))
}

/// True if a check of the addresses that are connected to replaces the lookup of a rule that rejects.
fn has_networks_alone(rule: &Rule) -> bool {
    let is_own = |condition: &RuleCondition| matches!(condition, RuleCondition::Condition(_));
    rule.and.is_empty() && rule.matches.iter().all(is_own)
}

/// Returns the networks, and the rule sets, that the first rules of a route reject, names included. They are
/// checked when an address is connected or sent to, so that neither a name with changing addresses nor a later
/// datagram of an association reaches them.
fn rejected_networks(route: &Route, sets: &RuleSetTable) -> (Vec<IpNet>, Vec<SharedRuleSet>) {
    let (networks, names) = rejected_conditions(route);
    let rejected_sets = names.into_iter().filter_map(|name| sets.get(name).cloned());
    (networks, rejected_sets.collect())
}

/// Returns the networks, and the names of the rule sets, that the first rules of a route reject.
fn rejected_conditions(route: &Route) -> (Vec<IpNet>, Vec<&str>) {
    let rules = first_rejects(route).filter(|rule| rule.resolve && rule.and.is_empty());
    let (mut networks, mut names) = (Vec::new(), Vec::new());
    for condition in rules.flat_map(|rule| &rule.matches) {
        match condition {
            RuleCondition::Condition(Condition::Network(net)) => networks.push(*net),
            RuleCondition::Condition(_) => {}
            RuleCondition::Set(name) => names.push(name.as_str()),
        }
    }
    (networks, names)
}

/// Returns true if the first rules of both routes reject the same networks and rule sets.
fn rejects_alike(
    (a, sets): (&Route, &RuleSetTable),
    (b, other_sets): (&Route, &RuleSetTable),
) -> bool {
    let (networks, names) = rejected_conditions(a);
    let is_shared = |name: &&str| sets.shares_set(name, other_sets);
    let all_shared = names.iter().all(is_shared);
    all_shared && (networks, names) == rejected_conditions(b)
}

/// Creates a chain by folding: each hop reaches its server through the connector before it. `name` is that of the
/// chain, for groups without a name of their own.
async fn build_chain(
    name: &str,
    plan: &Chain,
    end: &Arc<dyn Connector>,
    resources: &ChainResources,
    names: &NameResolver,
) -> Result<Arc<dyn Connector>, StartError> {
    if plan.stages.is_empty() {
        return Ok(end.clone());
    }
    let mut via = direct_connector(FastOpen::Off, names);
    for (place, stage) in plan.stages.iter().enumerate() {
        let build = StageBuilder {
            end,
            via: &via,
            is_first: place == 0,
            kcp: &resources.kcp,
            names,
        };
        via = match stage {
            Stage::Single(hop) => build.hop(hop, &via, place == 0).await?,
            Stage::Group(hops) => {
                let group = GroupPlan::inline(format!("{name}.{}", place + 1), hops);
                build.group(group, hops, &resources.groups).await?
            }
            Stage::Named(group) => {
                let settings = GroupPlan::named(group);
                build
                    .group(settings, &group.hops, &resources.groups)
                    .await?
            }
        };
    }
    Ok(via)
}

/// The settings of a group, and the hops before the last one of each member.
struct GroupPlan<'a> {
    settings: GroupSettings,
    leads: &'a [Vec<HopPlan>],
}

impl<'a> GroupPlan<'a> {
    fn inline(name: String, hops: &[HopPlan]) -> Self {
        let settings = GroupSettings {
            name,
            kind: GroupKind::Failover,
            selected: 0,
            check: None,
            members: hops.iter().map(ToString::to_string).collect(),
        };
        Self {
            settings,
            leads: &[],
        }
    }

    fn named(plan: &'a NamedGroup) -> Self {
        let settings = GroupSettings {
            name: plan.name.clone(),
            kind: plan.kind,
            selected: plan.selected,
            check: plan.check.clone(),
            members: plan.member_names.clone(),
        };
        Self {
            settings,
            leads: &plan.leads,
        }
    }
}

/// The place of a stage in its chain.
struct StageBuilder<'a> {
    end: &'a Arc<dyn Connector>,
    via: &'a Arc<dyn Connector>,
    is_first: bool,
    kcp: &'a Arc<Counters>,
    names: &'a NameResolver,
}

impl StageBuilder<'_> {
    async fn hop(
        &self,
        plan: &HopPlan,
        via: &Arc<dyn Connector>,
        is_first: bool,
    ) -> Result<Arc<dyn Connector>, StartError> {
        Ok(match plan {
            HopPlan::Direct => self.end.clone(),
            HopPlan::Reject => Arc::new(RejectAll),
            HopPlan::Server(plan) => build_hop(plan, via, is_first, self.kcp, self.names).await?,
        })
    }

    async fn group(
        &self,
        plan: GroupPlan<'_>,
        hops: &[HopPlan],
        groups: &GroupRegistry,
    ) -> Result<Arc<dyn Connector>, StartError> {
        let mut members = Vec::with_capacity(hops.len());
        for (at, last) in hops.iter().enumerate() {
            let (mut via, mut is_first) = (self.via.clone(), self.is_first);
            for lead in plan.leads.get(at).into_iter().flatten() {
                via = self.hop(lead, &via, is_first).await?;
                is_first = false;
                if let Some(health) = via.server_health() {
                    health.leave_reports_to_group();
                }
            }
            members.push(self.hop(last, &via, is_first).await?);
        }
        let state = groups.state_for(plan.settings);
        Ok(Arc::new(ConnectorGroup::new(state, members)))
    }
}

/// Returns a direct connector without restrictions, for servers that the configuration names.
#[must_use]
pub(crate) fn unrestricted_connector() -> Arc<dyn Connector> {
    direct_connector(FastOpen::Off, &NameResolver::system())
}

fn direct_connector(fast_open: FastOpen, names: &NameResolver) -> Arc<dyn Connector> {
    Arc::new(DirectConnector {
        access: AccessRule::UNRESTRICTED,
        family: Family::Any,
        deadline: Duration::from_secs(10),
        filter: SenderFilter::Anyone,
        fast_open,
        names: names.clone(),
    })
}

/// Creates the carrier that leads to a hop's server instead of TCP.
pub(crate) fn build_carrier(
    plan: &ServerHop,
    carried: &adit_config::KcpSettings,
    kcp: Arc<Counters>,
    names: NameResolver,
) -> Result<Arc<KcpCarrier>, StartError> {
    let (server, name) = (plan.server.clone(), plan.display_name());
    let carrier = KcpCarrier::new(server, name, plan.dial, carried, kcp, names)?;
    Ok(Arc::new(carrier))
}

/// Creates a hop over `via`; `first` is true if there is no hop before it. `names` looks up the name of its server, if
/// that is reached from here.
pub(crate) async fn build_hop(
    plan: &ServerHop,
    via: &Arc<dyn Connector>,
    first: bool,
    kcp: &Arc<Counters>,
    names: &NameResolver,
) -> Result<Arc<dyn Connector>, StartError> {
    let via = &match &plan.carrier {
        None => via.clone(),
        Some(CarrierSettings::Fec(fec)) => {
            return Ok(Arc::new(FecHop::new(
                plan.server.clone(),
                plan.display_name(),
                fec,
                names.clone(),
            )?));
        }
        Some(CarrierSettings::Kcp(carried)) => {
            let carrier = build_carrier(plan, carried, kcp.clone(), names.clone())?;
            // As in kcptun, mismatches are reported before the first connection.
            if carried.kcptun {
                carrier.start_sessions();
            }
            carrier
        }
    };
    let plugin = match plan.kind.plugin() {
        None => None,
        Some(_) if !first => return Err(StartError::PluginBehind(plan.server.clone())),
        Some(plugin) => Some(Arc::new(
            start_plugin(plugin, &plan.server, names.clone()).await?,
        )),
    };
    // The hop before this one, or its carrier, opens connections differently.
    let begun = |fast_open: bool| match fast_open && first && plan.carrier.is_none() {
        true => direct_connector(FastOpen::On, names),
        false => via.clone(),
    };
    let login = |l: &Option<adit_config::UserPassword>| {
        l.as_ref()
            .map(|l| (l.user.clone(), l.password.expose().to_owned()))
    };
    Ok(match &plan.kind {
        HopKind::Socks5 { login: l, udp } => wrap_dialect(
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
            wrap_dialect(Socks4a { user }, plan, via, None)
        }
        HopKind::Http { login: l } => {
            wrap_dialect(HttpConnect { login: login(l) }, plan, via, None)
        }
        HopKind::Shadowsocks {
            method,
            secret,
            udp,
            first_wait,
            fast_open,
            plugin: _,
        } => {
            let keys = KeyChain::parse(*method, secret.expose())?;
            let name = plan.display_name();
            let dated = crate::probe::has_time_stamps(&keys);
            let health = Arc::new(ServerHealth::new(
                name,
                keys.user_key().id().to_string(),
                dated,
            ));
            // A legacy cipher decrypts any bytes, and the method `none` has no key.
            if matches!(method.edition(), Edition::Aead | Edition::Aead2022) {
                health.set_check(Check {
                    via: via.clone(),
                    server: plan.server.clone(),
                    plugin: plugin.clone(),
                    keys: keys.clone(),
                });
            }
            let dialect = ShadowsocksDialect {
                keys,
                udp: *udp,
                first_wait: *first_wait,
                health,
            };
            wrap_dialect(dialect, plan, &begun(*fast_open), plugin)
        }
        HopKind::ShadowsocksR(_) if !cfg!(feature = "ssr") => {
            return Err(StartError::LeftOut(LeftOut(adit_config::Family::Ssr)));
        }
        HopKind::ShadowsocksR(ssr) => {
            let dialect = SsrDialect::new(ssr, &plan.server)?;
            wrap_dialect(dialect, plan, &begun(ssr.fast_open), plugin)
        }
        HopKind::Ssh(ssh) => Arc::new(SshHop::new(plan, ssh, via.clone())?),
        // The remote end of the carrier chooses the target.
        HopKind::RemoteTarget => via.clone(),
    })
}

async fn start_plugin(
    plugin: &Plugin,
    server: &Target,
    names: NameResolver,
) -> Result<PluginHost, StartError> {
    let side = PluginSide::Client {
        remote: server.clone(),
    };
    Ok(PluginHost::start_with_resolver(plugin_spec(plugin), side, names).await?)
}

/// Returns the plugin's configuration for its host.
pub(crate) fn plugin_spec(plugin: &Plugin) -> PluginSpec {
    PluginSpec {
        program: plugin.program.clone(),
        options: plugin.options.clone(),
        mode: match plugin.mode {
            PluginMode::TcpOnly => PluginTransports::Tcp,
            PluginMode::UdpOnly => PluginTransports::Udp,
            PluginMode::TcpAndUdp => PluginTransports::TcpAndUdp,
        },
    }
}

fn wrap_dialect<D: crate::dialect::HopDialect + 'static>(
    dialect: D,
    plan: &ServerHop,
    via: &Arc<dyn Connector>,
    plugin: Option<Arc<PluginHost>>,
) -> Arc<dyn Connector> {
    let server: Target = plan.server.clone();
    let name = plan.display_name();
    let health = dialect.server_health().cloned();
    Arc::new(Hop {
        health: health.unwrap_or_else(|| Arc::new(ServerHealth::without_key(&name))),
        dialect,
        server,
        name,
        deadline: plan.dial,
        via: via.clone(),
        plugin,
    })
}
