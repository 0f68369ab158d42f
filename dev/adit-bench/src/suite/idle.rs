//! Suite `idle`: what a process takes when it does nothing, and what each idle connection adds.

use std::thread::sleep;
use std::time::Duration;

use anyhow::Result;

use super::Suite;
use super::turn::{Baseline, Bench, Cases, Turn};
use crate::figure::{FRESH, PER_IDLE, apart, each, float};
use crate::load::connections::hold;
use crate::load::origin::{Origin, Service};
use crate::topology::{Rig, Topology};

/// A started process, and one whose last connection has just gone quiet, has things to put away.
const SETTLE: Duration = Duration::from_millis(1500);
const SETTLE_SMOKE: Duration = Duration::from_millis(100);

/// The relay alone, then a client with its server.
pub(super) fn run(bench: &mut Bench) {
    one_topology(bench, "SOCKS5 relay".to_owned(), Topology::Relay);
    for method in bench.settings.methods.clone() {
        let case = format!("SOCKS5 client, {}", method.name);
        one_topology(bench, case, Topology::Client(method));
    }
}

fn one_topology(bench: &mut Bench, case: String, topology: Topology) {
    let held = bench.settings.amounts.held;
    let case = format!("{case}, {held} idle connections");
    bench.alternate(Suite::Idle, &case, topology, Baseline::Without, |turn| {
        let origin = Origin::start(Service::Hold)?;
        let rig = turn.start(origin.addr())?;
        measure(turn, &rig, &case).map_err(|why| rig.blame(&why))
    });
}

fn measure(turn: &Turn<'_>, rig: &Rig, case: &str) -> Result<Cases> {
    let settle = if turn.settings.smoke {
        SETTLE_SMOKE
    } else {
        SETTLE
    };
    let count = turn.settings.amounts.held;
    sleep(settle);
    let fresh = rig.memory()?;
    let held = hold(rig.way(), count)?;
    sleep(settle);
    let full = rig.memory()?;
    drop(held);
    let resident = fresh.iter().map(|memory| float(memory.resident) / 1024.0);
    let mut figures = apart(FRESH, &rig.parts(resident));
    let grown = fresh
        .iter()
        .zip(&full)
        .map(|(before, after)| (float(after.resident) - float(before.resident)) / f64::from(count));
    figures.extend(each(PER_IDLE, &rig.parts(grown)));
    Ok(vec![(case.to_owned(), figures)])
}
