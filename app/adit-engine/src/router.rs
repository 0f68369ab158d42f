//! Choice of the connector for each request.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, PoisonError, RwLock};

use adit_net::dial::Family;
use adit_rules::{Decision, Rule, RuleList, Transport};
use adit_wire::{Host, Name, Target, unmap_ipv4};

use crate::connector::{
    BoundSocket, ConnectedStream, Connector, FakeTargets, LayeredChain, UnknownFakeTarget,
};
use crate::dns::{FakeIps, FakeTarget, NameResolver};
use crate::udp::BoxDatagramPath;
use crate::{BoxFuture, DialError};

/// The rules of a route, of which the first match wins, and the chain for everything else. They can be
/// replaced while connections are open.
pub struct Router(RwLock<RouterState>);

struct RouterState {
    now: Arc<RouteTable>,
    /// The rules before the last change. They own the plugins that open connections still use.
    before: Option<Arc<RouteTable>>,
}

/// A rule that sends matching requests through a connector of its own.
pub struct RoutingRule {
    /// The conditions.
    pub rule: Rule,
    /// The connector for matching requests.
    pub connector: Arc<dyn Connector>,
}

/// The facts about a request, besides its target, that rules can ask for.
#[derive(Debug, Clone, Copy)]
pub struct RequestContext<'a> {
    /// TCP for streams, UDP for datagrams.
    pub transport: Transport,
    /// Address of the client.
    pub source: SocketAddr,
    /// Name of the user, as logs show it.
    pub user: Option<&'a str>,
    /// The name in the first bytes of a client that requests an address. It has no effect on a target with a name.
    pub sniffed: Option<&'a Name>,
}

impl<'a> RequestContext<'a> {
    /// Creates the context of a request for a stream.
    #[must_use]
    pub const fn stream(source: SocketAddr, user: Option<&'a str>) -> Self {
        Self {
            transport: Transport::Tcp,
            source,
            user,
            sniffed: None,
        }
    }

    /// Creates the context of datagrams.
    #[must_use]
    pub const fn datagrams(source: SocketAddr, user: Option<&'a str>) -> Self {
        Self {
            transport: Transport::Udp,
            source,
            user,
            sniffed: None,
        }
    }

    /// Prepares a request for decisions.
    pub(crate) fn request(&self, target: &Target) -> adit_rules::Request<'a> {
        let source = SocketAddr::new(unmap_ipv4(self.source.ip()), self.source.port());
        let request = adit_rules::Request::new(target)
            .with_transport(self.transport)
            .with_source(source);
        let request = match self.sniffed {
            Some(name) => request.with_sniffed_name(name.as_str()),
            None => request,
        };
        match self.user {
            Some(user) => request.with_user(user),
            None => request,
        }
    }
}

struct RouteTable {
    rules: RuleList,
    /// The connector of each rule.
    connectors: Vec<Arc<dyn Connector>>,
    default_connector: Arc<dyn Connector>,
    /// The address families that names are looked up for.
    family: Family,
    /// Looks names up.
    names: NameResolver,
    /// The addresses that stand for names.
    fake_ips: Arc<FakeIps>,
}

/// The decision about a name that a client looks up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameDecision {
    /// A rule rejects it.
    Rejected,
    /// It may be looked up.
    Allowed,
    /// No rule before this one rejects it; the rest depends on its addresses.
    ByAddress(usize),
}

impl Router {
    /// Creates a router. Rules with `resolve` look names up for addresses of `family`.
    #[must_use]
    pub fn new(rules: Vec<RoutingRule>, otherwise: Arc<dyn Connector>, family: Family) -> Self {
        let fake_ips = Arc::default();
        Self::for_route(rules, otherwise, family, NameResolver::system(), fake_ips)
    }

    /// Does the same, with the resolver of a route and the made-up addresses of the process.
    pub(crate) fn for_route(
        rules: Vec<RoutingRule>,
        otherwise: Arc<dyn Connector>,
        family: Family,
        names: NameResolver,
        fake_ips: Arc<FakeIps>,
    ) -> Self {
        let (rules, connectors) = rules
            .into_iter()
            .map(|routing| (routing.rule, routing.connector))
            .unzip();
        let now = Arc::new(RouteTable {
            rules: RuleList::new(rules),
            connectors,
            default_connector: otherwise,
            family,
            names,
            fake_ips,
        });
        Self(RwLock::new(RouterState { now, before: None }))
    }

    /// Returns the connector for `target`. It must not be used for another target.
    #[must_use]
    pub fn select_connector(
        &self,
        target: &Target,
        context: &RequestContext<'_>,
    ) -> Arc<dyn Connector> {
        let state = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let table = &state.now;
        if table.fake_ips.is_empty() {
            return table.select_connector(target, context);
        }
        let named = match table.fake_ips.find_target(target) {
            None => None,
            Some(FakeTarget::Name(host)) => Some(Target::new(host, target.port)),
            Some(FakeTarget::Unknown) => return Arc::new(UnknownFakeTarget),
        };
        let chain = table.select_connector(named.as_ref().unwrap_or(target), context);
        if named.is_none() && context.transport == Transport::Tcp {
            return chain;
        }
        // Further datagrams of an association can have other targets than the first one.
        let fake_ips = table.fake_ips.clone();
        let layer = FakeTargets { fake_ips, named };
        Arc::new(LayeredChain { layer, chain })
    }

    /// Returns the resolver of the route.
    pub(crate) fn names(&self) -> NameResolver {
        self.table().names.clone()
    }

    /// Decides whether a client at `source` may look up the name of `target`.
    pub(crate) fn decide_name(&self, target: &Target, source: SocketAddr) -> NameDecision {
        let table = self.table();
        match table.rules.decide(&name_request(target, source)) {
            Decision::Lookup(first_rule) => NameDecision::ByAddress(first_rule),
            decision if table.connector_of(decision).rejects_all() => NameDecision::Rejected,
            _ => NameDecision::Allowed,
        }
    }

    /// True if the rules from `first_rule` on reject a name because of its addresses.
    pub(crate) fn rejects_addresses(
        &self,
        target: &Target,
        source: SocketAddr,
        first_rule: usize,
        addresses: &[IpAddr],
    ) -> bool {
        let table = self.table();
        let request = name_request(target, source);
        let decision = table
            .rules
            .decide_with_addresses(first_rule, &request, addresses);
        table.connector_of(decision).rejects_all()
    }

    fn table(&self) -> Arc<RouteTable> {
        let state = self.0.read().unwrap_or_else(PoisonError::into_inner);
        state.now.clone()
    }

    /// Returns true if the name of a target that is an address could change the choice.
    pub(crate) fn depends_on_name(&self, target: &Target, context: &RequestContext<'_>) -> bool {
        if matches!(target.host, Host::Name(_)) {
            return false;
        }
        let table = self.table();
        // A made-up address stands for a name already.
        if !table.fake_ips.is_empty() && table.fake_ips.find_target(target).is_some() {
            return false;
        }
        table.rules.depends_on_name(&context.request(target))
    }

    /// Returns the connectors of the rules, then the one for everything else.
    pub(crate) fn connectors(&self) -> Vec<Arc<dyn Connector>> {
        let state = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let table = &state.now;
        let rules = table.connectors.iter();
        rules.chain([&table.default_connector]).cloned().collect()
    }

    /// Routes new requests by the rules of `other` from now on.
    pub(crate) fn replace_rules(&self, other: Self) {
        let other = other.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut state.now, other.now);
        let oldest = state.before.replace(before);
        // Plugins are ended by the drop, which needs no lock.
        drop(state);
        drop(oldest);
    }
}

/// Prepares the lookup of a name for decisions. It has no port and no transport: rules with them do not match.
fn name_request<'a>(target: &Target, source: SocketAddr) -> adit_rules::Request<'a> {
    let source = SocketAddr::new(unmap_ipv4(source.ip()), source.port());
    adit_rules::Request::new(target).with_source(source)
}

impl RouteTable {
    /// Returns the connector for `target`, which is not a made-up address.
    fn select_connector(
        self: &Arc<Self>,
        target: &Target,
        context: &RequestContext<'_>,
    ) -> Arc<dyn Connector> {
        if self.connectors.is_empty() {
            return self.default_connector.clone();
        }
        match self.rules.decide(&context.request(target)) {
            Decision::Lookup(first_rule) => Arc::new(LookupConnector {
                table: self.clone(),
                first_rule,
                target: target.clone(),
                transport: context.transport,
                source: context.source,
                user: context.user.map(Into::into),
            }),
            decision => self.connector_of(decision).clone(),
        }
    }

    /// Returns the connector of a final decision.
    fn connector_of(&self, decision: Decision) -> &Arc<dyn Connector> {
        let rule = match decision {
            Decision::Rule(at) => self.connectors.get(at),
            Decision::Lookup(_) | Decision::NoRule => None,
        };
        rule.unwrap_or(&self.default_connector)
    }
}

/// The connector for a name that no rule before `first_rule` matches and whose addresses have to be looked up.
struct LookupConnector {
    table: Arc<RouteTable>,
    first_rule: usize,
    target: Target,
    transport: Transport,
    source: SocketAddr,
    user: Option<Box<str>>,
}

impl LookupConnector {
    async fn resolve_connector(&self) -> &dyn Connector {
        let addresses = look_up(&self.target, self.table.family, &self.table.names).await;
        let context = RequestContext {
            transport: self.transport,
            source: self.source,
            user: self.user.as_deref(),
            // Only names are looked up.
            sniffed: None,
        };
        let request = context.request(&self.target);
        let rules = &self.table.rules;
        let decision = rules.decide_with_addresses(self.first_rule, &request, &addresses);
        &**self.table.connector_of(decision)
    }
}

/// Returns the addresses of a target. A name that does not resolve here has none.
pub(crate) async fn look_up(target: &Target, family: Family, names: &NameResolver) -> Vec<IpAddr> {
    match &target.host {
        Host::Ip(ip) => vec![*ip],
        Host::Name(name) => {
            let found = names.resolve(name.as_str(), target.port, family).await;
            let found = found.unwrap_or_default();
            found.iter().map(|addr| unmap_ipv4(addr.ip())).collect()
        }
    }
}

impl Connector for LookupConnector {
    fn connect<'a>(
        &'a self,
        to: &'a Target,
        first: &'a [u8],
    ) -> BoxFuture<'a, Result<ConnectedStream, DialError>> {
        debug_assert_eq!(*to, self.target, "picked for another target");
        Box::pin(async move { self.resolve_connector().await.connect(to, first).await })
    }

    fn open_datagrams(&self) -> BoxFuture<'_, Result<BoxDatagramPath, DialError>> {
        Box::pin(async move { self.resolve_connector().await.open_datagrams().await })
    }

    fn listen_for_one<'a>(
        &'a self,
        near: SocketAddr,
    ) -> BoxFuture<'a, Result<BoundSocket, DialError>> {
        Box::pin(async move { self.resolve_connector().await.listen_for_one(near).await })
    }
}
