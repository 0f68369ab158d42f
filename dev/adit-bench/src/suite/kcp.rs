//! Suite `kcp`: sessions against kcp-go's, a tunnel against kcptun's, idle sessions, and every step
//! of a packet.

use std::env;
use std::net::SocketAddr;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use adit_crypto::packet::PacketKind;
use adit_interop::{PATIENCE, Process, kcpgo, tool};
use anyhow::{Context, Result};

use super::turn::{Bench, Contest};
use super::{Suite, steps, transfer};
use crate::account;
use crate::figure::{
    ALLOCATIONS, AT_MOST, CPU_PER_GIB, CPU_SHARE, Figures, GBIT, Metric, PER_SESSION, float, one,
};
use crate::kcp_crowd;
use crate::kcp_ends::{MTU, SHARDS};
use crate::peers::{KCPTUN, Peer, SHARE};
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
struct Way {
    echo: bool,
    cipher: PacketKind,
    /// Maximum cost of adit, in CPU seconds per GiB in writes of 1 MiB.
    limit: Option<f64>,
}

const fn way(echo: bool, cipher: PacketKind, limit: Option<f64>) -> Way {
    Way {
        echo,
        cipher,
        limit,
    }
}

const WAYS: [Way; 4] = [
    way(false, PacketKind::Salsa20, Some(1.4)),
    way(false, PacketKind::Aes128, Some(1.0)),
    way(true, PacketKind::Salsa20, Some(8.0)),
    way(true, PacketKind::Aes128, None),
];

/// Number of held sessions, the number that a large server has (for which kcp-go's client would
/// need more sockets than a process may have), and the time they are watched.
const IDLE: usize = 5000;
const CROWD: usize = 50_000;
const WATCHED: Duration = Duration::from_secs(10);
/// Number of sessions that exist before.
const FIRST: usize = 16;
/// Time that this many sessions may take to start.
const CROWDING: Duration = Duration::from_secs(300);
/// An idle session releases its memory after half a second.
const SETTLE: Duration = Duration::from_secs(5);

/// Measures everything, in the order of the report.
pub(super) fn run(bench: &mut Bench) {
    for way in &WAYS {
        for round in 1..=bench.settings.rounds() {
            for (size, shown) in sizes(bench.settings.smoke) {
                for who in whos(bench, round) {
                    let bytes = bench.settings.amounts().bytes / SHARE;
                    let outcome = way.measure(who, *size, bytes);
                    let row = format!("{shown}, {who}");
                    bench
                        .journal
                        .keep(Suite::Kcp, &way.case(), &row, round, outcome);
                }
            }
        }
    }
    let topology = Topology::Kcptun(KCPTUN);
    let among = |peer: &Peer| TUNNELS.contains(&peer.name());
    let case = "kcptun's tunnel, fast3, aes, FEC 10+3, 1 stream";
    let contest = Contest::new(Suite::Kcp, case, topology)
        .among(&among)
        .uncounted();
    bench.alternate(&contest, |turn| transfer::turns(turn, 1, case));
    // Its sessions start slowly, and every round has the same result.
    let (sessions, crowd, watched) = match bench.settings.smoke {
        true => (50, 200, Duration::from_secs(1)),
        false => (IDLE, CROWD, WATCHED),
    };
    let case = format!("a server with {sessions} idle sessions, aes, FEC 10+3");
    for who in whos(bench, 1) {
        let outcome = idle(who, sessions, watched);
        bench.journal.keep(Suite::Kcp, &case, who, 1, outcome);
    }
    if bench.settings.wants("adit") {
        let cipher = kcp_crowd::CIPHER;
        let case = format!("a server with {crowd} idle sessions, {cipher}, FEC 10+3");
        let outcome = crowded(crowd, watched);
        bench.journal.keep(Suite::Kcp, &case, "adit", 1, outcome);
    }
    steps::run(bench, Suite::Kcp);
}

fn sizes(smoke: bool) -> &'static [(u64, &'static str)] {
    if smoke { &SIZES[1..2] } else { &SIZES }
}

/// Returns the selected implementations, starting with a different one in each round.
pub(super) fn whos(bench: &Bench, round: u32) -> Vec<&'static str> {
    let mut whos = vec!["adit", KCP_GO];
    if round.is_multiple_of(2) {
        whos.reverse();
    }
    whos.retain(|who| bench.settings.wants(who));
    whos
}

impl Way {
    fn case(&self) -> String {
        let what = if self.echo {
            "there and back"
        } else {
            "one way"
        };
        format!("{what}, {}, FEC 10+3, by the size of writes", self.cipher)
    }

    /// Measures a session with about `bytes` bytes.
    fn measure(&self, who: &str, size: u64, bytes: u64) -> Result<Figures> {
        let kind = if self.echo { "echo" } else { "sink" };
        let writes = (bytes / size).max(4);
        let (cipher, (data, parity)) = (self.cipher, SHARDS);
        let command = if who == KCP_GO {
            let mut command = Command::new(tool::peer("kcppeer"));
            let line = format!(
                "speed -kind {kind} -crypt {cipher} -size {size} -n {writes} -ds {data} \
                 -ps {parity} -mtu {MTU} -life 300"
            );
            command.args(line.split(' '));
            command
        } else {
            let echo = if self.echo { "--echo" } else { "" };
            own(&format!("kcp-speed {echo} {cipher} {size} {writes}"))?
        };
        let told = told(command)?;
        let count = |key: &str| told.get(key).and_then(serde_json::Value::as_u64);
        let count = |key: &'static str| count(key).map(float).context(key);
        let (bytes, cpu) = (count("bytes")?, count("cpu_ns")?);
        let mut figures = vec![
            one(CPU_PER_GIB, cpu / 1e9 / (bytes / float(1 << 30))),
            one(GBIT, bytes * 8.0 / count("wall_ns")?),
            one(ALLOCATIONS, count("allocations")? / count("writes")?),
        ];
        if let (Some(limit), "adit", true) = (self.limit, who, size == KIB * KIB) {
            figures.insert(1, at_most(CPU_PER_GIB, limit));
        }
        Ok(figures)
    }
}

/// Returns the figure of a limit that adit must not exceed.
pub(super) const fn at_most(quantity: crate::figure::Quantity, limit: f64) -> (Metric, f64) {
    let part = AT_MOST;
    (Metric { quantity, part }, limit)
}

/// Runs a program and parses the JSON object that it prints.
fn told(command: Command) -> Result<serde_json::Value> {
    let ended = tool::run(command, Duration::from_secs(320)).context(tool::missing("kcppeer"))?;
    let told = ended.success()?;
    let line = told.lines().last().unwrap_or_default();
    serde_json::from_str(line).with_context(|| told.clone())
}

/// Measures the server's processor time and memory while its sessions are idle.
fn idle(who: &str, sessions: usize, watched: Duration) -> Result<Figures> {
    let command = if who == KCP_GO {
        let mut command = Command::new(tool::peer("kcppeer"));
        command.args(["echo", "-mtu", "1400", "-life", "600"]);
        command
    } else {
        own(&format!("kcp-serve {}", PacketKind::Aes))?
    };
    let (server, at) = started(command, PATIENCE)?;
    // One-time costs of the process are those of the first sessions.
    let first = kcpgo::idle(at, FIRST, &["-mtu", "1400"])?;
    sleep(Duration::from_secs(1));
    let before = account::memory(server.id())?.resident;
    let clients = kcpgo::idle(at, sessions, &["-mtu", "1400"])?;
    let mut figures = watch(&server, sessions, before, watched)?;
    drop((first, clients));
    if who == "adit" {
        figures.insert(1, at_most(CPU_SHARE, 1.0));
        figures.push(at_most(PER_SESSION, 4.0));
    }
    Ok(figures)
}

/// Like [`idle`], with more sessions than there may be sockets.
fn crowded(sessions: usize, watched: Duration) -> Result<Figures> {
    let (server, at) = started(own(&format!("kcp-serve {}", kcp_crowd::CIPHER))?, PATIENCE)?;
    let hold = |count: usize| started(own(&format!("kcp-crowd {at} {count}"))?, CROWDING);
    let first = hold(FIRST)?;
    sleep(Duration::from_secs(1));
    let before = account::memory(server.id())?.resident;
    let clients = hold(sessions)?;
    let mut figures = watch(&server, sessions, before, watched)?;
    drop((first, clients));
    figures.push(at_most(PER_SESSION, 4.0));
    Ok(figures)
}

/// Returns a command for this program as one end.
fn own(line: &str) -> Result<Command> {
    let mut command = Command::new(env::current_exe()?);
    command.args(line.split_whitespace());
    Ok(command)
}

/// Starts a process that prints when it is ready, and its address.
fn started(command: Command, patience: Duration) -> Result<(Process, SocketAddr)> {
    let mut process = Process::spawn(command).context(tool::missing("kcppeer"))?;
    let lines = process.wait_lines("ready ", 1, patience)?;
    let at = lines.first().and_then(|line| line.rsplit(' ').next());
    let at = at.context("the process printed no address")?.parse()?;
    Ok((process, at))
}

/// Measures a server while its sessions are idle: its processor time, and its memory beyond that
/// before the sessions.
fn watch(server: &Process, sessions: usize, before: u64, watched: Duration) -> Result<Figures> {
    sleep(SETTLE);
    let cpu = account::cpu_time(server.id())?;
    sleep(watched);
    let cpu = account::cpu_time(server.id())?.saturating_sub(cpu);
    let after = account::memory(server.id())?.resident;
    let grown = float(after.saturating_sub(before));
    Ok(vec![
        one(CPU_SHARE, cpu.as_secs_f64() / watched.as_secs_f64() * 100.0),
        one(PER_SESSION, grown / sessions as f64),
    ])
}
