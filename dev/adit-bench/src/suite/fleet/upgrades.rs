//! The nodes replace their programs one after the other, under new connections.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use adit_fleet::{FleetUser, NodeOp};
use adit_fleet_world::{CountingSink, FleetNode, FleetWorld, NodeOptions, open_stream};
use adit_interop::store_server::StoreServer;
use anyhow::{Context, Result};

use super::extent::FleetExtent;
use super::gate::Gate;
use crate::figures::{COUNT, as_float};

/// Time that an upgrade may take before the measurement fails.
const LIMIT: Duration = Duration::from_secs(60);
/// New connections per second, over all nodes.
const RATE: u32 = 200;

/// Upgrades four nodes while 200 connections per second are opened.
pub(super) fn measure_upgrades(adit: &Path, extent: &FleetExtent) -> Result<Vec<Gate>> {
    let mut world = FleetWorld::new(StoreServer::start()?)?;
    let user = world.operator.add_user("ann")?;
    world.start_nodes(adit, extent.nodes.min(4), &NodeOptions::default())?;
    world.wait_for_tables(LIMIT)?;
    let sink = CountingSink::start()?;
    let addrs: Vec<SocketAddr> = world.nodes.iter().map(FleetNode::addr).collect();
    let (is_done, opened, failed) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let rate = RATE / u32::try_from(addrs.len())?;
    thread::scope(|scope| {
        for addr in &addrs {
            scope.spawn(|| connect_until(*addr, &user, &sink, rate, &is_done, [&opened, &failed]));
        }
        let outcome = upgrade_all(&mut world);
        is_done.store(true, Ordering::SeqCst);
        outcome
    })?;
    let (opened, failed) = (opened.into_inner(), failed.into_inner());
    let nodes = addrs.len();
    Ok(vec![
        Gate::new(
            format!("rolling upgrade of {nodes} nodes under {RATE} connections per second: failed"),
            COUNT,
            as_float(failed),
            0.0,
        ),
        Gate::free(
            "connections that were opened meanwhile",
            COUNT,
            as_float(opened),
        ),
    ])
}

fn upgrade_all(world: &mut FleetWorld) -> Result<()> {
    sleep(Duration::from_secs(1));
    for at in 0..world.nodes.len() {
        let node = world.nodes.get_mut(at).context("a node")?;
        let op = NodeOp::Upgrade { program: None };
        world.operator.send_node_op(node.id, &op)?;
        node.wait_for_successor(LIMIT)?;
        sleep(Duration::from_secs(1));
    }
    Ok(())
}

fn connect_until(
    node: SocketAddr,
    user: &FleetUser,
    sink: &CountingSink,
    rate: u32,
    is_done: &AtomicBool,
    [opened, failed]: [&AtomicU64; 2],
) {
    let (begin, mut number) = (Instant::now(), 0);
    while !is_done.load(Ordering::SeqCst) {
        let due = Duration::from_secs(1) / rate * number;
        sleep(due.saturating_sub(begin.elapsed()));
        number += 1;
        let count = match open_stream(node, user, sink.addr()) {
            Ok(_) => opened,
            Err(_) => failed,
        };
        count.fetch_add(1, Ordering::SeqCst);
    }
}
