//! Choice of the connector for each request.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, PoisonError, RwLock};

use adit_config::Condition;
use adit_net::dial::{self, Family};
use adit_wire::{Host, Target, unmap_ipv4};

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
    /// The conditions, of which at least one has to match.
    pub matches: Vec<Condition>,
    /// True if names are looked up and match networks by any of their addresses.
    pub resolve: bool,
    /// The connector for matching requests.
    pub connector: Arc<dyn Connector>,
}

struct RouteTable {
    rules: Vec<RoutingRule>,
    default_connector: Arc<dyn Connector>,
    /// The address families that names are looked up for.
    family: Family,
}

impl Router {
    /// Creates a router. Rules with `resolve` look names up for addresses of `family`.
    #[must_use]
    pub fn new(rules: Vec<RoutingRule>, otherwise: Arc<dyn Connector>, family: Family) -> Self {
        let now = Arc::new(RouteTable {
            rules,
            default_connector: otherwise,
            family,
        });
        Self(RwLock::new(RouterState { now, before: None }))
    }

    /// Returns the connector for `target`. It must not be used for another target.
    #[must_use]
    pub fn select_connector(&self, target: &Target) -> Arc<dyn Connector> {
        let signs = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let ways = &signs.now;
        for (at, rule) in ways.rules.iter().enumerate() {
            if rule.matches(target, &[]) {
                return rule.connector.clone();
            }
            if rule.needs_lookup(target) {
                return Arc::new(LookupConnector {
                    ways: ways.clone(),
                    first_rule: at,
                    target: target.clone(),
                });
            }
        }
        ways.default_connector.clone()
    }

    /// Returns the connectors of the rules, then the one for everything else.
    pub(crate) fn connectors(&self) -> Vec<Arc<dyn Connector>> {
        let signs = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let table = &signs.now;
        let rules = table.rules.iter().map(|rule| &rule.connector);
        rules.chain([&table.default_connector]).cloned().collect()
    }

    /// Routes new requests by the rules of `other` from now on.
    pub(crate) fn replace_rules(&self, other: Self) {
        let other = other.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut signs = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut signs.now, other.now);
        let oldest = signs.before.replace(before);
        // Plugins are ended by the drop, which needs no lock.
        drop(signs);
        drop(oldest);
    }
}

impl RoutingRule {
    /// Returns true if the target matches, or one of the addresses of its name.
    fn matches(&self, target: &Target, addresses: &[IpAddr]) -> bool {
        let found = |net: &Condition| match net {
            Condition::Cidr(net) if self.resolve => addresses.iter().any(|ip| net.contains(ip)),
            _ => false,
        };
        self.matches.iter().any(|m| m.matches(target) || found(m))
    }

    /// Returns true if the rule depends on the addresses of the target's name.
    fn needs_lookup(&self, target: &Target) -> bool {
        let is_net = |m: &Condition| matches!(m, Condition::Cidr(_));
        self.resolve && matches!(target.host, Host::Name(_)) && self.matches.iter().any(is_net)
    }
}

/// The connector for a name that no rule before `at` matches and whose addresses have to be looked up.
struct LookupConnector {
    ways: Arc<RouteTable>,
    first_rule: usize,
    target: Target,
}

impl LookupConnector {
    async fn resolve_connector(&self) -> &dyn Connector {
        let Target { host, port } = &self.target;
        let addresses: Vec<IpAddr> = match host {
            Host::Ip(ip) => vec![*ip],
            Host::Name(name) => {
                let found = dial::resolve(name.as_str(), *port, self.ways.family).await;
                // A name that does not resolve here is in none of the networks.
                let found = found.unwrap_or_default();
                found.iter().map(|addr| unmap_ipv4(addr.ip())).collect()
            }
        };
        let mut rules = self.ways.rules.iter().skip(self.first_rule);
        let rule = rules.find(|rule| rule.matches(&self.target, &addresses));
        &**rule.map_or(&self.ways.default_connector, |rule| &rule.connector)
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
