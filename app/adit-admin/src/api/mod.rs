//! The server management API v1 over HTTP, with metrics and subscriptions beside it.
//!
//! ```text
//! door (port or Unix socket) ─▶ guard ─▶ route ─▶ users · stats · metrics · subscription
//! ```
//!
//! | request | answer |
//! |---|---|
//! | `GET /servers` | the servers of the process |
//! | `GET {server}/` | name and version of the API |
//! | `GET, POST {server}/users` | names; a new user |
//! | `GET, PATCH, DELETE {server}/users/:name` | usage; another key; no user any more |
//! | `GET {server}/stats` | usage of server and users; `?clear=true` counts anew |
//! | `GET /metrics`, `GET /healthz` | for Prometheus; that it runs |
//! | `GET /sip008/:name/:secret` | the SIP008 document of a user |
//!
//! `{server}` is `/servers/:name/v1`. Where there is one server it is `/v1` or nothing as well.

mod access;
mod listener;
mod reply;
mod route;
mod stats;
mod subscription;
mod users;
mod users_file;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use adit_config::{ListenerKind, Plan, Secret, SsRole};
use adit_engine::Engine;
use adit_wire::Host;
use tokio::sync::Mutex;

pub use access::{Token, TokenScope, Tokens, TokensError, WeakToken};
pub use listener::{ApiListener, ApiListenerError};

/// What answers requests.
pub struct Api {
    engine: Arc<Engine>,
    /// The servers' own keys, in the order of the keyed listeners of each route.
    identities: HashMap<String, Vec<Option<Secret>>>,
    tokens: Option<Tokens>,
    /// The host that subscriptions name.
    public_host: Option<Host>,
    /// Held while users are changed: a change reads, writes a file and then tells the engine.
    change_lock: Mutex<()>,
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api").finish_non_exhaustive()
    }
}

impl Api {
    /// Manages the servers of `engine`, which runs `plan`. A token is asked of everyone but those
    /// who fetch a subscription or `/healthz`, unless `tokens` is none; subscriptions are served if `public_host` is known.
    #[must_use]
    pub fn new(
        engine: Arc<Engine>,
        plan: &Plan,
        tokens: Option<Tokens>,
        public_host: Option<Host>,
    ) -> Self {
        let mut identities: HashMap<String, Vec<Option<Secret>>> = HashMap::new();
        for route in &plan.routes {
            for listen in &route.listen {
                let ListenerKind::Shadowsocks(server) = &listen.kind else {
                    continue;
                };
                let key = match &server.role {
                    // A relay has no users of its own and is not among the servers.
                    SsRole::Relay { .. } => continue,
                    SsRole::Users { identity, .. } if server.plugin.is_none() => {
                        identity.as_ref().map(|key| Secret::from(key.expose()))
                    }
                    SsRole::Users { .. } | SsRole::Single(_) => None,
                };
                identities.entry(route.name.clone()).or_default().push(key);
            }
        }
        Self {
            engine,
            identities,
            tokens,
            public_host,
            change_lock: Mutex::new(()),
        }
    }
}
