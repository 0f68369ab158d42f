//! Suite `workers`: short connections and transfers on one worker thread and on two, with few
//! clients and with many.

use std::time::Duration;

use anyhow::{Context, Result};

use super::rounds::{BenchRun, CaseFigures, RoundSpec, RoundTurn};
use super::{Suite, rate};
use crate::figures::{CPU_PER_GIB, Figures, GBIT, as_float, as_gib, whole_figure};
use crate::load::LoadDirection;
use crate::load::content::CheckMode;
use crate::load::origin::{LoadOrigin, OriginService};
use crate::load::tcp::transfer;
use crate::peers::InstalledPeer;
use crate::topology::{ProcessRig, Topology};

/// Measures the relay alone, then a client with its server.
pub(super) fn run_suite(bench: &mut BenchRun) {
    measure_topology(bench, "SOCKS5 relay", Topology::Relay);
    if let Some(&method) = bench.settings.methods().first() {
        let case = format!("SOCKS5 client and server, {}", method.name);
        measure_topology(bench, &case, Topology::Client(method));
    }
}

fn measure_topology(bench: &mut BenchRun, what: &str, topology: Topology) {
    let extent = bench.settings.extent();
    for &connections in extent.connections {
        let plural = if connections == 1 { "" } else { "s" };
        let case = format!("{what}, {connections} connection{plural}");
        let contest = RoundSpec::new(Suite::Workers, &case, topology)
            .among(&InstalledPeer::has_threads)
            .on_threads(extent.workers)
            .without_syscalls();
        bench.run_rounds(&contest, |turn| {
            let (echo, streams) = (
                LoadOrigin::start(OriginService::Echo)?,
                LoadOrigin::start(OriginService::Streams)?,
            );
            let rig = turn.start_rig(echo.addr())?;
            let measured = rate::measure_rate(turn, &rig, rig.route_to(echo.addr()), connections)
                .context("the short connections failed")
                .and_then(|mut figures| {
                    figures.extend(measure_both_ways(turn, &rig, &streams, connections)?);
                    Ok(figures)
                });
            let figures = measured.map_err(|why| rig.with_last_output(&why))?;
            Ok(CaseFigures::from([(case.clone(), figures)]))
        });
    }
}

/// Transfers half of the bytes up and half of them down, over `streams` streams.
fn measure_both_ways(
    turn: &RoundTurn<'_>,
    rig: &ProcessRig,
    origin: &LoadOrigin,
    streams: u32,
) -> Result<Figures> {
    let (way, amounts) = (rig.route_to(origin.addr()), turn.settings.amounts());
    let carry = |direction, bytes, check| transfer(way, direction, bytes, streams, check);
    carry(LoadDirection::Up, amounts.warm_up, CheckMode::Whole).context("warm-up")?;
    let before = rig.cpu_times()?;
    let (mut bytes, mut elapsed) = (0, Duration::ZERO);
    for direction in LoadDirection::BOTH {
        let moved = carry(direction, amounts.bytes / 2, CheckMode::Sampled)?;
        bytes += moved.bytes;
        elapsed += moved.elapsed;
    }
    let costs = rig.costs(&before, CPU_PER_GIB, as_gib(bytes))?;
    let mut figures = vec![whole_figure(
        GBIT,
        as_float(bytes) * 8.0 / 1e9 / elapsed.as_secs_f64(),
    )];
    figures.extend(costs);
    Ok(figures)
}
