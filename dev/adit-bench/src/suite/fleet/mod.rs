//! Suite `fleet`: the gates of a fleet of processes around a real store server, and what its users, nodes and calls cost.

mod data_path;
mod extent;
mod faults;
mod gate;
mod growth;
mod kills;
mod model;
mod overshoot;
mod propagation;
mod replays;
mod store_calls;
mod upgrades;

use std::path::Path;

use anyhow::{Context, Result};

use super::Suite;
use super::memory_steps::adit_program;
use super::rounds::BenchRun;
use extent::FleetExtent;
use gate::Gate;

/// The title of the table of gates.
pub(crate) const GATES: &str = "gates";

/// A group of gates: its name, and the measurement.
type GateGroup = (&'static str, fn(&Path, &FleetExtent) -> Result<Vec<Gate>>);

const GROUPS: [GateGroup; 13] = [
    ("users loaded", growth::measure_load),
    ("a large table", growth::measure_large_table),
    ("changes of users", propagation::measure_changes),
    (
        "changes of users with a far store",
        propagation::measure_far_changes,
    ),
    ("nodes and the store are killed", kills::measure_kills),
    ("chaos", kills::measure_chaos),
    ("a quota over all nodes", overshoot::measure_overshoot),
    ("replays at another node", replays::measure_replays),
    ("the store stands still", faults::measure_stall),
    ("the store is emptied", faults::measure_flush),
    ("half of the nodes apart", faults::measure_partition),
    ("rolling upgrade", upgrades::measure_upgrades),
    ("the data path", data_path::measure_data_path),
];

/// Groups that a smoke run leaves out: emulated distances and partitions take their time whatever the amounts are.
const NOT_IN_SMOKE: [&str; 2] = [
    "changes of users with a far store",
    "half of the nodes apart",
];

/// Measures the gates once, and the costs in every round.
pub(super) fn run_suite(bench: &mut BenchRun) {
    let extent = match bench.settings.smoke {
        true => extent::SMOKE,
        false => extent::USUAL,
    };
    let Some(adit) = adit_program(bench) else {
        eprintln!("{}: adit is not among the implementations", Suite::Fleet);
        return;
    };
    for (name, measure) in GROUPS {
        if bench.settings.smoke && NOT_IN_SMOKE.contains(&name) {
            continue;
        }
        match measure(&adit, &extent).with_context(|| name.to_owned()) {
            Ok(gates) => {
                for gate in gates {
                    let figures = Ok(gate.figures());
                    bench
                        .journal
                        .record_outcome(Suite::Fleet, GATES, &gate.name, 1, figures);
                }
            }
            Err(why) => bench
                .journal
                .record_outcome(Suite::Fleet, GATES, name, 1, Err(why)),
        }
    }
    for round in 1..=bench.settings.rounds() {
        store_calls::record_costs(bench, &extent, round);
    }
    model::record_model(bench, &adit, &extent);
}
