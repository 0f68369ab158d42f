//! The nodes of a fleet, for the dashboard of each of them.

use serde::Serialize;
use serde_json::Value;

/// The nodes that a node of a fleet knows.
pub trait FleetNodes: Send + Sync {
    /// Returns what the node knows at `unix`, in seconds since 1970.
    fn describe(&self, unix: u64) -> FleetDescription;
}

/// The answer to `GET /fleet`.
#[derive(Debug, Default, Serialize)]
pub struct FleetDescription {
    /// The name of the realm.
    pub realm: String,
    /// The number of the node that answers.
    pub node: u32,
    /// The number of users in its table.
    pub users: u64,
    /// The reason why its table may be old, such as a store that does not answer.
    pub fault: Option<String>,
    /// The nodes, as `adit fleet status --json` has them.
    pub nodes: Vec<Value>,
}
