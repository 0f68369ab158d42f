//! The cost of quotas and the fleet on the data path: transfers through a node, and in turn through a server without
//! either.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::path::Path;

use adit_fleet::FleetUser;
use adit_fleet_world::{CountingSink, FleetWorld, NodeOptions};
use adit_interop::socks_client::{self, Destination};
use adit_interop::store_server::StoreServer;
use adit_interop::{AditProcess, TEST_TIMEOUT};
use anyhow::{Context, Result};

use super::extent::FleetExtent;
use super::gate::Gate;
use crate::figures::{CPU_PER_GIB, PERCENT, as_gib};
use crate::process_cost::cpu_time;
use crate::suite::processors::AssignedProcessors;
use crate::suite::turn_costs::TurnCosts;

/// Downloads through both in turn; the figure is the median of the quotients.
pub(super) fn measure_data_path(adit: &Path, extent: &FleetExtent) -> Result<Vec<Gate>> {
    let processors = AssignedProcessors::split()?;
    let mut world = FleetWorld::new(StoreServer::start()?)?;
    let set = |user: &mut FleetUser| user.limits.quota = Some(1 << 50);
    let users = world.operator.add_users(["ann".to_owned()], set)?;
    let password = users.first().context("a user")?.password();
    processors.start_measured(|| world.start_nodes(adit, 1, &NodeOptions::default()))?;
    let sink = CountingSink::start()?;
    let mut costs = TurnCosts::default();
    // Two processes of one program differ by the places of their memory: more than one pair of them is measured.
    for start in 0..extent.starts {
        if start > 0 {
            let node = world.nodes.first_mut().context("a node")?;
            node.stop()?;
            processors.start_measured(|| node.start_process())?;
        }
        world.wait_for_tables(TEST_TIMEOUT)?;
        let url = "mixed://ann:secret@127.0.0.1:0?allow_private=127.0.0.0/8";
        let start = || AditProcess::start_with(adit, &["run", url], 1);
        let mut alone = processors.start_measured(start)?;
        let node = world.nodes.first_mut().context("a node")?;
        let fleet = (node.addr(), node.process()?.id(), password.as_str());
        let alone = (alone.addr(), alone.process().id(), "secret");
        let download = |has_fleet, bytes| {
            let (proxy, process, password) = if has_fleet { fleet } else { alone };
            download(proxy, process, password, sink.addr(), bytes)
        };
        for has_fleet in [true, false] {
            download(has_fleet, extent.transfer / 16)?;
        }
        costs.measure(extent.pairs, |has_fleet| {
            download(has_fleet, extent.transfer)
        })?;
    }
    let ((with, without), added) = (costs.medians()?, costs.added()?);
    let name = "data path with a quota of the fleet";
    Ok(vec![
        Gate::new(
            format!("{name}: more CPU than without"),
            PERCENT,
            added.median,
            1.0,
        ),
        Gate::free(
            format!("{name}: margin of the row above"),
            PERCENT,
            added.margin,
        ),
        Gate::free(name, CPU_PER_GIB, with),
        Gate::free("data path without quota and fleet", CPU_PER_GIB, without),
    ])
}

/// Downloads bytes; returns the CPU seconds of the process per GiB.
fn download(
    proxy: SocketAddr,
    process: u32,
    password: &str,
    from: SocketAddr,
    bytes: u64,
) -> Result<f64> {
    let login = Some(("ann", password));
    let mut stream = socks_client::connect_through(proxy, login, &Destination::Addr(from))?;
    let before = cpu_time(process)?;
    stream.write_all(b"d")?;
    let (mut piece, mut read) = (vec![0; 256 << 10], 0);
    while read < bytes {
        read += u64::try_from(stream.read(&mut piece)?)?;
    }
    let used = cpu_time(process)? - before;
    Ok(used.as_secs_f64() / as_gib(read))
}
