//! Suite `rate`: connections that carry one byte each way.

use anyhow::{Context, Result};

use super::Suite;
use super::turn::{Bench, Cases, Contest, Turn};
use crate::figure::{CONNECTIONS, CPU_PER_CONNECTION, Figures, one};
use crate::load::Way;
use crate::load::connections::churn;
use crate::load::origin::{Origin, Service};
use crate::peers::Peer;
use crate::topology::{Rig, Topology};

/// Number of concurrent clients that open one connection after the other.
const CLIENTS: u32 = 8;

/// Measures the relay alone, then a tunnel for every method.
pub(super) fn run(bench: &mut Bench) {
    one_topology(bench, "SOCKS5 relay", Topology::Relay);
    for method in bench.settings.methods() {
        let case = format!("tunnel, {}", method.name);
        one_topology(bench, &case, Topology::Tunnel(method));
    }
}

fn one_topology(bench: &mut Bench, case: &str, topology: Topology) {
    let contest = Contest::new(Suite::Rate, case, topology)
        .among(&Peer::is_no_floor)
        .with_baseline();
    bench.alternate(&contest, |turn| {
        let origin = Origin::start(Service::Echo)?;
        let rig = turn.start(origin.addr())?;
        let figures = measure(turn, &rig, rig.way(), CLIENTS).map_err(|why| rig.blame(&why))?;
        Ok(Cases::from([(case.to_owned(), figures)]))
    });
}

/// Measures `clients` clients through `rig` by `way`.
pub(super) fn measure(turn: &Turn<'_>, rig: &Rig, way: Way, clients: u32) -> Result<Figures> {
    let count = turn.settings.amounts().connections;
    churn(way, count / 20 + 1, clients).context("warm-up")?;
    let before = rig.cpu()?;
    let took = churn(way, count, clients)?;
    let count = f64::from(count);
    let costs = rig.costs(&before, CPU_PER_CONNECTION, count / 1e6)?;
    let mut figures = vec![one(CONNECTIONS, count / took.as_secs_f64())];
    figures.extend(costs);
    Ok(figures)
}
