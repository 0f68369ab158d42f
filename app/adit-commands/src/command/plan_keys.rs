//! The IDs of a plan's keys, which are the same at both ends.

use std::fmt;

use adit_config::{Hop, HopKind, ListenerKind, Plan, SsRole, SsServer, Stage};
use adit_shadowsocks::{Edition, Key, Method};
use serde::Serialize;

/// The key of a listener or of a hop, without the key itself.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PlanKey {
    /// The ID of the shared key; `None` if each user has a key alone.
    key_id: Option<String>,
    method: &'static str,
    /// The address of the listener, or `None` for a hop.
    #[serde(skip_serializing_if = "Option::is_none")]
    listen: Option<String>,
    /// The server of the hop, or `None` for a listener.
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    /// The number of users of the listener.
    #[serde(skip_serializing_if = "Option::is_none")]
    users: Option<usize>,
    /// The number of servers that a relay forwards to.
    #[serde(skip_serializing_if = "Option::is_none")]
    relay_servers: Option<usize>,
}

impl fmt::Display for PlanKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let users = self.users.map(|users| format!(", users: {users},"));
        let servers = self
            .relay_servers
            .map(|servers| format!(", relay to servers: {servers},"));
        let place = match (&self.listen, &self.server) {
            (Some(listen), _) => format!(" on {listen}"),
            (None, Some(server)) => format!(" to {server}"),
            (None, None) => String::new(),
        };
        let about = [users, servers, Some(place)].into_iter().flatten();
        let about: String = about.collect();
        match &self.key_id {
            Some(id) => write!(f, "key-id {id}  {}{about}", self.method),
            None => write!(f, "{}{about}", self.method),
        }
    }
}

/// Returns the keys of the plan, those of each route's listeners before those of its hops.
pub(super) fn plan_keys(plan: &Plan) -> Vec<PlanKey> {
    let mut keys = Vec::new();
    for route in &plan.routes {
        for listen in &route.listen {
            if let ListenerKind::Shadowsocks(server) = &listen.kind {
                keys.push(PlanKey {
                    listen: Some(listen.addr.to_string()),
                    ..server_key(server)
                });
            }
        }
        for hop in route.via.stages.iter().flat_map(Stage::all_hops) {
            if let Hop::Server(hop) = hop
                && let HopKind::Shadowsocks { method, secret, .. } = &hop.kind
            {
                keys.push(PlanKey {
                    key_id: Some(key_id(*method, secret.expose())),
                    server: Some(hop.server.to_string()),
                    ..PlanKey::of_method(*method)
                });
            }
        }
    }
    keys
}

impl PlanKey {
    fn of_method(method: Method) -> Self {
        Self {
            key_id: None,
            method: method.name(),
            listen: None,
            server: None,
            users: None,
            relay_servers: None,
        }
    }
}

/// Returns the method of a server, the ID of its shared key, and the number of its users.
fn server_key(server: &SsServer) -> PlanKey {
    let mut key = PlanKey::of_method(server.method);
    let shared = match &server.role {
        SsRole::Single(secret) => Some(secret),
        SsRole::Users {
            identity, users, ..
        } => {
            key.users = Some(users.len());
            identity.as_ref()
        }
        // They are not in the plan.
        SsRole::Fleet { .. } => None,
        SsRole::Relay { identity, next } => {
            key.relay_servers = Some(next.len());
            Some(identity)
        }
    };
    key.key_id = shared.map(|secret| key_id(server.method, secret.expose()));
    key
}

/// Returns the ID of a key. Keys that are joined by `:` (SIP023) have IDs joined the same way.
pub(super) fn key_id(method: Method, secret: &str) -> String {
    let one = |secret: &str| {
        Key::parse(method, secret).map_or_else(|_| "????".to_owned(), |key| key.id().to_string())
    };
    if method.edition() == Edition::Aead2022 {
        let ids: Vec<String> = secret.split(':').map(one).collect();
        return ids.join(":");
    }
    one(secret)
}
