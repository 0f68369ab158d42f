//! The amounts of the suite, usual and tiny.

use std::time::Duration;

/// The amounts of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct FleetExtent {
    /// Number of nodes of most measurements.
    pub(super) nodes: usize,
    /// Users that all nodes load at once.
    pub(super) users: usize,
    /// Users of the large table of one node.
    pub(super) many_users: usize,
    /// Users that are added and removed.
    pub(super) changes: usize,
    /// Changes per second.
    pub(super) changes_per_second: u32,
    /// Duration of the kills, and time between two of them.
    pub(super) kill_time: Duration,
    pub(super) kill_every: Duration,
    /// Number of times that the store is started again meanwhile.
    pub(super) store_restarts: u32,
    /// Duration of the chaos.
    pub(super) chaos: Duration,
    /// The quota that all nodes use up together.
    pub(super) quota: u64,
    /// Time for which the store stands still.
    pub(super) stall: Duration,
    /// Time for which half of the nodes are apart.
    pub(super) partition: Duration,
    /// Bytes of a transfer on the data path, pairs of transfers, and how often their processes are started.
    pub(super) transfer: u64,
    pub(super) pairs: u32,
    pub(super) starts: u32,
    /// Calls of each kind to the store.
    pub(super) calls: u32,
    /// Numbers of nodes for the cost of a node.
    pub(super) fleet_sizes: &'static [usize],
    /// Nodes and users of the largest simulation.
    pub(super) simulated: (u32, u32),
}

pub(super) const USUAL: FleetExtent = FleetExtent {
    nodes: 16,
    users: 10_000,
    many_users: 100_000,
    changes: 1000,
    changes_per_second: 100,
    kill_time: Duration::from_secs(60),
    kill_every: Duration::from_secs(1),
    store_restarts: 5,
    chaos: Duration::from_secs(600),
    quota: 1 << 30,
    stall: Duration::from_secs(300),
    partition: Duration::from_secs(120),
    transfer: 1 << 30,
    // With 20 starts of 8 pairs the margin is 1.3 %; the medians of two starts differ by 3 % or more.
    pairs: 8,
    starts: 30,
    calls: 20_000,
    fleet_sizes: &[1, 4, 16, 64],
    simulated: (1000, 1_000_000),
};

pub(super) const SMOKE: FleetExtent = FleetExtent {
    nodes: 2,
    users: 100,
    many_users: 500,
    changes: 20,
    changes_per_second: 20,
    kill_time: Duration::from_secs(3),
    kill_every: Duration::from_secs(1),
    store_restarts: 1,
    chaos: Duration::from_secs(5),
    quota: 32 << 20,
    stall: Duration::from_secs(2),
    partition: Duration::from_secs(2),
    transfer: 8 << 20,
    pairs: 1,
    starts: 2,
    calls: 50,
    fleet_sizes: &[1, 2],
    simulated: (20, 2000),
};
