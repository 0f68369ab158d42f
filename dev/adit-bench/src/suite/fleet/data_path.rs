//! The cost of quotas and the fleet on the data path: transfers through a node, and in turn through a server without
//! either.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::path::Path;

use adit_fleet::FleetUser;
use adit_fleet_world::{CountingSink, FleetWorld, NodeOptions};
use adit_interop::AditProcess;
use adit_interop::socks_client::{self, Destination};
use adit_interop::store_server::StoreServer;
use anyhow::{Context, Result};

use super::extent::FleetExtent;
use super::gate::Gate;
use crate::figures::{CPU_PER_GIB, PERCENT, RoundSpread, as_gib};
use crate::process_cost::cpu_time;

/// Downloads through both in turn; the figure is the median of the quotients.
pub(super) fn measure_data_path(adit: &Path, extent: &FleetExtent) -> Result<Vec<Gate>> {
    let mut world = FleetWorld::new(StoreServer::start()?)?;
    let set = |user: &mut FleetUser| user.limits.quota = Some(1 << 50);
    let users = world.operator.add_users(["ann".to_owned()], set)?;
    let user = users.first().context("a user")?;
    world.start_nodes(adit, 1, &NodeOptions::default())?;
    let limit = std::time::Duration::from_secs(20);
    world.wait_for_tables(limit)?;
    let url = "mixed://ann:secret@127.0.0.1:0?allow_private=127.0.0.0/8";
    let mut alone = AditProcess::start_with(adit, &["run", url], 1)?;
    let sink = CountingSink::start()?;
    let node = world.nodes.first_mut().context("a node")?;
    let (node_addr, node_id) = (node.addr(), node.process()?.id());
    let (alone_addr, alone_id) = (alone.addr(), alone.process().id());
    let password = user.password();
    let fleet = |bytes| download(node_addr, node_id, &password, sink.addr(), bytes);
    let plain = |bytes| download(alone_addr, alone_id, "secret", sink.addr(), bytes);
    let warm_up = extent.transfer / 16;
    fleet(warm_up)?;
    plain(warm_up)?;
    let (mut with, mut without, mut quotients) = (Vec::new(), Vec::new(), Vec::new());
    for pair in 0..extent.pairs {
        // The first of a pair alternates.
        let (on, off) = match pair % 2 {
            0 => {
                let on = fleet(extent.transfer)?;
                (on, plain(extent.transfer)?)
            }
            _ => {
                let off = plain(extent.transfer)?;
                (fleet(extent.transfer)?, off)
            }
        };
        with.push(on);
        without.push(off);
        quotients.push((on / off - 1.0) * 100.0);
    }
    let median =
        |values: Vec<f64>| RoundSpread::from_values(values).map_or(f64::NAN, |own| own.median);
    Ok(vec![
        Gate::new(
            "data path with a quota of the fleet: more CPU than without",
            PERCENT,
            median(quotients),
            1.0,
        ),
        Gate::free(
            "data path with a quota of the fleet",
            CPU_PER_GIB,
            median(with),
        ),
        Gate::free(
            "data path without quota and fleet",
            CPU_PER_GIB,
            median(without),
        ),
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
