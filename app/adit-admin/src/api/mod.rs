//! The server management API v1 over HTTP, with metrics and subscriptions.
//!
//! ```text
//! listener (port or Unix socket) ─▶ access checks ─▶ route ─▶ users · stats · metrics · subscription
//! ```
//!
//! | request | answer |
//! |---|---|
//! | `GET /servers` | the servers of the process |
//! | `GET {server}/` | name and version of the API |
//! | `GET, POST {server}/users` | lists the users; adds a user |
//! | `GET, PATCH, DELETE {server}/users/:name` | traffic of the user; changes the key; removes the user |
//! | `GET {server}/stats` | traffic of the server and its users; `?clear=true` resets it |
//! | `POST /v1/reload` | reads the configuration file again |
//! | `POST /v1/upgrade` | starts another process, which continues the listeners |
//! | `GET /overview`, `GET /history` | the counters of the process; its traffic in the last hour |
//! | `GET /events` | server-sent events with the overview, once per second |
//! | `GET /sessions`, `DELETE /sessions/:id` | the open sessions; ends one |
//! | `GET /dashboard` | a page for browsers |
//! | `GET /groups`, `GET, POST /groups/:name` | the groups and their members' health; selects the member of a manual group |
//! | `GET, POST /accounts` | all users of the process, with limits and usage; adds a user |
//! | `GET, DELETE /accounts/:name` | one of them; removes the user from all listeners |
//! | `POST /accounts/:name/rotate` | creates new keys and passwords for a user |
//! | `PUT, DELETE /accounts/:name/limits`, `POST /accounts/:name/reset` | changes the limits; starts to count from zero |
//! | `POST /v1/import` | makes users what the request says, with given keys and limits |
//! | `GET /metrics` | metrics for Prometheus |
//! | `GET /healthz`, `GET /readyz` | a health check; whether new connections are accepted |
//! | `GET /sip008/:name/:secret` | the servers of a user: SIP008, or another format by `?format=` or `User-Agent` |
//!
//! `{server}` is `/servers/:name/v1`. If there is only one server, it may be `/v1` or empty.

mod access;
mod account_client;
mod account_import;
mod account_limits;
mod accounts;
mod audit;
mod client;
mod control;
mod dashboard;
mod dns;
mod event_reader;
mod events;
mod fleet_answer;
mod fleet_nodes;
mod fleet_servers;
mod forwarder;
mod given_secrets;
mod groups;
mod listener;
pub(crate) mod metric_family;
pub(crate) mod metrics;
mod metrics_text;
mod monitor;
mod overview;
mod page_sessions;
mod process_part;
mod reload;
mod reply;
mod route;
mod server_uuid;
mod sessions;
mod stats;
mod subscription;
mod upgrade;
mod user_listener;
mod users;
mod users_file;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use adit_config::{ListenerKind, Plan, Secret, SsRole, WebhookEventKind};
use adit_engine::Engine;
use adit_wire::Host;
use tokio::sync::Mutex;

use crate::audit_log::AuditLog;
use crate::selection_file::SelectionFile;
use crate::webhook::WebhookHub;

pub use access::{Token, TokenScope, Tokens, TokensError, WeakToken};
pub use account_client::{
    AccountInfo, AccountList, IssuedCredential, IssuedCredentials, LimitsPatch, NewAccount,
};
pub use account_import::{
    ImportOutcome, ImportReply, ImportRequest, ImportResult, ImportedAccount, MAX_IMPORT,
};
pub use account_limits::changed_limits;
pub use client::{ApiClient, ApiRequestError, check_health, check_readiness, request_upgrade};
pub use control::ApiListenerControl;
pub use event_reader::{EventReader, EventReaderEnd, ServerEvent};
pub use fleet_nodes::{FleetDescription, FleetNodes};
pub use fleet_servers::{OfferedServer, SubscriptionOffer, SubscriptionServers};
pub use forwarder::DashboardForwarder;
pub use given_secrets::GivenSecrets;
pub use listener::{ApiListener, ApiListenerError};
pub use process_part::{PartMetric, PartReadiness, ProcessPart};
pub use reload::{ReloadReply, ReloadRequests};
pub use subscription::subscription_path;
pub use upgrade::{UpgradeRequest, UpgradeRequests, Upgraded};

/// Answers the requests of the API.
pub struct Api {
    engine: Arc<Engine>,
    /// The settings of servers, in the order of the keyed listeners of each route.
    servers: RwLock<HashMap<String, Vec<ServerSettings>>>,
    /// Requests the reload of the configuration file, if there is one.
    reload: Option<reload::ReloadSender>,
    /// The file of the selections in manual groups, if they are kept.
    selections: Option<SelectionFile>,
    /// True if limits of users survive the process.
    keeps_limits: bool,
    /// Requests a handover to another process, if that is possible.
    upgrade: Option<upgrade::UpgradeSender>,
    access: access::AccessControl,
    /// The traffic of the last hour, and those who watch it.
    monitor: monitor::TrafficMonitor,
    /// The host of the servers in subscriptions.
    public_host: Option<Host>,
    /// The servers of all nodes, if this process is a node of a fleet.
    fleet_servers: Option<Arc<dyn SubscriptionServers>>,
    /// The nodes, if this process is one of them.
    fleet_nodes: Option<Arc<dyn FleetNodes>>,
    /// Number of listeners of the plan.
    expected_listeners: AtomicUsize,
    /// True if metrics contain the names and the usage of users.
    shows_users_in_metrics: bool,
    /// Has metrics and a readiness of its own.
    part: Option<Arc<dyn ProcessPart>>,
    /// Records changes.
    audit: Option<AuditLog>,
    /// Receivers of events.
    webhooks: Option<WebhookHub>,
    /// Held during a change of users or a selection in a group, which write a file.
    change_lock: Mutex<()>,
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api").finish_non_exhaustive()
    }
}

impl Api {
    /// Creates an API for the servers of `engine`, which runs `plan`. All requests except those for
    /// subscriptions and `/healthz` need one of the `tokens`, unless it is `None`. Subscriptions are
    /// served if there is a `public_host`.
    #[must_use]
    pub fn new(
        engine: Arc<Engine>,
        plan: &Plan,
        tokens: Option<Tokens>,
        public_host: Option<Host>,
    ) -> Self {
        Self {
            engine,
            servers: RwLock::new(servers_of(plan)),
            reload: None,
            selections: None,
            keeps_limits: false,
            upgrade: None,
            access: access::AccessControl::new(tokens),
            monitor: monitor::TrafficMonitor::new(),
            public_host,
            fleet_servers: None,
            fleet_nodes: None,
            expected_listeners: AtomicUsize::new(listener_count(plan)),
            shows_users_in_metrics: false,
            part: None,
            audit: None,
            webhooks: None,
            change_lock: Mutex::new(()),
        }
    }

    /// Keeps the selections in manual groups in a file, so that they outlive the process.
    #[must_use]
    pub fn with_selection_file(self, file: SelectionFile) -> Self {
        Self {
            selections: Some(file),
            ..self
        }
    }

    /// Notes that the limits of users are in a store, which the process reads at its start.
    #[must_use]
    pub fn with_kept_limits(self) -> Self {
        Self {
            keeps_limits: true,
            ..self
        }
    }

    /// Serves subscriptions with the servers of all nodes of a fleet to its users.
    #[must_use]
    pub fn with_subscription_servers(self, servers: Arc<dyn SubscriptionServers>) -> Self {
        Self {
            fleet_servers: Some(servers),
            ..self
        }
    }

    /// Shows the nodes of a fleet.
    #[must_use]
    pub fn with_fleet_nodes(self, nodes: Arc<dyn FleetNodes>) -> Self {
        Self {
            fleet_nodes: Some(nodes),
            ..self
        }
    }

    /// Adds the names and the usage of users to the metrics.
    #[must_use]
    pub fn with_users_in_metrics(self) -> Self {
        Self {
            shows_users_in_metrics: true,
            ..self
        }
    }

    /// Adds the metrics and the readiness of a part of the process.
    #[must_use]
    pub fn with_part(self, part: Arc<dyn ProcessPart>) -> Self {
        Self {
            part: Some(part),
            ..self
        }
    }

    /// Informs receivers of users that are added and removed.
    #[must_use]
    pub fn with_webhooks(self, webhooks: WebhookHub) -> Self {
        Self {
            webhooks: Some(webhooks),
            ..self
        }
    }

    fn announce_added(&self, name: &str) {
        self.announce_user(WebhookEventKind::UserAdded, name);
    }

    fn announce_removed(&self, name: &str) {
        self.announce_user(WebhookEventKind::UserRemoved, name);
    }

    fn announce_user(&self, kind: WebhookEventKind, name: &str) {
        if let Some(webhooks) = &self.webhooks {
            webhooks.emit(kind, &serde_json::json!({ "user": name }));
        }
    }

    /// Sets the plan that the engine runs now.
    pub fn set_plan(&self, plan: &Plan) {
        let expected = listener_count(plan);
        self.expected_listeners.store(expected, Ordering::Relaxed);
        let servers = servers_of(plan);
        *self.servers.write().unwrap_or_else(PoisonError::into_inner) = servers;
    }
}

fn listener_count(plan: &Plan) -> usize {
    plan.routes.iter().map(|route| route.listen.len()).sum()
}

/// The settings of a Shadowsocks server that its clients need.
#[derive(Clone)]
struct ServerSettings {
    /// The server's key, if users have keys beside it.
    identity: Option<Secret>,
    /// True unless clients need a plugin or a carrier, whose settings only the operator knows.
    is_plain: bool,
    tcp: bool,
    udp: bool,
}

/// Returns the settings of the keyed listeners of each route.
fn servers_of(plan: &Plan) -> HashMap<String, Vec<ServerSettings>> {
    let mut servers: HashMap<String, Vec<ServerSettings>> = HashMap::new();
    for route in &plan.routes {
        for listen in &route.listen {
            let ListenerKind::Shadowsocks(server) = &listen.kind else {
                continue;
            };
            let identity = match &server.role {
                // A relay has no users, and is not one of the servers.
                SsRole::Relay { .. } => continue,
                // The key is not in the plan, and clients get it from the fleet.
                SsRole::Fleet { .. } => None,
                SsRole::Users { identity, .. } => {
                    identity.as_ref().map(|key| Secret::from(key.expose()))
                }
                SsRole::Single(_) => None,
            };
            let settings = ServerSettings {
                identity,
                // Only the fleet knows what its users need.
                is_plain: server.plugin.is_none()
                    && listen.carrier.is_none()
                    && !matches!(server.role, SsRole::Fleet { .. }),
                tcp: server.tcp,
                udp: server.udp,
            };
            servers
                .entry(route.name.clone())
                .or_default()
                .push(settings);
        }
    }
    servers
}
