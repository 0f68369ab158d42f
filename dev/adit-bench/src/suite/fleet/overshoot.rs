//! The bytes that a user moves beyond the quota at all nodes together.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use adit_fleet_world::{CountingSink, FleetWorld, NodeOptions, Upload};
use adit_interop::store_server::StoreServer;
use anyhow::{Context, Result, ensure};

use super::extent::FleetExtent;
use super::gate::Gate;
use crate::figures::{COUNT, DURATION, GROWTH, as_float};

/// Time that the quota may take before the measurement fails.
const LIMIT: Duration = Duration::from_secs(120);
/// Time without a byte after which the user is cut everywhere.
const QUIET: Duration = Duration::from_secs(3);

/// One user sends as fast as possible through all nodes.
pub(super) fn measure_overshoot(adit: &Path, extent: &FleetExtent) -> Result<Vec<Gate>> {
    let mut world = FleetWorld::new(StoreServer::start()?)?;
    let quota = extent.quota;
    let set = |user: &mut adit_fleet::FleetUser| user.limits.quota = Some(quota);
    let users = world.operator.add_users(["ann".to_owned()], set)?;
    let user = users.first().context("a user")?;
    world.start_nodes(adit, extent.nodes, &NodeOptions::default())?;
    world.wait_for_tables(LIMIT)?;
    let sink = CountingSink::start()?;
    let upload =
        |node: &adit_fleet_world::FleetNode| Upload::start(node.addr(), user, sink.addr(), 0);
    let uploads: Vec<Upload> = world.nodes.iter().map(upload).collect();
    let begin = Instant::now();
    let (mut last, mut last_change, mut reached) = (0, begin, None);
    while last_change.elapsed() < QUIET || last < quota / 2 {
        ensure!(begin.elapsed() < LIMIT, "{last} of {quota} bytes");
        let received = sink.received();
        if received != last {
            (last, last_change) = (received, Instant::now());
        }
        if received >= quota && reached.is_none() {
            reached = Some(Instant::now());
        }
        sleep(Duration::from_millis(2));
    }
    let cut = reached.map_or(Duration::ZERO, |at| {
        last_change.saturating_duration_since(at)
    });
    let open: u64 = uploads
        .iter()
        .map(|upload| {
            let counts = upload.counts();
            u64::from(counts.streams > counts.broken)
        })
        .sum();
    drop(uploads);
    let mib = |bytes: u64| as_float(bytes) / as_float(1 << 20);
    let nodes = u64::try_from(extent.nodes)?;
    let bound = (quota / 32).max(nodes << 20);
    let name = |what: &str| format!("a quota of {} MiB at {nodes} nodes: {what}", quota >> 20);
    Ok(vec![
        Gate::new(
            name("beyond it"),
            GROWTH,
            mib(last.saturating_sub(quota)),
            mib(bound),
        ),
        Gate::free(name("left of it"), GROWTH, mib(quota.saturating_sub(last))),
        Gate::new(
            name("from its last byte to the last of all"),
            DURATION,
            cut.as_secs_f64() * 1000.0,
            1200.0,
        ),
        Gate::new(name("sessions that stay open"), COUNT, as_float(open), 0.0),
    ])
}
