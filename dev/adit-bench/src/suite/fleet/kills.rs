//! Usage is counted exactly once, while nodes and the store are killed and replies are lost.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use adit_fleet_world::{CountingSink, FleetWorld, NodeOptions, StoreProxy, Upload, run_chaos};
use adit_interop::store_server::StoreServer;
use adit_link::SplitMix64;
use anyhow::{Context, Result};

use super::extent::FleetExtent;
use super::gate::Gate;
use crate::figures::{BYTES, COUNT, DURATION, as_float};

/// Lost replies, in thousandths.
const LOST: u16 = 20;
/// Bytes per second of each user.
const RATE: u64 = 1 << 20;
/// Time for which usage may be in the memory of a node alone, in milliseconds: the interval between two batches, and
/// the time in which one is written.
const UNREPORTED_MILLIS: u64 = 1300;
/// Bytes of a stream that a node may have counted, and a sink not read, when the node is killed.
const BUFFERED: u64 = 256 << 10;

/// Kills a random node at each interval, and the store some times.
pub(super) fn measure_kills(adit: &Path, extent: &FleetExtent) -> Result<Vec<Gate>> {
    let mut world = FleetWorld::new(StoreServer::start_persistent()?)?;
    let proxy = StoreProxy::start(&world.store.socket(), LOST, 1)?;
    let names = (0..extent.nodes).map(|n| format!("user-{n}"));
    let users = world.operator.add_users(names, |_| {})?;
    for _ in 0..extent.nodes {
        world.start_node_behind(adit, &proxy, &NodeOptions::default())?;
    }
    let sink = CountingSink::start()?;
    let upload = |(node, user): (&adit_fleet_world::FleetNode, _)| {
        Upload::start(node.addr(), user, sink.addr(), RATE)
    };
    let uploads: Vec<Upload> = world.nodes.iter().zip(&users).map(upload).collect();
    let mut rng = SplitMix64::new(7);
    let (begin, mut kills, mut restarts) = (Instant::now(), 0, 0);
    while begin.elapsed() < extent.kill_time {
        sleep(extent.kill_every);
        let at = usize::try_from(rng.pick(0..u64::try_from(extent.nodes)?))?;
        let node = world.nodes.get_mut(at).context("a node")?;
        node.kill()?;
        node.start_process()?;
        kills += 1;
        let due = extent.kill_time * (restarts + 1) / (extent.store_restarts + 1);
        if restarts < extent.store_restarts && begin.elapsed() >= due {
            world.store.restart()?;
            restarts += 1;
        }
    }
    let sent: u64 = uploads.into_iter().map(|upload| upload.stop().sent).sum();
    sleep(Duration::from_secs(1));
    let counted = world.settled_count()?;
    let received = sink.received();
    let allowed = kills * (RATE * UNREPORTED_MILLIS / 1000 + BUFFERED);
    let name = |what: &str| {
        format!("{kills} kills of nodes, {restarts} of the store, 2 % lost replies: {what}")
    };
    Ok(vec![
        Gate::new(
            name("bytes counted beyond those sent"),
            BYTES,
            as_float(counted.saturating_sub(sent)),
            0.0,
        ),
        Gate::new(
            name("bytes of killed nodes not counted"),
            BYTES,
            as_float(received.saturating_sub(counted)),
            as_float(allowed),
        ),
        Gate::free(
            "replies that were lost meanwhile",
            COUNT,
            as_float(proxy.lost_count()),
        ),
        Gate::free("bytes received meanwhile", BYTES, as_float(received)),
    ])
}

/// Lets everything fail at random.
pub(super) fn measure_chaos(adit: &Path, extent: &FleetExtent) -> Result<Vec<Gate>> {
    let report = run_chaos(adit, extent.chaos, 1)?;
    eprintln!("chaos: {report:?}");
    let events: u32 = report.events.values().sum();
    let seconds = extent.chaos.as_secs();
    let name = |what: &str| format!("{events} faults and changes in {seconds} s: {what}");
    let gate = |what: &str, count: u32| Gate::new(name(what), COUNT, count.into(), 0.0);
    Ok(vec![
        gate("users lost", report.refused + report.differing),
        gate("let in wrongly", report.strangers + report.let_in),
        gate("users with bytes counted twice", report.counted_twice),
        gate("panics", report.panics),
        Gate::free(
            name("time until all nodes know everything after it"),
            DURATION,
            report.calm_after.as_secs_f64() * 1000.0,
        ),
    ])
}
