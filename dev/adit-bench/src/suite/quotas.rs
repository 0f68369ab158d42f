//! The second part of suite `users`: what the quota of a user costs on the path of their bytes. A user with a quota and
//! one without transfer in turn, through the same process. [`watched`] has the same for all that looks at a process, and
//! [`dashboard_share`] the dashboard beside many sessions.

use std::path::Path;

use anyhow::Result;

use super::managed_process::{ApiConnection, ManagedProcess};
use super::processors::AssignedProcessors;
use super::rounds::BenchRun;
use super::turn_costs::{DirectionCosts, record_directions};
use super::{Suite, dashboard_share, watched};
use crate::args::LoadAmounts;
use crate::load::OriginRoute;
use crate::load::in_step::OriginInStep;

/// Number of users of the server.
const USERS: u32 = 10_000;
/// The user who transfers with a quota, and the only user without one.
const LIMITED: (&str, &str) = ("user00042", "secret00042");
const FREE: (&str, &str) = ("user00043", "secret00043");
/// The quota of each other user, which no one uses up.
const QUOTA: u64 = 1 << 50;
/// Parts of a transfer, each of which is one of its own: nothing has to be switched or to settle between them.
const PARTS: u32 = 4;

/// Measures the transfers, and the dashboard in every round.
pub(super) fn run_suite(bench: &mut BenchRun) {
    let adit = bench.peers.iter().find(|peer| peer.name() == "adit");
    let Some(program) = adit.and_then(|peer| peer.program()).map(Path::to_owned) else {
        return;
    };
    let (amounts, extent) = (bench.settings.amounts(), bench.settings.extent());
    let users = if bench.settings.smoke { 100 } else { USERS };
    let amounts = amounts.divided_by(PARTS.into());
    let pairs = extent.pairs * PARTS;
    let outcome = DirectionCosts::of_starts(extent.starts, |costs| {
        measure_start(&program, users, amounts, pairs, costs)
    });
    record_directions(
        &mut bench.journal,
        Suite::Users,
        "transfers of one of 10,000 users",
        ["the only one without a quota", "with a quota"],
        outcome,
    );
    for round in 1..=bench.settings.rounds() {
        dashboard_share::measure_round(bench, &program, round);
    }
    watched::measure_watching(bench, &program);
}

/// Transfers through one process, as a user with a quota and as one without in turn.
fn measure_start(
    program: &Path,
    users: u32,
    amounts: LoadAmounts,
    pairs: u32,
    costs: &mut DirectionCosts,
) -> Result<()> {
    let processors = AssignedProcessors::single()?;
    let start = || ManagedProcess::start_with_users(program, users);
    let mut process = processors.start_measured(start)?;
    let limits = format!("{{\"quota\":{QUOTA},\"period\":\"month\"}}");
    let mut api = ApiConnection::open(&process.socket())?;
    for name in (0..users).map(|number| format!("user{number:05}")) {
        if name != FREE.0 {
            api.exchange(&format!("PUT /accounts/{name}/limits"), &limits)?;
        }
    }
    let origin = OriginInStep::bind()?;
    let (proxy, to) = (process.adit.addr(), origin.addr()?);
    costs.measure_pairs(pairs, amounts, |has_quota, direction, bytes| {
        let login = if has_quota { LIMITED } else { FREE };
        let route = OriginRoute::Login { proxy, to, login };
        process.transfer_cost(&origin, route, direction, bytes)
    })
}
