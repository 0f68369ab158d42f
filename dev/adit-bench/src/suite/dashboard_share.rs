//! The share of a core that a process with many idle sessions uses, with an open dashboard and without.
//!
//! Sessions are channels of an SSH server, with one file each. Many machines allow a process 20,000 files: adit accepts
//! 7,000 connections with them, or 14,000 channels.
//!
//! ```text
//! holder ── SOCKS5 ──▶ adit, a client ══ SSH ══▶ adit, measured ──▶ origin (in the holder)
//! ```

use std::net::SocketAddr;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use adit_interop::{AditProcess, TempFolder};
use anyhow::{Context, Result};

use super::Suite;
use super::managed_process::{DashboardPage, ManagedProcess};
use super::rounds::BenchRun;
use super::turn_costs::pair_in_turn;
use crate::connection_holder::HolderProcess;
use crate::figures::{CPU_SHARE, whole_figure};

/// Number of clients, each of which has a connection to the server.
const CLIENTS: u8 = 4;
/// Number of sessions of each client: 10,000 in total.
const SESSIONS_PER_CLIENT: u32 = 2_500;
/// Time over which the share is measured.
const WATCH_TIME: Duration = Duration::from_secs(10);

/// Measures the share with and without the dashboard.
pub(super) fn measure_round(bench: &mut BenchRun, program: &Path, round: u32) {
    let (sessions, time) = match bench.settings.smoke {
        true => (25, Duration::from_secs(1)),
        false => (SESSIONS_PER_CLIENT, WATCH_TIME),
    };
    for is_watched in pair_in_turn(round) {
        let who = match is_watched {
            true => "the dashboard is open",
            false => "the dashboard is closed",
        };
        let outcome = measure_share(program, sessions, is_watched, time);
        let outcome = outcome.map(|share| vec![whole_figure(CPU_SHARE, share)]);
        let case = "10,000 idle sessions";
        bench
            .journal
            .record_outcome(Suite::Users, case, who, round, outcome);
    }
}

/// Returns the share of a core, in percent.
fn measure_share(
    program: &Path,
    sessions_per_client: u32,
    is_watched: bool,
    time: Duration,
) -> Result<f64> {
    let mut server = start_server(program)?;
    let clients = (0..CLIENTS)
        .map(|_| start_client(program, &server))
        .collect::<Result<Vec<_>>>()?;
    let mut holders = Vec::new();
    for (client, lane) in clients.iter().zip(0u8..) {
        let holder = HolderProcess::start(client.addr(), sessions_per_client, lane)?;
        holders.push(holder);
    }
    for holder in &mut holders {
        holder.wait_until_open()?;
    }
    let page = match is_watched {
        true => Some(DashboardPage::open(&server.socket(), &[])?),
        false => None,
    };
    // The first look is larger than the others.
    sleep(Duration::from_secs(2));
    let (begun, before) = (Instant::now(), server.cpu_time()?);
    sleep(time);
    let spent = server.cpu_time()?.saturating_sub(before).as_secs_f64();
    let share = spent * 100.0 / begun.elapsed().as_secs_f64();
    if let Some(page) = page {
        page.close()?;
    }
    drop(holders);
    Ok(share)
}

fn start_server(program: &Path) -> Result<ManagedProcess> {
    let folder = TempFolder::new("bench-sessions")?;
    let listener = "ssh://ann:secret@127.0.0.1:0?host_key=@host&allow_private=127.0.0.0/8";
    ManagedProcess::start(program, folder, listener)
}

fn start_client(program: &Path, server: &ManagedProcess) -> Result<AditProcess> {
    let at: SocketAddr = server.adit.addr();
    let known = server.write_known_hosts("host.pub", at)?;
    let known = known.to_str().context("the path of a folder")?;
    let hop = format!("ssh://ann:secret@{at}?known_hosts=@{known}");
    AditProcess::start_with(
        program,
        &["run", "-L", "socks5://127.0.0.1:0", "-F", &hop],
        1,
    )
}
