//! Connections held by separate processes: one process may not have as many open files as the suite
//! `idle` holds connections.

use std::io::{self, Read, Write};
use std::net::SocketAddr;

use anyhow::{Result, ensure};

use crate::load::Way;
use crate::load::connections::{hold, lanes};
use crate::load::origin::{Origin, Service};
use crate::spin::Own;

/// The line that the process prints when all connections are open.
const HELD: &str = "held";

/// The number of connections, their SOCKS5 proxy, and their lane. Ports are bound before the
/// destination is known, so several processes need several addresses.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Hold {
    count: u32,
    proxy: SocketAddr,
    lane: u8,
}

/// Opens the connections to an origin of its own, and holds them until its input ends.
pub(crate) fn run(what: Hold) -> Result<()> {
    let Hold { count, proxy, lane } = what;
    let lanes = lane.saturating_add(lanes(count));
    let origin = Origin::start_on(Service::Hold, lanes)?;
    let to = origin.addr();
    let held = hold(Way::Socks { proxy, to }, count, lane)?;
    println!("{HELD}");
    io::stdout().flush()?;
    io::stdin().read_to_end(&mut Vec::new())?;
    drop(held);
    Ok(())
}

/// A process that holds connections; dropping it ends it.
#[derive(Debug)]
pub(crate) struct Holder(Own);

impl Holder {
    /// Starts the process. Connections are open when [`Self::wait`] has returned.
    pub(crate) fn start(proxy: SocketAddr, count: u32, lane: u8) -> Result<Self> {
        let (count, proxy, lane) = (count.to_string(), proxy.to_string(), lane.to_string());
        Own::start(&["hold", &count, &proxy, &lane]).map(Self)
    }

    /// Waits until every connection is open.
    pub(crate) fn wait(&mut self) -> Result<()> {
        ensure!(
            self.0.line()? == HELD,
            "not every connection could be opened"
        );
        Ok(())
    }
}
