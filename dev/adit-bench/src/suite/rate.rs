//! Suite `rate`: connections that carry one byte each way.

use anyhow::{Context, Result};

use super::Suite;
use super::rounds::{BenchRun, CaseFigures, RoundSpec, RoundTurn};
use crate::figures::{CONNECTIONS, CPU_PER_CONNECTION, Figures, whole_figure};
use crate::load::OriginRoute;
use crate::load::connections::run_short_connections;
use crate::load::origin::{LoadOrigin, OriginService};
use crate::peers::InstalledPeer;
use crate::topology::{ProcessRig, Topology};

/// Number of concurrent clients that open one connection after the other.
const CLIENTS: u32 = 8;

/// Measures the relay alone, then a tunnel for every method.
pub(super) fn run_suite(bench: &mut BenchRun) {
    measure_topology(bench, "SOCKS5 relay", Topology::Relay);
    for method in bench.settings.methods() {
        let case = format!("tunnel, {}", method.name);
        measure_topology(bench, &case, Topology::Tunnel(method));
    }
}

fn measure_topology(bench: &mut BenchRun, case: &str, topology: Topology) {
    let contest = RoundSpec::new(Suite::Rate, case, topology)
        .among(&InstalledPeer::is_real_program)
        .with_baseline();
    bench.run_rounds(&contest, |turn| {
        let origin = LoadOrigin::start(OriginService::Echo)?;
        let rig = turn.start_rig(origin.addr())?;
        let figures = measure_rate(turn, &rig, rig.route(), CLIENTS)
            .map_err(|why| rig.with_last_output(&why))?;
        Ok(CaseFigures::from([(case.to_owned(), figures)]))
    });
}

/// Measures `clients` clients through `rig` by `way`.
pub(super) fn measure_rate(
    turn: &RoundTurn<'_>,
    rig: &ProcessRig,
    way: OriginRoute,
    clients: u32,
) -> Result<Figures> {
    let count = turn.settings.amounts().connections;
    run_short_connections(way, count / 20 + 1, clients).context("warm-up")?;
    let before = rig.cpu_times()?;
    let took = run_short_connections(way, count, clients)?;
    let count = f64::from(count);
    let costs = rig.costs(&before, CPU_PER_CONNECTION, count / 1e6)?;
    let mut figures = vec![whole_figure(CONNECTIONS, count / took.as_secs_f64())];
    figures.extend(costs);
    Ok(figures)
}
