//! Benchmarks beside the rivals: `cargo xtask bench`.
//!
//! adit and every rival that is installed are started alternately in the same run, on loopback,
//! under the same load, which this process makes itself. What counts is what each process costs:
//! CPU seconds and system calls per GiB, memory, CPU per connection; Gbit/s come last, since on
//! loopback they measure the load as much as the relay.
//!
//! Data passes through like this: [`args`] says what is wanted, [`peers`] who takes part,
//! [`suite`] measures with [`load`] through a [`topology`], [`journal`] keeps the samples,
//! [`report`] shows them. Nothing is reported that was not measured in the same run.

mod account;
mod args;
mod bare_datagrams;
mod bare_records;
mod bare_splice;
mod environment;
mod figure;
mod hold;
mod instructions;
mod journal;
mod kcp_crowd;
mod kcp_ends;
mod load;
mod packets;
mod peers;
mod places;
mod report;
mod short_turns;
mod spin;
mod suite;
mod syscalls;
mod terminal;
mod topology;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use args::{Args, Own, Settings};
use environment::Environment;
use journal::Journal;
use peers::{KINDS, Kind, Peer};
use suite::Bench;

fn main() -> ExitCode {
    match fulfil(Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why:#}");
            ExitCode::FAILURE
        }
    }
}

fn fulfil(args: Args) -> Result<()> {
    match args.own {
        None if args.instructions => instructions::run(args.bless),
        None if args.plots => report::draw_again(&places::root().join("docs")),
        None if args.terminal => {
            terminal::run(&adit(&args.settings)?, &places::root().join("docs"))
        }
        None => measure(args.settings),
        Some(Own::Hot { name, times }) => instructions::hot(&name, times),
        Some(Own::KcpServe { cipher }) => kcp_ends::serve(cipher),
        Some(Own::KcpCrowd { server, sessions }) => kcp_crowd::hold(server, sessions),
        Some(Own::KcpSpeed(speed)) => kcp_ends::speed(&speed),
        Some(Own::Splice { at, to }) => bare_splice::run(at, to),
        Some(Own::Hold(what)) => raise_open_files().and_then(|()| hold::run(what)),
        Some(Own::Records(ends)) => bare_records::run(ends),
        Some(Own::Spin) => spin::run(),
    }
}

fn measure(settings: Settings) -> Result<()> {
    if cfg!(debug_assertions) && !settings.smoke {
        eprintln!("warning: the load is built without optimisation; use `cargo xtask bench`");
    }
    raise_open_files()?;
    let (peers, missing) = participants(&settings)?;
    for kind in &missing {
        let hint = if kind.by_hand {
            "no package registry has it; put it into target/peers"
        } else {
            "`cargo xtask install --rivals`"
        };
        eprintln!("{}: not installed; hint: {hint}", kind.name);
    }
    let missing = missing.into_iter().map(|kind| kind.name).collect();
    let counter = syscalls::counter();
    let environment = Environment::now(&settings, &peers, missing, counter);
    for (name, version) in &environment.versions {
        eprintln!("{name}: {version}");
    }
    let mut bench = Bench {
        settings,
        peers,
        counts_calls: environment.counter.is_some(),
        journal: Journal::default(),
    };
    for suite in bench.settings.suites().to_vec() {
        suite::run(suite, &mut bench);
    }
    publish(&bench.settings, &environment, &bench.journal)
}

/// Who is here and wanted, and who is wanted but not here.
fn participants(settings: &Settings) -> Result<(Vec<Peer>, Vec<&'static Kind>)> {
    // Programs are started in folders of their own: a path has to hold there too.
    let rivals = match &settings.rivals {
        Some(path) => path
            .canonicalize()
            .with_context(|| format!("`--rivals {}`", path.display()))?,
        None => places::peers_dir(),
    };
    let needed = settings.suites().iter().any(|suite| suite.has_peers());
    let adit = if needed && settings.wants("adit") {
        Some(adit(settings)?)
    } else {
        None
    };
    let find = |program: &str| match program {
        "adit" => adit.clone(),
        "adit-bench" => std::env::current_exe().ok(),
        _ => places::find_program(program, &rivals),
    };
    let (mut peers, mut missing) = (Vec::new(), Vec::new());
    for kind in KINDS
        .iter()
        .filter(|kind| needed && settings.wants(kind.name))
    {
        match kind.find(find) {
            Some(peer) => peers.push(peer),
            None => missing.push(kind),
        }
    }
    Ok((peers, missing))
}

fn adit(settings: &Settings) -> Result<PathBuf> {
    match &settings.adit {
        Some(path) => path
            .canonicalize()
            .with_context(|| format!("`--adit {}`", path.display())),
        None => places::build_adit(),
    }
}

/// What fifty thousand held connections need, with both of their ends in this process, or with
/// six files each in a relay.
const OPEN_FILES: u64 = 310_000;

/// Held connections need more than the usual thousand files, here and in every process that is
/// started. Beyond the hard limit only with privilege; without it, as much as is allowed.
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

fn publish(settings: &Settings, environment: &Environment, journal: &Journal) -> Result<()> {
    for suite in journal.suites() {
        println!("{}", report::tables(journal, suite));
    }
    let rounds = journal
        .suites()
        .into_iter()
        .map(|suite| journal.rounds(suite));
    let rounds = rounds.max().unwrap_or(0);
    println!("{}", report::machine(environment, rounds));
    if let Some(file) = &settings.json {
        fs::write(file, report::json_lines(environment, journal))
            .with_context(|| file.display().to_string())?;
    }
    if settings.write_docs {
        report::write_docs(&places::root().join("docs"), environment, journal)?;
    }
    let failed = journal.gaps.iter().filter(|gap| gap.failed).count();
    ensure!(failed == 0, "{failed} measurements failed");
    ensure!(
        !journal.samples.is_empty(),
        "nothing was measured: nobody here can do it"
    );
    Ok(())
}
