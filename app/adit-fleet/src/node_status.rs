//! The status of nodes: what each reports every few seconds, and what the realm records of it permanently.

use serde::{Deserialize, Serialize};

use crate::subscription_address::SubscriptionAddress;

/// The state of a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeState {
    /// It accepts sessions.
    #[default]
    Active,
    /// It accepts no new sessions.
    Draining,
    /// It has no sessions any more.
    Drained,
}

/// The identity key that clients of a server use in front of their own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeIdentity {
    /// None: users have a password, or a key alone.
    #[default]
    None,
    /// [`RealmKey::identity_psk`](crate::RealmKey::identity_psk) of the node.
    Node,
    /// [`RealmKey::shared_psk`](crate::RealmKey::shared_psk), which all nodes of the realm have.
    Shared,
}

/// A server of a node, from which settings for users are made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeServer {
    /// The name of the route.
    pub name: String,
    /// The name or address for clients; empty for the `public_host` of the node.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The protocol: `ss`, `ssr`, `socks5`, `http` or `ssh`.
    pub dialect: String,
    /// The method of Shadowsocks.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub method: String,
    /// The URL for clients, without user and password, for protocols that need more than the fields above.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// The identity key.
    pub identity: NodeIdentity,
    /// True if it serves streams.
    pub tcp: bool,
    /// True if it serves datagrams.
    pub udp: bool,
}

/// The weight of nodes for which the operator has set none.
pub const DEFAULT_WEIGHT: u32 = 100;

/// The report of a running node. It disappears from the store soon after the node stops reporting.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeStatus {
    /// The number of the node.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// A random number of this process: another one at the same node shows that two processes use one membership.
    pub instance: u64,
    /// The version of adit.
    pub version: String,
    /// The time when the process started, in seconds since 1970.
    pub started_unix: u64,
    /// Open sessions.
    pub sessions: u64,
    /// Payload bytes per second from clients.
    pub up_per_second: u64,
    /// Payload bytes per second to clients.
    pub down_per_second: u64,
    /// Users in the table.
    pub users: u64,
    /// The number of the last change that was applied.
    pub change: u64,
    /// The delay of the last change, in milliseconds.
    pub lag_ms: u64,
    /// The node's clock minus that of the store, in milliseconds.
    pub clock_offset_ms: i64,
    /// The state.
    pub state: NodeState,
    /// The fault because of which the node works with limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub degraded: Option<String>,
    /// Failed and refused sessions among 10,000 of the last minute.
    pub errors_per_10000: u32,
    /// The 99th percentile of the time of handshakes, in microseconds.
    pub handshake_p99_us: u64,
    /// Bytes that were counted and not yet acknowledged by the store.
    pub unacknowledged_bytes: u64,
    /// The name or address for clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub public_host: Option<String>,
    /// The address under which clients fetch subscriptions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscriptions: Option<SubscriptionAddress>,
    /// The servers.
    pub servers: Vec<NodeServer>,
    /// The result of the last upgrade.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upgrade: Option<String>,
    /// The result of the last test of a neighbour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<String>,
}

/// The permanent record of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeRecord {
    /// The name, which is unique in the realm.
    pub name: String,
    /// The weight among the nodes that clients choose from, [`DEFAULT_WEIGHT`] if the operator has set none; 0 removes
    /// the node.
    pub weight: u32,
    /// The state that the operator has requested.
    pub state: NodeState,
    /// The time when the number was assigned, in seconds since 1970.
    pub joined_unix: u64,
}

impl Default for NodeRecord {
    fn default() -> Self {
        Self {
            name: String::new(),
            weight: DEFAULT_WEIGHT,
            state: NodeState::default(),
            joined_unix: 0,
        }
    }
}

/// A node of the realm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeEntry {
    /// The number.
    pub id: u32,
    /// The permanent record.
    pub record: NodeRecord,
    /// The last report; `None` if the node does not report any more.
    pub status: Option<NodeStatus>,
}

impl NodeEntry {
    /// Returns true if clients may choose the node: it reports, neither it nor the operator drains it, and it has a
    /// weight.
    #[must_use]
    pub fn is_listed(&self) -> bool {
        let reported = self
            .status
            .as_ref()
            .is_some_and(|status| status.state == NodeState::Active);
        reported && self.record.state == NodeState::Active && self.record.weight > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_of_other_versions_are_read() {
        let status: NodeStatus =
            serde_json::from_str(r#"{"id":3,"name":"fra","novel":[1],"state":"draining"}"#)
                .unwrap();
        assert_eq!((status.id, status.state), (3, NodeState::Draining));
        let text = serde_json::to_string(&status).unwrap();
        assert_eq!(serde_json::from_str::<NodeStatus>(&text).unwrap(), status);
    }
}
