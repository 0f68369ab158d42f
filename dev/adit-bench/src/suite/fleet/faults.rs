//! The store stands still, is emptied, or is out of the reach of half of the nodes.

use std::net::SocketAddr;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use adit_fleet::FleetUser;
use adit_fleet_world::{
    CountingSink, FleetNode, FleetWorld, NodeOptions, StoreProxy, Upload, open_stream,
};
use adit_interop::store_server::StoreServer;
use anyhow::{Context, Result, ensure};

use super::extent::FleetExtent;
use super::gate::Gate;
use super::propagation::{ATTEMPTS, log_in_early};
use crate::figures::{COUNT, DURATION, GROWTH, PERCENT, as_float};

/// Time that a recovery may take before the measurement fails.
const LIMIT: Duration = Duration::from_secs(60);
/// Time within which a node notices that the store has lost changes: it asks for them every 5 s.
const ALARM_LIMIT: Duration = Duration::from_secs(15);
/// Number of flows, and bytes per second of each.
const FLOWS: usize = 10;
const FLOW_RATE: u64 = 2 << 20;

/// Ten flows while the store stands still.
pub(super) fn measure_stall(adit: &Path, extent: &FleetExtent) -> Result<Vec<Gate>> {
    let mut world = FleetWorld::new(StoreServer::start()?)?;
    let set = |user: &mut FleetUser| user.limits.quota = Some(1 << 40);
    let users = world
        .operator
        .add_users((0..FLOWS).map(|n| format!("user-{n}")), set)?;
    world.start_nodes(adit, extent.nodes.min(4), &NodeOptions::default())?;
    world.wait_for_tables(LIMIT)?;
    let sink = CountingSink::start()?;
    let nodes = world.nodes.iter().cycle();
    let upload =
        |(node, user): (&FleetNode, _)| Upload::start(node.addr(), user, sink.addr(), FLOW_RATE);
    let uploads: Vec<Upload> = nodes.zip(&users).map(upload).collect();
    sleep(Duration::from_secs(2));
    let before = rate_of(&sink, extent.stall.min(Duration::from_secs(20)));
    world.store.stall()?;
    let during = rate_of(&sink, extent.stall);
    world.store.resume()?;
    let start = Instant::now();
    wait_for_new_user(&world, &sink)?;
    let recovery = start.elapsed();
    let broken: u64 = uploads.into_iter().map(|upload| upload.stop().broken).sum();
    let counted = world.settled_count()?;
    let seconds = extent.stall.as_secs();
    let name = |what: &str| format!("the store stands still for {seconds} s: {what}");
    Ok(vec![
        Gate::new(
            name("loss of throughput of ten flows"),
            PERCENT,
            ((before - during) / before * 100.0).max(0.0),
            2.0,
        ),
        Gate::new(name("flows that end"), COUNT, as_float(broken), 0.0),
        Gate::new(
            name("time until a new user is let in everywhere after it"),
            DURATION,
            recovery.as_secs_f64() * 1000.0,
            10_000.0,
        ),
        Gate::new(
            name("bytes not counted after it"),
            COUNT,
            as_float(sink.received().saturating_sub(counted)),
            0.0,
        ),
    ])
}

/// Returns the bytes per second that a sink receives.
fn rate_of(sink: &CountingSink, time: Duration) -> f64 {
    let (start, before) = (Instant::now(), sink.received());
    sleep(time);
    as_float(sink.received() - before) / start.elapsed().as_secs_f64()
}

/// Adds a user, and waits until all nodes let the user in.
fn wait_for_new_user(world: &FleetWorld, sink: &CountingSink) -> Result<()> {
    let start = Instant::now();
    let user = loop {
        let name = format!("new-{}", start.elapsed().as_micros());
        match world.operator.add_user(&name) {
            Ok(user) => break user,
            Err(why) => ensure!(start.elapsed() < LIMIT, "{why:#}"),
        }
    };
    for node in &world.nodes {
        let left = LIMIT.saturating_sub(start.elapsed());
        log_in_early(node.addr(), &user, sink.addr(), ATTEMPTS, left)?;
    }
    Ok(())
}

/// Returns the number of users whom a node does not let in.
fn refused_users(world: &FleetWorld, users: &[FleetUser], sink: &CountingSink) -> usize {
    let refused =
        |(node, user): (SocketAddr, &FleetUser)| open_stream(node, user, sink.addr()).is_err();
    let nodes = world.nodes.iter().map(FleetNode::addr);
    let pairs = nodes.flat_map(|node| users.iter().map(move |user| (node, user)));
    pairs.map(refused).filter(|refused| *refused).count()
}

/// Waits until every node has logged that the store has lost changes, or for [`ALARM_LIMIT`]. Returns the number of
/// nodes that have not, and the time.
fn wait_for_alarms(world: &mut FleetWorld) -> (usize, Duration) {
    let start = Instant::now();
    loop {
        let logs = world.nodes.iter_mut().map(FleetNode::log);
        let silent = logs.filter(|log| !log.contains("lost changes")).count();
        if silent == 0 || start.elapsed() > ALARM_LIMIT {
            return (silent, start.elapsed());
        }
        sleep(Duration::from_millis(50));
    }
}

/// The store loses everything, and is seeded again.
pub(super) fn measure_flush(adit: &Path, extent: &FleetExtent) -> Result<Vec<Gate>> {
    let mut world = FleetWorld::new(StoreServer::start()?)?;
    let count = extent.users.min(50);
    let users = world
        .operator
        .add_users((0..count).map(|n| format!("user-{n}")), |_| {})?;
    world.start_nodes(adit, extent.nodes.min(4), &NodeOptions::default())?;
    world.wait_for_tables(LIMIT)?;
    let sink = CountingSink::start()?;
    let records = world.operator.snapshot()?;
    world.store.run(&["FLUSHALL"])?;
    let (silent, noticed) = wait_for_alarms(&mut world);
    let lost = refused_users(&world, &users, &sink);
    let start = Instant::now();
    world.operator.restore(&records)?;
    wait_for_new_user(&world, &sink)?;
    let recovery = start.elapsed();
    let again = refused_users(&world, &users, &sink);
    let stored = world.operator.user_names()?.len();
    let name = |what: &str| format!("FLUSHALL with {count} users: {what}");
    Ok(vec![
        Gate::new(name("users refused by a node"), COUNT, lost as f64, 0.0),
        Gate::new(name("nodes without an alarm"), COUNT, silent as f64, 0.0),
        Gate::free(
            name("time until every node has raised it"),
            DURATION,
            noticed.as_secs_f64() * 1000.0,
        ),
        Gate::new(
            name("users missing after the store was restored"),
            COUNT,
            (again + (count + 1).saturating_sub(stored)) as f64,
            0.0,
        ),
        Gate::free(
            name("time until a new user is let in everywhere after that"),
            DURATION,
            recovery.as_secs_f64() * 1000.0,
        ),
    ])
}

/// Half of the nodes cannot reach the store, while a user moves as much as possible.
pub(super) fn measure_partition(adit: &Path, extent: &FleetExtent) -> Result<Vec<Gate>> {
    let mut world = FleetWorld::new(StoreServer::start()?)?;
    let proxy = StoreProxy::start(&world.store.socket(), 0, 1)?;
    let quota = extent.quota;
    let set = |user: &mut FleetUser| user.limits.quota = Some(quota);
    let users = world.operator.add_users(["ann".to_owned()], set)?;
    let user = users.first().context("a user")?;
    let (apart, grace) = (extent.nodes / 2, 1_u64 << 20);
    let options = NodeOptions {
        fleet: format!("grace_bytes = \"{}MiB\"\n", grace >> 20),
        ..NodeOptions::default()
    };
    for _ in 0..apart {
        world.start_node_behind(adit, &proxy, &options)?;
    }
    world.start_nodes(adit, extent.nodes - apart, &options)?;
    world.wait_for_tables(LIMIT)?;
    let sink = CountingSink::start()?;
    // Everywhere, each with a tenth of the quota within the partition.
    let rate = quota / u64::try_from(extent.nodes)? * 10 / extent.partition.as_secs().max(1);
    let upload = |node: &FleetNode| Upload::start(node.addr(), user, sink.addr(), rate);
    let uploads: Vec<Upload> = world.nodes.iter().map(upload).collect();
    // Each has a lease of a fleet of this size.
    sleep(Duration::from_secs(3));
    proxy.set_cut(true);
    let begin = Instant::now();
    let mut added = 0;
    while begin.elapsed() < extent.partition {
        world.operator.add_user(&format!("meanwhile-{added}"))?;
        added += 1;
        sleep(extent.partition / 20);
    }
    proxy.set_cut(false);
    let healed = Instant::now();
    wait_for_new_user(&world, &sink)?;
    let converged = healed.elapsed();
    sleep(Duration::from_secs(3));
    drop(uploads);
    let (nodes, seconds) = (u64::try_from(extent.nodes)?, extent.partition.as_secs());
    let over = as_float(sink.received().saturating_sub(quota)) / as_float(1 << 20);
    let leases = (quota / 32).max(nodes << 20);
    let bound = as_float(leases + u64::try_from(apart)? * grace) / as_float(1 << 20);
    let name = |what: &str| format!("{apart} of {nodes} nodes apart for {seconds} s: {what}");
    Ok(vec![
        Gate::new(
            name("beyond the quota, with a grace of 1 MiB"),
            GROWTH,
            over,
            bound,
        ),
        Gate::new(
            name("time until all know a new user"),
            DURATION,
            converged.as_secs_f64() * 1000.0,
            2000.0,
        ),
    ])
}
