//! Connections that are held by a process of their own: one process may not have as many open files
//! as the suite `idle` holds connections.

use std::io::{self, Read, Write};
use std::net::SocketAddr;

use anyhow::{Result, ensure};

use crate::load::Way;
use crate::load::connections::{hold, lanes};
use crate::load::origin::{Origin, Service};
use crate::spin::Own;

/// What the process says when all are open.
const HELD: &str = "held";

/// How many, through which SOCKS5 proxy, and the lane that they take. Ports are bound before it is
/// known where they lead, so several processes need several addresses.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Hold {
    count: u32,
    proxy: SocketAddr,
    lane: u8,
}

/// Opens them to an origin of its own, and holds them until its input ends.
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

/// Such a process; dropping it ends it.
#[derive(Debug)]
pub(crate) struct Holder(Own);

impl Holder {
    /// Starts it. Connections are open when [`Self::wait`] has returned.
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
