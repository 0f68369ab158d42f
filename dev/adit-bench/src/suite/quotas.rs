//! The second part of suite `users`: what quotas cost on the path of bytes, beside the same process without them, in turn.
//! [`watched`] has the same for all that looks at a process, and [`dashboard_share`] the dashboard beside many sessions.

use std::path::Path;

use anyhow::Result;

use super::managed_process::{ApiConnection, ManagedProcess};
use super::processors::SplitProcessors;
use super::rounds::BenchRun;
use super::turn_costs::{DirectionCosts, record_directions};
use super::{Suite, dashboard_share, watched};
use crate::args::LoadAmounts;
use crate::load::OriginRoute;
use crate::load::origin::{LoadOrigin, OriginService};

/// Number of users of the server.
const USERS: u32 = 10_000;
/// The user who transfers.
const LOGIN: (&str, &str) = ("user00042", "secret00042");
/// The quota of each user, which no one uses up.
const QUOTA: u64 = 1 << 50;

/// Measures the transfers, and the dashboard in every round.
pub(super) fn run_suite(bench: &mut BenchRun) {
    let adit = bench.peers.iter().find(|peer| peer.name() == "adit");
    let Some(program) = adit.and_then(|peer| peer.program()).map(Path::to_owned) else {
        return;
    };
    let (amounts, extent) = (bench.settings.amounts(), bench.settings.extent());
    let users = if bench.settings.smoke { 100 } else { USERS };
    let mut costs = DirectionCosts::default();
    let mut starts = 0..extent.starts;
    let outcome =
        starts.try_for_each(|_| measure_start(&program, users, amounts, extent.pairs, &mut costs));
    record_directions(
        &mut bench.journal,
        Suite::Users,
        "transfers of one user",
        ["10,000 users without quotas", "10,000 users with quotas"],
        outcome.map(|()| costs),
    );
    for round in 1..=bench.settings.rounds() {
        dashboard_share::measure_round(bench, &program, round);
    }
    watched::measure_watching(bench, &program);
}

/// Transfers as one of many users of two processes, with quotas and without in turn.
fn measure_start(
    program: &Path,
    users: u32,
    amounts: LoadAmounts,
    pairs: u32,
    costs: &mut DirectionCosts,
) -> Result<()> {
    let processors = SplitProcessors::new()?;
    let start = || ManagedProcess::start_with_users(program, users);
    let mut limited = processors.start_measured(start)?;
    let mut free = processors.start_measured(start)?;
    let mut api = ApiConnection::open(&limited.socket())?;
    let limits = format!("{{\"quota\":{QUOTA},\"period\":\"month\"}}");
    for number in 0..users {
        api.exchange(&format!("PUT /accounts/user{number:05}/limits"), &limits)?;
    }
    let origin = LoadOrigin::start(OriginService::Streams)?;
    let to = origin.addr();
    costs.measure(pairs, amounts, |has_quotas, direction, bytes| {
        let process = match has_quotas {
            true => &mut limited,
            false => &mut free,
        };
        let proxy = process.adit.addr();
        let way = OriginRoute::Login {
            proxy,
            to,
            login: LOGIN,
        };
        process.transfer_cost(way, direction, bytes)
    })
}
