//! The time in which nodes load users, and the memory that the users take.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use adit_fleet_world::{CountingSink, FleetWorld, NodeOptions};
use adit_interop::store_server::StoreServer;
use anyhow::{Context, Result};

use super::extent::FleetExtent;
use super::gate::Gate;
use super::propagation::log_in_early;
use crate::figures::{DURATION, GROWTH};

/// Time that everything may take before the measurement fails.
const LIMIT: Duration = Duration::from_secs(120);

/// Time between two attempts of a user to log in: sixteen nodes are asked at once, while they load users.
const ATTEMPTS: Duration = Duration::from_millis(25);

/// Time that memory takes to settle.
const SETTLE: Duration = Duration::from_secs(2);

/// Measures the time from the moment when the store has all users until every node has let the last of them in.
pub(super) fn measure_load(adit: &Path, extent: &FleetExtent) -> Result<Vec<Gate>> {
    let loaded = load_users(adit, extent.nodes, extent.users)?;
    let (nodes, users) = (extent.nodes, extent.users);
    Ok(vec![
        Gate::new(
            format!("{users} users are loaded by {nodes} nodes"),
            DURATION,
            loaded.time.as_secs_f64() * 1000.0,
            1000.0,
        ),
        Gate::new(
            format!("memory of a node for {users} users"),
            GROWTH,
            loaded.growth,
            8.0,
        ),
    ])
}

/// Measures the memory of one node with very many users.
pub(super) fn measure_large_table(adit: &Path, extent: &FleetExtent) -> Result<Vec<Gate>> {
    let loaded = load_users(adit, 1, extent.many_users)?;
    let users = extent.many_users;
    Ok(vec![
        Gate::new(
            format!("memory of a node for {users} users"),
            GROWTH,
            loaded.growth,
            30.0,
        ),
        Gate::free(
            format!("{users} users are loaded by 1 node"),
            DURATION,
            loaded.time.as_secs_f64() * 1000.0,
        ),
    ])
}

struct Loaded {
    time: Duration,
    /// Growth of the node that has grown most, in MiB.
    growth: f64,
}

fn load_users(adit: &Path, nodes: usize, users: usize) -> Result<Loaded> {
    let mut world = FleetWorld::new(StoreServer::start()?)?;
    // All records exist, but the realm has none of them.
    let names = (0..users).map(|n| format!("user-{n:06}"));
    let all = world.operator.add_users(names, |_| {})?;
    let records = world.operator.snapshot()?;
    let none = adit_fleet::Snapshot {
        version: records.version,
        users: Vec::new(),
    };
    world.operator.restore(&none)?;
    world.start_nodes(adit, nodes, &NodeOptions::default())?;
    let sink = CountingSink::start()?;
    let last = all.last().context("a user")?;
    world.wait_until("the nodes report", LIMIT, |world| {
        Ok(world.reports()?.len() == nodes)
    })?;
    thread::sleep(SETTLE);
    let before = resident(&mut world)?;
    let start = Instant::now();
    world.operator.restore(&records)?;
    let addrs: Vec<_> = world
        .nodes
        .iter()
        .map(adit_fleet_world::FleetNode::addr)
        .collect();
    let sink = &sink;
    let times = thread::scope(|scope| {
        let wait = |node| {
            scope.spawn(move || {
                let (_, at) = log_in_early(node, last, sink.addr(), ATTEMPTS, LIMIT)?;
                Ok(at - start)
            })
        };
        let waits: Vec<_> = addrs.into_iter().map(wait).collect();
        let ended = waits
            .into_iter()
            .map(|wait| wait.join().ok().context("a thread"));
        ended.map(|time| time?).collect::<Result<Vec<Duration>>>()
    })?;
    thread::sleep(SETTLE);
    let after = resident(&mut world)?;
    let growth = before
        .iter()
        .zip(&after)
        .map(|(before, after)| after.saturating_sub(*before));
    let growth = growth.max().unwrap_or_default();
    Ok(Loaded {
        time: times.into_iter().max().unwrap_or_default(),
        growth: growth as f64 / 1024.0,
    })
}

/// Returns the memory of each node, in KiB.
fn resident(world: &mut FleetWorld) -> Result<Vec<u64>> {
    world
        .nodes
        .iter_mut()
        .map(adit_fleet_world::FleetNode::resident)
        .collect()
}
