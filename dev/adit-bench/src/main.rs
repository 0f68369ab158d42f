//! Benchmarks against rival implementations: `cargo xtask bench`.
//!
//! adit and every installed rival are started alternately in the same run, on loopback, under the
//! same load, which this process generates. The relevant figures are the costs of each process: CPU
//! seconds and system calls per GiB, memory, CPU per connection. Gbit/s come last, since on
//! loopback they measure the load as much as the relay.
//!
//! Data flows as follows: [`args`] selects the measurements, [`peers`] the implementations,
//! [`suite`] measures with [`load`] through a [`topology`], [`sample_log`] stores the samples, and
//! [`report`] shows them. Only figures that were measured in the same run are reported.

mod args;
mod bare_datagrams;
mod bare_records;
mod bare_splice;
mod busy_processes;
mod connection_holder;
mod environment;
mod figures;
mod instructions;
mod kcp_idle_sessions;
mod kcp_session;
mod load;
mod locations;
mod packet_loop;
mod peers;
mod process_cost;
mod report;
mod sample_log;
mod short_turns;
mod simulation;
mod suite;
mod syscall_counter;
mod terminal;
mod topology;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use args::{BenchArgs, BenchSettings, InternalCommand};
use environment::RunEnvironment;
use locations::workspace_root;
use peers::{BEFORE, InstalledPeer, KINDS, PeerKind};
use sample_log::SampleLog;
use suite::BenchRun;

fn main() -> ExitCode {
    match run_command(BenchArgs::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why:#}");
            ExitCode::FAILURE
        }
    }
}

fn run_command(args: BenchArgs) -> Result<()> {
    match args.own {
        None if args.instructions => instructions::count_instructions(args.bless),
        None if args.plots => report::redraw_charts(&workspace_root().join("docs")),
        None if args.terminal => terminal::draw_terminals(
            &adit_binary(&args.settings)?,
            &workspace_root().join("docs"),
        ),
        None => run_suites(args.settings),
        Some(InternalCommand::Hot { name, times }) => instructions::run_hot_loop(&name, times),
        Some(InternalCommand::KcpServe { cipher }) => kcp_session::run_echo_server(cipher),
        Some(InternalCommand::KcpCrowd { server, sessions }) => {
            kcp_idle_sessions::hold_sessions(server, sessions)
        }
        Some(InternalCommand::KcpSpeed(speed)) => kcp_session::measure_speed(&speed),
        Some(InternalCommand::Splice { at, to }) => bare_splice::run_relay(at, to),
        Some(InternalCommand::Hold(what)) => {
            raise_open_files().and_then(|()| connection_holder::hold_until_closed(what))
        }
        Some(InternalCommand::Records(ends)) => bare_records::run_ends(ends),
        Some(InternalCommand::Spin) => busy_processes::count_until_closed(),
    }
}

fn run_suites(settings: BenchSettings) -> Result<()> {
    if cfg!(debug_assertions) && !settings.smoke {
        eprintln!("warning: the load was built without optimisation; use `cargo xtask bench`");
    }
    raise_open_files()?;
    let (peers, missing) = find_participants(&settings)?;
    for kind in &missing {
        let hint = if kind.installed_by_hand {
            "no package registry offers it; put its binary into target/peers"
        } else {
            "`cargo xtask install --rivals`"
        };
        eprintln!("{}: not installed; hint: {hint}", kind.name);
    }
    let missing = missing.into_iter().map(|kind| kind.name).collect();
    let counter = syscall_counter::perf_version();
    let environment = RunEnvironment::capture(&settings, &peers, missing, counter);
    for (name, version) in &environment.versions {
        eprintln!("{name}: {version}");
    }
    let mut bench = BenchRun {
        settings,
        peers,
        counts_calls: environment.counter.is_some(),
        journal: SampleLog::default(),
    };
    for suite in bench.settings.suites().to_vec() {
        suite::run_suite(suite, &mut bench);
    }
    publish_results(&bench.settings, &environment, &bench.journal)
}

/// Returns the selected implementations that are installed, and those that are not.
fn find_participants(
    settings: &BenchSettings,
) -> Result<(Vec<InstalledPeer>, Vec<&'static PeerKind>)> {
    // Programs are started in folders of their own, where a relative path would not resolve.
    let rivals = match &settings.rivals {
        Some(path) => resolve("--rivals", path)?,
        None => locations::peers_dir(),
    };
    let needed = settings.suites().iter().any(|suite| suite.has_peers());
    let adit = if needed && settings.includes("adit") {
        Some(adit_binary(settings)?)
    } else {
        None
    };
    let before = match &settings.before {
        Some(path) => Some(resolve("--before", path)?),
        None => None,
    };
    let find = |name: &str, program: &str| match program {
        "adit" if name == BEFORE => before.clone(),
        "adit" => adit.clone(),
        "adit-bench" => std::env::current_exe().ok(),
        _ => locations::find_program(program, &rivals),
    };
    let (mut peers, mut missing) = (Vec::new(), Vec::new());
    for kind in KINDS
        .iter()
        .filter(|kind| needed && settings.includes(kind.name))
    {
        match kind.locate(|program| find(kind.name, program)) {
            Some(peer) => peers.push(peer),
            None => missing.push(kind),
        }
    }
    Ok((peers, missing))
}

fn adit_binary(settings: &BenchSettings) -> Result<PathBuf> {
    match &settings.adit {
        Some(path) => resolve("--adit", path),
        None => locations::build_adit(),
    }
}

/// Returns the absolute path of an option.
fn resolve(option: &str, path: &Path) -> Result<PathBuf> {
    path.canonicalize()
        .with_context(|| format!("cannot resolve `{option} {}`", path.display()))
}

/// Number of open files that fifty thousand held connections need, with both ends in this process,
/// or with six files each in a relay.
const OPEN_FILES: u64 = 310_000;

/// Raises the limit of open files: held connections need more than the usual thousand, here and in
/// every process that is started. Beyond the hard limit only with privileges; without them, up to
/// the limit.
fn raise_open_files() -> Result<()> {
    let allowed = getrlimit(Resource::Nofile).maximum;
    let enough = allowed.is_none_or(|files| files >= OPEN_FILES);
    let wanted = if enough { allowed } else { Some(OPEN_FILES) };
    let set = |files| {
        let limit = Rlimit {
            current: files,
            maximum: files,
        };
        setrlimit(Resource::Nofile, limit)
    };
    set(wanted)
        .or_else(|_| set(allowed))
        .context("cannot raise the limit of open files")
}

fn publish_results(
    settings: &BenchSettings,
    environment: &RunEnvironment,
    journal: &SampleLog,
) -> Result<()> {
    for suite in journal.suites() {
        println!("{}", report::suite_tables(journal, suite));
    }
    if settings.before.is_some() {
        println!("{}", report::change_table(journal));
    }
    let rounds = journal
        .suites()
        .into_iter()
        .map(|suite| journal.round_count(suite));
    let rounds = rounds.max().unwrap_or(0);
    println!("{}", report::machine_paragraph(environment, rounds));
    if let Some(file) = &settings.json {
        fs::write(file, report::json_lines(environment, journal))
            .with_context(|| file.display().to_string())?;
    }
    if settings.write_docs {
        report::write_docs(&workspace_root().join("docs"), environment, journal)?;
    }
    let failed = journal.gaps.iter().filter(|gap| gap.failed).count();
    ensure!(failed == 0, "{failed} measurements failed");
    ensure!(
        !journal.samples.is_empty(),
        "nothing was measured: no installed implementation supports these suites"
    );
    Ok(())
}
