//! The settings of a node.

use std::path::PathBuf;
use std::time::Duration;

use adit_config::{FleetSettings, OutagePolicy};
use adit_fleet::Grace;

/// The settings of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSettings {
    /// The folder of the local copy.
    pub state: PathBuf,
    /// Maximum age of the local copy at a start without the store.
    pub cache_max_age: Duration,
    /// True if the node is not ready before it has reached the store.
    pub require_store: bool,
    /// The amount that users with a quota may move while the store does not answer.
    pub grace: Grace,
    /// True if they are served after that.
    pub open_quota: bool,
    /// True if requests under keys that other nodes have are checked against those of all nodes.
    pub shared_replay_filter: bool,
    /// The treatment of these requests while the store does not answer.
    pub replay_outage: OutagePolicy,
    /// Time from the order to drain the node until it accepts nothing more.
    pub drain_grace: Duration,
    /// Time that open connections have to end then.
    pub drain_timeout: Duration,
    /// The address under which clients fetch subscriptions.
    pub subscriptions: Option<String>,
}

impl From<&FleetSettings> for NodeSettings {
    fn from(settings: &FleetSettings) -> Self {
        Self {
            state: settings.state.clone(),
            cache_max_age: settings.cache_max_age,
            require_store: settings.require_store,
            grace: Grace {
                bytes: settings.grace_bytes,
                time: settings.grace_time,
            },
            open_quota: settings.quota_outage == OutagePolicy::Open,
            shared_replay_filter: settings.shared_replay_filter,
            replay_outage: settings.replay_outage,
            drain_grace: settings.drain_grace,
            drain_timeout: settings.drain_timeout,
            subscriptions: settings.subscriptions.clone(),
        }
    }
}
