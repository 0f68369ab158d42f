//! Settings of a node of a fleet, and of its behaviour while the store server cannot be reached.

use core::time::Duration;
use std::path::PathBuf;

/// The settings of `[fleet]`: this process is a node of a fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetSettings {
    /// The membership, which `adit fleet init` and `adit fleet join` write.
    pub membership: PathBuf,
    /// The folder of the local copy of the users and of usage that is not stored yet.
    pub state: PathBuf,
    /// Maximum age of the local copy at a start without the store server.
    pub cache_max_age: Duration,
    /// True if the node is not ready before it has reached the store server.
    pub require_store: bool,
    /// Bytes that a user with a quota may move while the store server cannot be reached.
    pub grace_bytes: u64,
    /// Time for which users with a quota are served while the store server cannot be reached.
    pub grace_time: Duration,
    /// Users with a quota after that.
    pub quota_outage: OutagePolicy,
    /// Sessions under shared keys while other nodes cannot be asked about replays.
    pub replay_outage: OutagePolicy,
    /// True if requests under shared keys are checked against those of all nodes.
    pub shared_replay_filter: bool,
    /// Time from the request to drain the node until it accepts nothing more.
    pub drain_grace: Duration,
    /// Time that open connections of a drained node have to end.
    pub drain_timeout: Duration,
    /// The address under which clients fetch subscriptions: `https://HOST`, without a slash at its end.
    pub subscriptions: Option<String>,
}

impl FleetSettings {
    /// Returns the settings of a file that sets nothing else. The state is beside the membership.
    #[must_use]
    pub fn with_membership(membership: PathBuf) -> Self {
        let state = membership.parent().map(PathBuf::from).unwrap_or_default();
        Self {
            membership,
            state,
            cache_max_age: Duration::from_secs(7 * 86_400),
            require_store: false,
            grace_bytes: 1 << 30,
            grace_time: Duration::from_secs(3600),
            quota_outage: OutagePolicy::Closed,
            replay_outage: OutagePolicy::Open,
            shared_replay_filter: false,
            drain_grace: Duration::from_secs(60),
            drain_timeout: Duration::from_secs(3600),
            subscriptions: None,
        }
    }
}

/// The treatment of what the store server would have to decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutagePolicy {
    /// Refuse it.
    Closed,
    /// Allow it.
    Open,
}

/// All policies with their names.
const POLICIES: [(&str, OutagePolicy); 2] = [
    ("closed", OutagePolicy::Closed),
    ("open", OutagePolicy::Open),
];

impl OutagePolicy {
    /// Returns the names of all policies.
    pub fn names() -> impl Iterator<Item = &'static str> {
        POLICIES.iter().map(|(name, _)| *name)
    }

    /// Returns the policy with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let found = POLICIES.iter().find(|(known, _)| *known == name);
        found.map(|(_, policy)| *policy)
    }
}
