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
//! | `GET /metrics`, `GET /healthz` | metrics for Prometheus; a health check |
//! | `GET /sip008/:name/:secret` | the SIP008 document of a user |
//!
//! `{server}` is `/servers/:name/v1`. If there is only one server, it may be `/v1` or empty.

mod access;
mod client;
mod control;
mod dashboard;
mod dns;
mod events;
mod forwarder;
mod groups;
mod listener;
mod monitor;
mod overview;
mod page_sessions;
mod reload;
mod reply;
mod route;
mod sessions;
mod stats;
mod subscription;
mod upgrade;
mod users;
mod users_file;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use adit_config::{ListenerKind, Plan, Secret, SsRole};
use adit_engine::Engine;
use adit_wire::Host;
use tokio::sync::Mutex;

use crate::selection_file::SelectionFile;

pub use access::{Token, TokenScope, Tokens, TokensError, WeakToken};
pub use client::{ApiRequestError, check_health, request_upgrade};
pub use control::ApiListenerControl;
pub use forwarder::DashboardForwarder;
pub use listener::{ApiListener, ApiListenerError};
pub use reload::{ReloadReply, ReloadRequests};
pub use upgrade::{UpgradeRequest, UpgradeRequests, Upgraded};

/// Answers the requests of the API.
pub struct Api {
    engine: Arc<Engine>,
    /// The server keys, in the order of the keyed listeners of each route.
    identities: RwLock<HashMap<String, Vec<Option<Secret>>>>,
    /// Requests the reload of the configuration file, if there is one.
    reload: Option<reload::ReloadSender>,
    /// The file of the selections in manual groups, if they are kept.
    selections: Option<SelectionFile>,
    /// Requests a handover to another process, if that is possible.
    upgrade: Option<upgrade::UpgradeSender>,
    access: access::AccessControl,
    /// The traffic of the last hour, and those who watch it.
    monitor: monitor::TrafficMonitor,
    /// The host of the servers in subscriptions.
    public_host: Option<Host>,
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
            identities: RwLock::new(identities_of(plan)),
            reload: None,
            selections: None,
            upgrade: None,
            access: access::AccessControl::new(tokens),
            monitor: monitor::TrafficMonitor::new(),
            public_host,
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

    /// Sets the plan that the engine runs now.
    pub fn set_plan(&self, plan: &Plan) {
        let identities = identities_of(plan);
        *self
            .identities
            .write()
            .unwrap_or_else(PoisonError::into_inner) = identities;
    }
}

/// Returns the server keys of each route.
fn identities_of(plan: &Plan) -> HashMap<String, Vec<Option<Secret>>> {
    let mut identities: HashMap<String, Vec<Option<Secret>>> = HashMap::new();
    for route in &plan.routes {
        for listen in &route.listen {
            let ListenerKind::Shadowsocks(server) = &listen.kind else {
                continue;
            };
            let key = match &server.role {
                // A relay has no users, and is not one of the servers.
                SsRole::Relay { .. } => continue,
                SsRole::Users { identity, .. } if server.plugin.is_none() => {
                    identity.as_ref().map(|key| Secret::from(key.expose()))
                }
                SsRole::Users { .. } | SsRole::Single(_) => None,
            };
            identities.entry(route.name.clone()).or_default().push(key);
        }
    }
    identities
}
