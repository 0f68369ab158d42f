//! The cost of a fleet at the store: measured for few nodes, and simulated for many with the measured costs of calls.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use adit_fleet_world::{CountingSink, FleetNode, FleetWorld, NodeOptions, Upload};
use adit_interop::store_server::StoreServer;
use anyhow::Result;

use super::extent::FleetExtent;
use super::store_calls::{StoreCosts, measure_costs};
use crate::figures::{DURATION, Figures, GROWTH, Metric, STORE_SHARE, as_float, whole_figure};
use crate::process_cost::cpu_time;
use crate::simulation::{Faults, Flow, MILLISECOND, Outcome, SECOND, Scenario, simulate};
use crate::suite::{BenchRun, Suite};

/// The title of the table of processes.
const PROCESSES: &str = "the store under nodes with 8 active users each";
/// The title of the table of simulations.
const SIMULATED: &str = "the store under simulated fleets, a tenth of the users active";

/// Active users of each node in the measured fleets, and the bytes per second of each.
const ACTIVE: usize = 8;
const RATE: u64 = 64 << 10;
/// The part of the users that is active in the simulated fleets.
const ACTIVE_PART: u32 = 10;
/// Changes of users per second in the simulated fleets: one for this many users.
const USERS_PER_CHANGE: u32 = 20_000;

/// Records measured and simulated fleets.
pub(super) fn record_model(bench: &mut BenchRun, adit: &Path, extent: &FleetExtent) {
    let costs = match measure_costs(extent, &mut |_, _, _| {}) {
        Ok(costs) => costs,
        Err(why) => {
            bench
                .journal
                .record_outcome(Suite::Fleet, SIMULATED, "costs", 1, Err(why));
            return;
        }
    };
    for &nodes in extent.fleet_sizes {
        let figures = measure_fleet(adit, nodes, &costs);
        let row = format!("{nodes} nodes");
        bench
            .journal
            .record_outcome(Suite::Fleet, PROCESSES, &row, 1, figures);
    }
    let (nodes, users) = extent.simulated;
    for part in [100, 10, 3, 1] {
        let (nodes, users) = ((nodes / part).max(1), users / part);
        let figures = simulate_fleet(nodes, users, &costs);
        let row = format!("{nodes} nodes, {users} users");
        bench
            .journal
            .record_outcome(Suite::Fleet, SIMULATED, &row, 1, figures);
    }
}

fn metric(quantity: crate::figures::Quantity, part: &'static str, value: f64) -> (Metric, f64) {
    (Metric { quantity, part }, value)
}

/// Measures the share of a core that the store uses for a fleet of processes, and what the model says of the same.
fn measure_fleet(adit: &Path, nodes: usize, costs: &StoreCosts) -> Result<Figures> {
    let mut world = FleetWorld::new(StoreServer::start()?)?;
    let names = (0..nodes * ACTIVE).map(|n| format!("user-{n}"));
    let users = world
        .operator
        .add_users(names, |user| user.limits.quota = Some(1 << 50))?;
    world.start_nodes(adit, nodes, &NodeOptions::default())?;
    world.wait_for_tables(Duration::from_secs(60))?;
    let sink = CountingSink::start()?;
    let each = world
        .nodes
        .iter()
        .flat_map(|node| std::iter::repeat_n(node, ACTIVE));
    let upload =
        |(node, user): (&FleetNode, _)| Upload::start(node.addr(), user, sink.addr(), RATE);
    let uploads: Vec<Upload> = each.zip(&users).map(upload).collect();
    sleep(Duration::from_secs(3));
    let process = world.store.process()?.id();
    let (start, before) = (Instant::now(), cpu_time(process)?);
    sleep(Duration::from_secs(10));
    let used = (cpu_time(process)? - before).as_secs_f64();
    let share = used / start.elapsed().as_secs_f64() * 100.0;
    drop(uploads);
    let mut scenario = scenario(u32::try_from(nodes)?, u32::try_from(users.len())?);
    scenario.quota = Some(1 << 50);
    let active = u32::try_from(ACTIVE)?;
    let flow = |n: u32| Flow::new(n / active, 1 + n, RATE);
    scenario.flows = (0..u32::try_from(users.len())?).map(flow).collect();
    let outcome = simulate(&scenario)?;
    let modelled = store_share(&outcome, 0, scenario.duration, costs);
    Ok(vec![
        metric(STORE_SHARE, "measured", share),
        metric(STORE_SHARE, "model", modelled),
    ])
}

fn scenario(nodes: u32, users: u32) -> Scenario {
    Scenario {
        seed: 1,
        nodes,
        users,
        quota: None,
        lease: adit_fleet::lease,
        flows: Vec::new(),
        duration: 10 * SECOND,
        settle: 3 * SECOND,
        delay: (200, MILLISECOND),
        changes_per_second: 0,
        faults: Faults::default(),
    }
}

/// Simulates a fleet, and applies the costs to its calls.
fn simulate_fleet(nodes: u32, users: u32, costs: &StoreCosts) -> Result<Figures> {
    let mut scenario = scenario(nodes, users);
    scenario.changes_per_second = (users / USERS_PER_CHANGE).max(1);
    let flow = |n: u32| Flow::new(n % nodes, 1 + n, 100_000).in_pieces(400 * MILLISECOND);
    scenario.flows = (0..users / ACTIVE_PART).map(flow).collect();
    let outcome = simulate(&scenario)?;
    let changes = u64::from(scenario.changes_per_second) * scenario.duration / SECOND;
    let share = store_share(&outcome, changes, scenario.duration, costs);
    let users = f64::from(users);
    let bytes = users * (costs.user_bytes + costs.usage_bytes);
    let p99 = outcome.propagation_p99().unwrap_or_default();
    Ok(vec![
        whole_figure(STORE_SHARE, share),
        metric(GROWTH, "store", bytes / as_float(1 << 20)),
        metric(
            DURATION,
            "99th percentile of changes",
            as_float(p99) / as_float(MILLISECOND),
        ),
    ])
}

/// Returns the share of a core that the calls of a simulation cost the store, in percent.
fn store_share(outcome: &Outcome, changes: u64, duration: u64, costs: &StoreCosts) -> f64 {
    let call = (costs.batch - costs.batch_user).max(0.0);
    let micros = as_float(outcome.batches) * call
        + as_float(outcome.batch_users) * costs.batch_user
        + as_float(outcome.questions) * costs.question
        + as_float(outcome.heartbeats) * costs.heartbeat
        + as_float(changes) * costs.change;
    micros / as_float(duration) * 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_cost_a_share_of_a_core() {
        let costs = StoreCosts {
            batch: 11.0,
            batch_user: 1.0,
            question: 5.0,
            change: 100.0,
            ..StoreCosts::default()
        };
        let outcome = Outcome {
            batches: 1000,
            batch_users: 90_000,
            questions: 20_000,
            ..Outcome::default()
        };
        // 10 ms and 90 ms of batches, 100 ms of questions and 1 ms of changes within a second.
        let share = store_share(&outcome, 10, SECOND, &costs);
        assert!((share - 20.1).abs() < 1e-9, "{share}");
    }

    #[test]
    fn larger_fleets_cost_more() {
        let costs = StoreCosts {
            batch: 20.0,
            batch_user: 2.0,
            question: 10.0,
            change: 20.0,
            heartbeat: 10.0,
            user_bytes: 300.0,
            ..StoreCosts::default()
        };
        let share = |nodes, users| simulate_fleet(nodes, users, &costs).unwrap()[0].1;
        let (small, large) = (share(2, 200), share(20, 2000));
        assert!(small > 0.0 && large > 5.0 * small, "{small} {large}");
    }
}
