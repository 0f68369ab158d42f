//! Suite `workers`: short connections and transfers on one worker thread and on two, with few
//! clients and with many.

use std::time::Duration;

use anyhow::{Context, Result};

use super::turn::{Bench, Cases, Contest, Turn};
use super::{Suite, rate};
use crate::figure::{CPU_PER_GIB, Figures, GBIT, as_gib, float, one};
use crate::load::Direction;
use crate::load::content::Check;
use crate::load::origin::{Origin, Service};
use crate::load::tcp::transfer;
use crate::peers::Peer;
use crate::topology::{Rig, Topology};

/// Measures the relay alone, then a client with its server.
pub(super) fn run(bench: &mut Bench) {
    one_topology(bench, "SOCKS5 relay", Topology::Relay);
    if let Some(&method) = bench.settings.methods().first() {
        let case = format!("SOCKS5 client and server, {}", method.name);
        one_topology(bench, &case, Topology::Client(method));
    }
}

fn one_topology(bench: &mut Bench, what: &str, topology: Topology) {
    let extent = bench.settings.extent();
    for &connections in extent.connections {
        let plural = if connections == 1 { "" } else { "s" };
        let case = format!("{what}, {connections} connection{plural}");
        let contest = Contest::new(Suite::Workers, &case, topology)
            .among(&Peer::has_threads)
            .on_threads(extent.workers)
            .uncounted();
        bench.alternate(&contest, |turn| {
            let (echo, streams) = (
                Origin::start(Service::Echo)?,
                Origin::start(Service::Streams)?,
            );
            let rig = turn.start(echo.addr())?;
            let measured = rate::measure(turn, &rig, rig.way_to(echo.addr()), connections)
                .context("the short connections failed")
                .and_then(|mut figures| {
                    figures.extend(both_ways(turn, &rig, &streams, connections)?);
                    Ok(figures)
                });
            let figures = measured.map_err(|why| rig.blame(&why))?;
            Ok(Cases::from([(case.clone(), figures)]))
        });
    }
}

/// Transfers half of the bytes up and half of them down, over `streams` streams.
fn both_ways(turn: &Turn<'_>, rig: &Rig, origin: &Origin, streams: u32) -> Result<Figures> {
    let (way, amounts) = (rig.way_to(origin.addr()), turn.settings.amounts());
    let carry = |direction, bytes, check| transfer(way, direction, bytes, streams, check);
    carry(Direction::Up, amounts.warm_up, Check::Whole).context("warm-up")?;
    let before = rig.cpu()?;
    let (mut bytes, mut elapsed) = (0, Duration::ZERO);
    for direction in Direction::BOTH {
        let moved = carry(direction, amounts.bytes / 2, Check::Sampled)?;
        bytes += moved.bytes;
        elapsed += moved.elapsed;
    }
    let costs = rig.costs(&before, CPU_PER_GIB, as_gib(bytes))?;
    let mut figures = vec![one(GBIT, float(bytes) * 8.0 / 1e9 / elapsed.as_secs_f64())];
    figures.extend(costs);
    Ok(figures)
}
