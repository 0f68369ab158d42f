//! Connections that are held by a process of their own: one process may not have as many open files
//! as the suite `idle` holds connections.

use std::io::{self, Read, Write};
use std::net::SocketAddr;

use anyhow::{Result, ensure};

use crate::busy_processes::OwnProcess;
use crate::load::OriginRoute;
use crate::load::connections::{lane_count, open_connections};
use crate::load::origin::{LoadOrigin, OriginService};

/// What the process says when all are open.
const HELD: &str = "held";

/// How many, through which SOCKS5 proxy, and the lane that they take. Ports are bound before it is
/// known where they lead, so several processes need several addresses.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct HoldArgs {
    count: u32,
    proxy: SocketAddr,
    lane: u8,
}

/// Opens them to an origin of its own, and holds them until its input ends.
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

/// Such a process; dropping it ends it.
#[derive(Debug)]
pub(crate) struct HolderProcess(OwnProcess);

impl HolderProcess {
    /// Starts it. Connections are open when [`Self::wait`] has returned.
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
