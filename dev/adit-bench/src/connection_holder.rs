//! Connections held by separate processes: one process may not have as many open files as the suite
//! `idle` holds connections.

use std::io::{self, Read, Write};
use std::net::SocketAddr;

use anyhow::{Result, ensure};

use crate::busy_processes::OwnProcess;
use crate::load::OriginRoute;
use crate::load::connections::{lane_count, open_connections};
use crate::load::origin::{LoadOrigin, OriginService};

/// The line that the process prints when all connections are open.
const HELD: &str = "held";

/// The number of connections, their SOCKS5 proxy, and their lane. Ports are bound before the
/// destination is known, so several processes need several addresses.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct HoldArgs {
    count: u32,
    proxy: SocketAddr,
    lane: u8,
}

/// Opens the connections to an origin of its own, and holds them until its input ends.
pub(crate) fn hold_until_closed(what: HoldArgs) -> Result<()> {
    let HoldArgs { count, proxy, lane } = what;
    let lanes = lane.saturating_add(lane_count(count));
    let origin = LoadOrigin::start_on(OriginService::Hold, lanes)?;
    let to = origin.addr();
    let held = open_connections(OriginRoute::Socks { proxy, to }, count, lane)?;
    println!("{HELD}");
    io::stdout().flush()?;
    io::stdin().read_to_end(&mut Vec::new())?;
    drop(held);
    Ok(())
}

/// A process that holds connections; dropping it ends it.
#[derive(Debug)]
pub(crate) struct HolderProcess(OwnProcess);

impl HolderProcess {
    /// Starts the process. Connections are open when [`Self::wait_until_open`] has returned.
    pub(crate) fn start(proxy: SocketAddr, count: u32, lane: u8) -> Result<Self> {
        let (count, proxy, lane) = (count.to_string(), proxy.to_string(), lane.to_string());
        OwnProcess::start(&["hold", &count, &proxy, &lane]).map(Self)
    }

    /// Waits until every connection is open.
    pub(crate) fn wait_until_open(&mut self) -> Result<()> {
        ensure!(
            self.0.read_line()? == HELD,
            "not every connection could be opened"
        );
        Ok(())
    }
}
