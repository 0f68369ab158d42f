//! The second part of suite `users`: what the quota of a user costs on the path of their bytes, with and without in turn.
//! [`watched`] has the same for all that looks at a process, and [`dashboard_share`] the dashboard beside many sessions.

use std::path::Path;
use std::thread::sleep;

use anyhow::Result;

use super::managed_process::{ApiConnection, ManagedProcess, SETTLE_TIME};
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
        [
            "9,999 of 10,000 users have quotas",
            "10,000 users have quotas",
        ],
        outcome.map(|()| costs),
    );
    for round in 1..=bench.settings.rounds() {
        dashboard_share::measure_round(bench, &program, round);
    }
    watched::measure_watching(bench, &program);
}

/// Transfers as one of many users of a process, with a quota of this user and without in turn. All others have one.
fn measure_start(
    program: &Path,
    users: u32,
    amounts: LoadAmounts,
    pairs: u32,
    costs: &mut DirectionCosts,
) -> Result<()> {
    let processors = SplitProcessors::new()?;
    let start = || ManagedProcess::start_with_users(program, users);
    let mut process = processors.start_measured(start)?;
    let mut api = ApiConnection::open(&process.socket())?;
    let limits = format!("{{\"quota\":{QUOTA},\"period\":\"month\"}}");
    for number in 0..users {
        api.exchange(&format!("PUT /accounts/user{number:05}/limits"), &limits)?;
    }
    let origin = LoadOrigin::start(OriginService::Streams)?;
    let way = OriginRoute::Login {
        proxy: process.adit.addr(),
        to: origin.addr(),
        login: LOGIN,
    };
    let (user, _) = LOGIN;
    costs.measure(pairs, amounts, |has_quota, direction, bytes| {
        let limits = match has_quota {
            true => &limits,
            false => "{\"quota\":null}",
        };
        // The server ends connections after a while.
        ApiConnection::open(&process.socket())?
            .exchange(&format!("PUT /accounts/{user}/limits"), limits)?;
        sleep(SETTLE_TIME);
        process.transfer_cost(way, direction, bytes)
    })
}
