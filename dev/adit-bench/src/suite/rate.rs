//! Suite `rate`: connections that carry one byte each way.

use anyhow::{Context, Result};

use super::Suite;
use super::turn::{Baseline, Bench, Cases, Turn};
use crate::figure::{CONNECTIONS, CPU_PER_CONNECTION, each, one};
use crate::load::connections::churn;
use crate::load::origin::{Origin, Service};
use crate::topology::{Rig, Topology};

/// The relay alone, then a tunnel for every method.
pub(super) fn run(bench: &mut Bench) {
    one_topology(bench, "SOCKS5 relay", Topology::Relay);
    for method in bench.settings.methods.clone() {
        let case = format!("tunnel, {}", method.name);
        one_topology(bench, &case, Topology::Tunnel(method));
    }
}

fn one_topology(bench: &mut Bench, case: &str, topology: Topology) {
    bench.alternate(Suite::Rate, case, topology, Baseline::With, |turn| {
        let origin = Origin::start(Service::Echo)?;
        let rig = turn.start(origin.addr())?;
        measure(turn, &rig, case).map_err(|why| rig.blame(&why))
    });
}

fn measure(turn: &Turn<'_>, rig: &Rig, case: &str) -> Result<Cases> {
    let count = turn.settings.amounts.connections;
    churn(rig.way(), count / 20 + 1).context("warm-up")?;
    let before = rig.cpu()?;
    let took = churn(rig.way(), count)?;
    let cpu = rig.cpu_since(&before)?;
    let count = f64::from(count);
    let mut figures = vec![one(CONNECTIONS, count / took.as_secs_f64())];
    let cost = cpu.iter().map(|seconds| seconds * 1e6 / count);
    figures.extend(each(CPU_PER_CONNECTION, &rig.parts(cost)));
    Ok(vec![(case.to_owned(), figures)])
}
