//! `[fleet]` of a file: this process is a node.

use std::sync::Arc;

use adit_admin::api::{Api, PartMetric, PartReadiness, ProcessPart};
use adit_cli::{Failure, FailureCode};
use adit_config::{
    CarrierSettings, FleetIdentity, FleetSettings, ListenerKind, Plan, Route, SsRole,
};
use adit_engine::{Engine, FleetUsers, HistogramStats};
use adit_fleet::{Membership, MembershipError, NodeServer, StoreLogin, open_store};
use adit_fleet_node::{FleetNode, MetricKind, NodeControl, NodeError, NodeReadiness, NodeSettings};
use tracing::warn;

pub(super) use super::fleet_announcer::announce_changes;

/// The control of a node.
pub(super) type FleetControl = NodeControl;

/// A node that does not follow its fleet yet.
pub(super) struct PendingNode(FleetNode);

impl PendingNode {
    /// Reads the membership of a plan with `[fleet]`.
    pub(super) fn load(plan: &Plan) -> Result<Option<Self>, Failure> {
        let Some(settings) = &plan.fleet else {
            return Ok(None);
        };
        if !settings.shared_replay_filter && has_shared_keys(plan) {
            warn!(
                "`identity=shared` without `shared_replay_filter = true` in [fleet]: a request that was captured at \
                 one node is accepted at the others"
            );
        }
        let membership = read_membership(settings)?;
        let failed = |why: &dyn std::fmt::Display| membership_failure(settings, why);
        let store = open_store(&StoreLogin::from(&membership)).map_err(|why| failed(&why))?;
        let node = FleetNode::new(store, &membership, NodeSettings::from(settings));
        Ok(Some(Self(node.map_err(|why| failed(&why))?)))
    }

    /// Returns the users of the fleet, without any if there is no node.
    pub(super) fn users(node: Option<&Self>) -> Arc<FleetUsers> {
        node.map_or_else(Arc::default, |node| node.0.users().clone())
    }

    /// Reads the users for an engine that does not accept connections yet.
    pub(super) async fn open(&mut self, engine: &Engine) -> Result<(), Failure> {
        self.0.share_replays(engine);
        self.0.open().await.map_err(|why| {
            let failure = Failure::new(FailureCode::Failure, format!("[fleet]: {why}"));
            match why {
                NodeError::Local { .. } => failure.with_hint(
                    "each node needs a `state` folder of its own; `adit upgrade` hands it over",
                ),
                NodeError::NoNode => failure,
            }
        })
    }

    /// Follows the fleet for an engine that runs `plan`.
    pub(super) fn follow(self, engine: &Arc<Engine>, plan: &Plan) -> FleetControl {
        let control = self.0.follow(engine.clone(), env!("CARGO_PKG_VERSION"));
        set_plan(&control, engine, plan);
        control
    }
}

/// Adds the metrics and the readiness of a node to the API, and the documents of its users.
pub(super) fn with_node(api: Api, node: &FleetControl) -> Api {
    api.with_part(Arc::new(NodePart(node.clone())))
        .with_subscription_servers(node.documents())
        .with_fleet_nodes(Arc::new(node.clone()))
}

/// Reports the servers of a plan that has been applied.
pub(super) fn set_plan(node: &FleetControl, engine: &Engine, plan: &Plan) {
    let host = plan
        .admin
        .as_ref()
        .and_then(|admin| admin.public_host.as_ref());
    let bound = engine.listeners();
    let mut servers = Vec::new();
    for route in &plan.routes {
        let ports = bound.iter().filter(|at| at.route == route.name);
        let ports: Vec<u16> = ports.map(|at| at.addr.port()).collect();
        for (at, listen) in route.listen.iter().enumerate() {
            let port = ports.get(at).copied().unwrap_or(listen.addr.port);
            servers.extend(server_of(
                route,
                &listen.kind,
                listen.carrier.as_ref(),
                port,
            ));
        }
    }
    node.set_servers(host.map(ToString::to_string), servers);
}

/// Returns what clients need to know of a listener with users of the fleet.
fn server_of(
    route: &Route,
    kind: &ListenerKind,
    carrier: Option<&CarrierSettings>,
    port: u16,
) -> Option<NodeServer> {
    // Clients need settings of plugins and carriers that only the operator knows.
    if !kind.has_fleet_users() || carrier.is_some() || kind.plugin().is_some() {
        return None;
    }
    let mut server = NodeServer {
        name: route.name.clone(),
        port,
        tcp: true,
        ..NodeServer::default()
    };
    match kind {
        ListenerKind::Shadowsocks(ss) => {
            server.dialect = "ss".to_owned();
            server.method = ss.method.name().to_owned();
            (server.tcp, server.udp) = (ss.tcp, ss.udp);
            if let SsRole::Fleet { identity } = &ss.role
                && ss.method.has_identities()
            {
                server.identity = match identity {
                    FleetIdentity::Node => adit_fleet::NodeIdentity::Node,
                    FleetIdentity::Shared => adit_fleet::NodeIdentity::Shared,
                };
            }
        }
        ListenerKind::ShadowsocksR(ssr) => {
            server.dialect = "ssr".to_owned();
            server.method = ssr.method.to_string();
            (server.tcp, server.udp) = (ssr.tcp, ssr.udp);
        }
        ListenerKind::Proxy(proxy) => {
            let dialect = if proxy.socks5 { "socks5" } else { "http" };
            server.dialect = dialect.to_owned();
            server.udp = proxy.udp;
        }
        ListenerKind::Ssh(_) => server.dialect = "ssh".to_owned(),
        _ => return None,
    }
    Some(server)
}

/// Returns true if a server has the key that all nodes share.
fn has_shared_keys(plan: &Plan) -> bool {
    let mut listeners = plan.routes.iter().flat_map(|route| &route.listen);
    listeners.any(|listen| match &listen.kind {
        ListenerKind::Shadowsocks(server) => {
            let identity = FleetIdentity::Shared;
            server.role == SsRole::Fleet { identity }
        }
        _ => false,
    })
}

/// Checks the membership that a file names, without opening the store.
pub(super) fn check_settings(plan: &Plan) -> Result<(), Failure> {
    let Some(settings) = &plan.fleet else {
        return Ok(());
    };
    match read_membership(settings)?.node_id {
        Some(_) => Ok(()),
        None => Err(membership_failure(settings, &NodeError::NoNode)),
    }
}

fn read_membership(settings: &FleetSettings) -> Result<Membership, Failure> {
    Membership::read(&settings.membership).map_err(|why| {
        let failure = membership_failure(settings, &why);
        match why {
            MembershipError::Io(_) => {
                failure.with_hint("`adit fleet join TOKEN` writes the file of a node")
            }
            _ => failure,
        }
    })
}

fn membership_failure(settings: &FleetSettings, why: &dyn std::fmt::Display) -> Failure {
    let path = settings.membership.display();
    Failure::new(
        FailureCode::Config,
        format!("[fleet] membership = \"{path}\": {why}"),
    )
}

struct NodePart(NodeControl);

impl ProcessPart for NodePart {
    fn readiness(&self) -> PartReadiness {
        match self.0.readiness() {
            NodeReadiness::Ready => PartReadiness::Ready,
            NodeReadiness::Degraded(why) => PartReadiness::Degraded(why),
            NodeReadiness::NotReady(why) => PartReadiness::NotReady(why),
        }
    }

    fn metrics(&self) -> Vec<PartMetric> {
        let metrics = self.0.metrics().into_iter();
        let metrics = metrics.map(|metric| PartMetric {
            name: metric.name,
            is_counter: metric.kind == MetricKind::Counter,
            help: metric.help,
            samples: metric.samples,
        });
        metrics.collect()
    }

    fn histograms(&self) -> Vec<(&'static str, &'static str, HistogramStats)> {
        let calls = self.0.call_durations();
        let stats = HistogramStats {
            buckets: calls.buckets,
            count: calls.count,
            sum: calls.sum,
        };
        vec![(
            "adit_fleet_call_seconds",
            "Time of calls to the store of the fleet, without those that wait for changes.",
            stats,
        )]
    }
}
