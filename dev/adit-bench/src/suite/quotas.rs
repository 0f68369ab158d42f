//! The second part of suite `users`: what quotas cost on the path of bytes, and the dashboard beside many sessions, each
//! beside the same process without it, in turn. [`watched`] has the same for all that looks at a process.

use std::net::SocketAddr;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::managed_process::{ApiConnection, DashboardPage, ManagedProcess};
use super::rounds::BenchRun;
use super::turn_costs::{DirectionCosts, measure_directions, pair_in_turn, record_directions};
use super::{Suite, watched};
use crate::args::LoadAmounts;
use crate::connection_holder::HolderProcess;
use crate::figures::{CPU_SHARE, whole_figure};
use crate::load::OriginRoute;
use crate::load::origin::{LoadOrigin, OriginService};

/// Number of users of the server.
const USERS: u32 = 10_000;
/// The user who transfers.
const LOGIN: (&str, &str) = ("user00042", "secret00042");
/// The quota of each user, which no one uses up.
const QUOTA: u64 = 1 << 50;
/// Number of open sessions beside the dashboard. adit reserves half of the open files for connections, two for each, and
/// many machines allow a process 20,000.
const SESSIONS: u32 = 4_900;
/// Time over which the share of a processor is measured.
const WATCH_TIME: Duration = Duration::from_secs(10);

/// Measures both, with and without, in every round.
pub(super) fn run_suite(bench: &mut BenchRun) {
    let adit = bench.peers.iter().find(|peer| peer.name() == "adit");
    let Some(program) = adit.and_then(|peer| peer.program()).map(Path::to_owned) else {
        return;
    };
    let (amounts, smoke) = (bench.settings.amounts(), bench.settings.smoke);
    let users = if smoke { 100 } else { USERS };
    for round in 1..=bench.settings.rounds() {
        let outcome = measure_quotas(&program, users, amounts, bench.settings.extent().pairs);
        record_directions(
            &mut bench.journal,
            Suite::Users,
            "transfers of one user",
            ["10,000 users without quotas", "10,000 users with quotas"],
            round,
            outcome,
        );
        for is_watched in pair_in_turn(round) {
            let who = match is_watched {
                true => "the dashboard is open",
                false => "the dashboard is closed",
            };
            let (sessions, time) = match smoke {
                true => (100, Duration::from_secs(1)),
                false => (SESSIONS, WATCH_TIME),
            };
            let outcome = measure_dashboard(&program, sessions, is_watched, time);
            let outcome = outcome.map(|share| vec![whole_figure(CPU_SHARE, share)]);
            let case = "4,900 idle sessions";
            bench
                .journal
                .record_outcome(Suite::Users, case, who, round, outcome);
        }
    }
    watched::measure_watching(bench, &program);
}

/// Transfers as one of many users, with quotas and without in turn.
fn measure_quotas(
    program: &Path,
    users: u32,
    amounts: LoadAmounts,
    pairs: u32,
) -> Result<DirectionCosts> {
    let mut limited = ManagedProcess::start_with_users(program, users)?;
    let mut free = ManagedProcess::start_with_users(program, users)?;
    let mut api = ApiConnection::open(&limited.socket())?;
    let limits = format!("{{\"quota\":{QUOTA},\"period\":\"month\"}}");
    for number in 0..users {
        api.exchange(&format!("PUT /accounts/user{number:05}/limits"), &limits)?;
    }
    let origin = LoadOrigin::start(OriginService::Streams)?;
    let to = origin.addr();
    measure_directions(pairs, amounts, |has_quotas, direction, bytes| {
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

/// Returns the share of a core, in percent, that a process with idle sessions uses.
fn measure_dashboard(
    program: &Path,
    sessions: u32,
    is_watched: bool,
    time: Duration,
) -> Result<f64> {
    let mut managed = ManagedProcess::start_with_users(program, 0)?;
    let proxy: SocketAddr = managed.adit.addr();
    let mut holder = HolderProcess::start(proxy, sessions, 0)?;
    holder.wait_until_open()?;
    let page = match is_watched {
        true => Some(DashboardPage::open(&managed.socket(), &[])?),
        false => None,
    };
    // The first look is larger than the others.
    sleep(Duration::from_secs(2));
    let (begun, before) = (Instant::now(), managed.cpu_time()?);
    sleep(time);
    let spent = managed.cpu_time()?.saturating_sub(before).as_secs_f64();
    let share = spent * 100.0 / begun.elapsed().as_secs_f64();
    if let Some(page) = page {
        page.close()?;
    }
    drop(holder);
    Ok(share)
}
