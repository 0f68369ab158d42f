//! Suite `kcp`: sessions against kcp-go's, a tunnel against kcptun's, idle sessions, and every step
//! of a packet.

use std::env;
use std::net::SocketAddr;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use adit_crypto::packet::PacketKind;
use adit_interop::{ChildProcess, TEST_TIMEOUT, external_tools, kcp_go};
use anyhow::{Context, Result};

use super::rounds::{BenchRun, RoundSpec};
use super::{Suite, memory_steps, transfer};
use crate::figures::{
    ALLOCATIONS, AT_MOST, CPU_PER_GIB, CPU_SHARE, Figures, GBIT, Metric, PER_SESSION, as_float,
    whole_figure,
};
use crate::kcp_idle_sessions;
use crate::kcp_session::{FEC_SHARDS, MTU};
use crate::peers::{InstalledPeer, KCPTUN, TRANSFER_DIVISOR};
use crate::process_cost;
use crate::topology::Topology;

/// Name in tables.
const KCP_GO: &str = "kcp-go";

/// The implementations of a tunnel.
const TUNNELS: [&str; 3] = ["adit", "kcptun", KCP_GO];

const KIB: u64 = 1 << 10;

/// Sizes of a write, in bytes.
const SIZES: [(u64, &str); 5] = [
    (4 * KIB, "4 KiB"),
    (64 * KIB, "64 KiB"),
    (256 * KIB, "256 KiB"),
    (512 * KIB, "512 KiB"),
    (KIB * KIB, "1 MiB"),
];

/// A measured session.
struct SessionCase {
    echo: bool,
    cipher: PacketKind,
    /// Maximum cost of adit, in CPU seconds per GiB in writes of 1 MiB.
    limit: Option<f64>,
}

const fn session_case(echo: bool, cipher: PacketKind, limit: Option<f64>) -> SessionCase {
    SessionCase {
        echo,
        cipher,
        limit,
    }
}

const SESSION_CASES: [SessionCase; 4] = [
    session_case(false, PacketKind::Salsa20, Some(1.4)),
    session_case(false, PacketKind::Aes128, Some(1.0)),
    session_case(true, PacketKind::Salsa20, Some(8.0)),
    session_case(true, PacketKind::Aes128, None),
];

/// Number of held sessions, the number that a large server has (for which kcp-go's client would
/// need more sockets than a process may have), and the time they are watched.
const IDLE_SESSIONS: usize = 5000;
const MANY_SESSIONS: usize = 50_000;
const WATCH_TIME: Duration = Duration::from_secs(10);
/// Number of sessions that exist before.
const FIRST_SESSIONS: usize = 16;
/// Time that this many sessions may take to start.
const START_PATIENCE: Duration = Duration::from_secs(300);
/// An idle session releases its memory after half a second.
const SETTLE: Duration = Duration::from_secs(5);

/// Measures everything, in the order of the report.
pub(super) fn run_suite(bench: &mut BenchRun) {
    for way in &SESSION_CASES {
        for round in 1..=bench.settings.rounds() {
            for (size, shown) in write_sizes(bench.settings.smoke) {
                for who in implementations(bench, round) {
                    let bytes = bench.settings.amounts().bytes / TRANSFER_DIVISOR;
                    let outcome = way.measure_session(who, *size, bytes);
                    let row = format!("{shown}, {who}");
                    bench.journal.record_outcome(
                        Suite::Kcp,
                        &way.case_name(),
                        &row,
                        round,
                        outcome,
                    );
                }
            }
        }
    }
    let topology = Topology::Kcptun(KCPTUN);
    let among = |peer: &InstalledPeer| peer.is_one_of(&TUNNELS);
    let case = "kcptun's tunnel, fast3, aes, FEC 10+3, 1 stream";
    let contest = RoundSpec::new(Suite::Kcp, case, topology)
        .among(&among)
        .without_syscalls();
    bench.run_rounds(&contest, |turn| transfer::measure_transfers(turn, 1, case));
    // Its sessions start slowly, and every round has the same result.
    let (sessions, crowd, watched) = match bench.settings.smoke {
        true => (50, 200, Duration::from_secs(1)),
        false => (IDLE_SESSIONS, MANY_SESSIONS, WATCH_TIME),
    };
    let case = format!("a server with {sessions} idle sessions, aes, FEC 10+3");
    for who in implementations(bench, 1) {
        let outcome = measure_idle(who, sessions, watched);
        bench
            .journal
            .record_outcome(Suite::Kcp, &case, who, 1, outcome);
    }
    if bench.settings.includes("adit") {
        let cipher = kcp_idle_sessions::CIPHER;
        let case = format!("a server with {crowd} idle sessions, {cipher}, FEC 10+3");
        let outcome = measure_many_idle(crowd, watched);
        bench
            .journal
            .record_outcome(Suite::Kcp, &case, "adit", 1, outcome);
    }
    memory_steps::run_suite(bench, Suite::Kcp);
}

fn write_sizes(smoke: bool) -> &'static [(u64, &'static str)] {
    if smoke { &SIZES[1..2] } else { &SIZES }
}

/// Returns the selected implementations, starting with a different one in each round.
pub(super) fn implementations(bench: &BenchRun, round: u32) -> Vec<&'static str> {
    let mut whos = vec!["adit", KCP_GO];
    if round.is_multiple_of(2) {
        whos.reverse();
    }
    whos.retain(|who| bench.settings.includes(who));
    whos
}

impl SessionCase {
    fn case_name(&self) -> String {
        let what = if self.echo {
            "there and back"
        } else {
            "one way"
        };
        format!("{what}, {}, FEC 10+3, by the size of writes", self.cipher)
    }

    /// Measures a session with about `bytes` bytes.
    fn measure_session(&self, who: &str, size: u64, bytes: u64) -> Result<Figures> {
        let kind = if self.echo { "echo" } else { "sink" };
        let writes = (bytes / size).max(4);
        let (cipher, (data, parity)) = (self.cipher, FEC_SHARDS);
        let command = if who == KCP_GO {
            let mut command = Command::new(external_tools::peer_path("kcppeer"));
            let line = format!(
                "speed -kind {kind} -crypt {cipher} -size {size} -n {writes} -ds {data} \
                 -ps {parity} -mtu {MTU} -life 300"
            );
            command.args(line.split(' '));
            command
        } else {
            let echo = if self.echo { "--echo" } else { "" };
            own_command(&format!("kcp-speed {echo} {cipher} {size} {writes}"))?
        };
        let told = run_for_json(command)?;
        let count = |key: &str| told.get(key).and_then(serde_json::Value::as_u64);
        let count = |key: &'static str| count(key).map(as_float).context(key);
        let (bytes, cpu) = (count("bytes")?, count("cpu_ns")?);
        let mut figures = vec![
            whole_figure(CPU_PER_GIB, cpu / 1e9 / (bytes / as_float(1 << 30))),
            whole_figure(GBIT, bytes * 8.0 / count("wall_ns")?),
            whole_figure(ALLOCATIONS, count("allocations")? / count("writes")?),
        ];
        if let (Some(limit), "adit", true) = (self.limit, who, size == KIB * KIB) {
            figures.insert(1, limit_figure(CPU_PER_GIB, limit));
        }
        Ok(figures)
    }
}

/// Returns the figure of a limit that adit must not exceed.
pub(super) const fn limit_figure(quantity: crate::figures::Quantity, limit: f64) -> (Metric, f64) {
    let part = AT_MOST;
    (Metric { quantity, part }, limit)
}

/// Runs a program and parses the JSON object that it prints.
fn run_for_json(command: Command) -> Result<serde_json::Value> {
    let ended = external_tools::run_to_end(command, Duration::from_secs(320))
        .context(external_tools::missing_program_message("kcppeer"))?;
    let told = ended.expect_success()?;
    let line = told.lines().last().unwrap_or_default();
    serde_json::from_str(line).with_context(|| told.clone())
}

/// Measures the server's processor time and memory while its sessions are idle.
fn measure_idle(who: &str, sessions: usize, watched: Duration) -> Result<Figures> {
    let command = if who == KCP_GO {
        let mut command = Command::new(external_tools::peer_path("kcppeer"));
        command.args(["echo", "-mtu", "1400", "-life", "600"]);
        command
    } else {
        own_command(&format!("kcp-serve {}", PacketKind::Aes))?
    };
    let (server, at) = start_ready(command, TEST_TIMEOUT)?;
    // One-time costs of the process are those of the first sessions.
    let first = kcp_go::start_idle_sessions(at, FIRST_SESSIONS, &["-mtu", "1400"])?;
    sleep(Duration::from_secs(1));
    let before = process_cost::memory_usage(server.id())?.resident;
    let clients = kcp_go::start_idle_sessions(at, sessions, &["-mtu", "1400"])?;
    let mut figures = watch_server(&server, sessions, before, watched)?;
    drop((first, clients));
    if who == "adit" {
        figures.insert(1, limit_figure(CPU_SHARE, 1.0));
        figures.push(limit_figure(PER_SESSION, 4.0));
    }
    Ok(figures)
}

/// Like [`measure_idle`], with more sessions than there may be sockets.
fn measure_many_idle(sessions: usize, watched: Duration) -> Result<Figures> {
    let (server, at) = start_ready(
        own_command(&format!("kcp-serve {}", kcp_idle_sessions::CIPHER))?,
        TEST_TIMEOUT,
    )?;
    let hold = |count: usize| {
        start_ready(
            own_command(&format!("kcp-crowd {at} {count}"))?,
            START_PATIENCE,
        )
    };
    let first = hold(FIRST_SESSIONS)?;
    sleep(Duration::from_secs(1));
    let before = process_cost::memory_usage(server.id())?.resident;
    let clients = hold(sessions)?;
    let mut figures = watch_server(&server, sessions, before, watched)?;
    drop((first, clients));
    figures.push(limit_figure(PER_SESSION, 4.0));
    Ok(figures)
}

/// Returns a command for this program as one end.
fn own_command(line: &str) -> Result<Command> {
    let mut command = Command::new(env::current_exe()?);
    command.args(line.split_whitespace());
    Ok(command)
}

/// Starts a process that prints when it is ready, and its address.
fn start_ready(command: Command, patience: Duration) -> Result<(ChildProcess, SocketAddr)> {
    let mut process =
        ChildProcess::spawn(command).context(external_tools::missing_program_message("kcppeer"))?;
    let lines = process.wait_lines("ready ", 1, patience)?;
    let at = lines.first().and_then(|line| line.rsplit(' ').next());
    let at = at.context("the process printed no address")?.parse()?;
    Ok((process, at))
}

/// Measures a server while its sessions are idle: its processor time, and its memory beyond that
/// before the sessions.
fn watch_server(
    server: &ChildProcess,
    sessions: usize,
    before: u64,
    watched: Duration,
) -> Result<Figures> {
    sleep(SETTLE);
    let cpu = process_cost::cpu_time(server.id())?;
    sleep(watched);
    let cpu = process_cost::cpu_time(server.id())?.saturating_sub(cpu);
    let after = process_cost::memory_usage(server.id())?.resident;
    let grown = as_float(after.saturating_sub(before));
    Ok(vec![
        whole_figure(CPU_SHARE, cpu.as_secs_f64() / watched.as_secs_f64() * 100.0),
        whole_figure(PER_SESSION, grown / sessions as f64),
    ])
}
