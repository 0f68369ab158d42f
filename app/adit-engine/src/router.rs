//! Choice of the connector for each request.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, PoisonError, RwLock};

use adit_net::dial::{self, Family};
use adit_rules::{Decision, Rule, RuleList, Transport};
use adit_wire::{Host, Name, Target, unmap_ipv4};

use crate::connector::{BoundSocket, ConnectedStream, Connector};
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
}

impl Router {
    /// Creates a router. Rules with `resolve` look names up for addresses of `family`.
    #[must_use]
    pub fn new(rules: Vec<RoutingRule>, otherwise: Arc<dyn Connector>, family: Family) -> Self {
        let (rules, connectors) = rules
            .into_iter()
            .map(|routing| (routing.rule, routing.connector))
            .unzip();
        let now = Arc::new(RouteTable {
            rules: RuleList::new(rules),
            connectors,
            default_connector: otherwise,
            family,
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
        if table.connectors.is_empty() {
            return table.default_connector.clone();
        }
        match table.rules.decide(&context.request(target)) {
            Decision::Lookup(first_rule) => Arc::new(LookupConnector {
                table: table.clone(),
                first_rule,
                target: target.clone(),
                transport: context.transport,
                source: context.source,
                user: context.user.map(Into::into),
            }),
            decision => table.connector_of(decision).clone(),
        }
    }

    /// Returns true if the name of a target that is an address could change the choice.
    pub(crate) fn depends_on_name(&self, target: &Target, context: &RequestContext<'_>) -> bool {
        if matches!(target.host, Host::Name(_)) {
            return false;
        }
        let state = self.0.read().unwrap_or_else(PoisonError::into_inner);
        state.now.rules.depends_on_name(&context.request(target))
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

impl RouteTable {
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
        let addresses = look_up(&self.target, self.table.family).await;
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
pub(crate) async fn look_up(target: &Target, family: Family) -> Vec<IpAddr> {
    match &target.host {
        Host::Ip(ip) => vec![*ip],
        Host::Name(name) => {
            let found = dial::resolve(name.as_str(), target.port, family).await;
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
