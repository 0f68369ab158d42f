//! What may be typed, and what it means.

use std::path::PathBuf;

use adit_interop::shadowsocks::{BLAKE3_AES_128, CHACHA20, METHODS, Method};
use anyhow::{Result, ensure};
use clap::Parser;

use crate::hold::Hold;
use crate::kcp_ends::End;
use crate::peers::KINDS;
use crate::suite::Suite;
use crate::{bare_records, bare_splice};

/// Measures adit beside whatever rivals are installed: alternating rounds on loopback, CPU
/// seconds and system calls per GiB of every process, not only Gbit/s.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench", bin_name = "cargo xtask bench")]
pub(crate) struct Args {
    /// Suites to run [default: all]
    #[arg(long, value_delimiter = ',', value_name = "SUITE,…")]
    suite: Vec<Suite>,
    /// Rounds; in each, everybody is measured once, in turn [default: 5, with --smoke 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,
    /// Bytes per transfer, all streams together; a quarter of it in datagrams [default: 1GiB]
    #[arg(long, value_name = "N[KiB|MiB|GiB]", value_parser = parse_bytes)]
    bytes: Option<u64>,
    /// Numbers of parallel streams [default: 1,8]
    #[arg(long, value_delimiter = ',', value_name = "N,…",
        value_parser = clap::value_parser!(u32).range(1..=256))]
    streams: Vec<u32>,
    /// Shadowsocks methods [default: 2022-blake3-aes-128-gcm,chacha20-ietf-poly1305]
    #[arg(long, value_delimiter = ',', value_name = "METHOD,…", value_parser = parse_method)]
    method: Vec<Method>,
    /// Numbers of idle connections [default: 1000,50000]
    #[arg(long, value_delimiter = ',', value_name = "N,…",
        value_parser = clap::value_parser!(u32).range(1..=50_000))]
    idle_connections: Vec<u32>,
    /// Numbers of worker threads, in the suite `workers` [default: 1,2]
    #[arg(long, value_delimiter = ',', value_name = "N,…",
        value_parser = clap::value_parser!(u32).range(1..=256))]
    workers: Vec<u32>,
    /// Numbers of connections at the same time, in the suite `workers` [default: 1,8,1000]
    #[arg(long, value_delimiter = ',', value_name = "N,…",
        value_parser = clap::value_parser!(u32).range(1..=4000))]
    connections: Vec<u32>,
    /// Cases of the suite `latency` in whose name this occurs: "SSH", "SSH -L, alone" [default: all]
    #[arg(long, value_name = "TEXT", conflicts_with = "write_docs")]
    case: Option<String>,
    /// The adit to measure [default: the release build of this workspace]
    #[arg(long, value_name = "PATH")]
    adit: Option<PathBuf>,
    /// Where the rivals' binaries are, before the PATH [default: target/peers]
    #[arg(long, value_name = "DIR")]
    rivals: Option<PathBuf>,
    /// Measure only these implementations
    #[arg(long, value_delimiter = ',', value_name = "NAME,…", value_parser = parse_name)]
    only: Vec<&'static str>,
    /// Write every sample and the summary as JSON lines
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Tiny amounts: shows that the suites work, the figures mean nothing
    #[arg(long, conflicts_with = "write_docs")]
    smoke: bool,
    /// Install the rivals, then end
    #[arg(long)]
    install_rivals: bool,
    /// Instead of time, count the instructions of hot loops, and compare them with those committed
    #[arg(long, conflicts_with_all = ["suite", "write_docs"])]
    instructions: bool,
    /// Write the counts down instead of comparing them
    #[arg(long, requires = "instructions")]
    bless: bool,
    /// Run a hot loop so many times, for the counting
    #[arg(long, value_name = "LOOP", requires = "times", hide = true)]
    hot: Option<String>,
    #[arg(long, value_name = "N", requires = "hot", hide = true)]
    times: Option<u32>,
    /// Be an end of KCP sessions, for the suite `kcp`
    #[arg(long, value_name = "END", hide = true)]
    kcp_end: Option<End>,
    /// Be a relay that only splices, for the suites `ss-relay` and `socks`
    #[arg(long, value_name = "ADDR[,ADDR]", hide = true)]
    splice: Option<bare_splice::Ends>,
    /// Hold connections, for the suite `idle`
    #[arg(long, value_name = "COUNT,ADDR,LANE", hide = true)]
    hold: Option<Hold>,
    /// Be an end of records without a protocol, for the suites `ss-tcp` and `ss-udp`
    #[arg(long, value_name = "END", hide = true)]
    records: Option<bare_records::Ends>,
    /// Only count, for the busy cases of `ss-tcp` and `socks`
    #[arg(long, hide = true)]
    spin: bool,
    /// Write the results of these suites, and a chart for each, into the documents
    #[arg(long)]
    write_docs: bool,
}

/// What is to be done.
#[derive(Debug)]
pub(crate) enum Wish {
    /// Bring the rivals.
    InstallRivals,
    /// Count instructions; `bless` writes them down.
    Instructions { bless: bool },
    /// Run a hot loop.
    Hot { name: String, times: u32 },
    /// Be an end of KCP sessions.
    KcpEnd(End),
    /// Be a relay that only splices.
    Splice(bare_splice::Ends),
    /// Hold connections.
    Hold(Hold),
    /// Be an end of records without a protocol.
    Records(bare_records::Ends),
    /// Keep a processor busy.
    Spin,
    /// Run suites.
    Measure(Box<Settings>),
}

impl Wish {
    /// What was typed.
    pub(crate) fn from_args(args: Args) -> Result<Self> {
        if args.install_rivals {
            return Ok(Self::InstallRivals);
        }
        if args.instructions {
            return Ok(Self::Instructions { bless: args.bless });
        }
        if let Some(what) = args.hold {
            return Ok(Self::Hold(what));
        }
        if let Some(ends) = args.splice {
            return Ok(Self::Splice(ends));
        }
        if let Some(ends) = args.records {
            return Ok(Self::Records(ends));
        }
        if args.spin {
            return Ok(Self::Spin);
        }
        if let Some(end) = args.kcp_end {
            return Ok(Self::KcpEnd(end));
        }
        match (&args.hot, args.times) {
            (Some(name), Some(times)) => Ok(Self::Hot {
                name: name.clone(),
                times,
            }),
            _ => Settings::from_args(args).map(|settings| Self::Measure(Box::new(settings))),
        }
    }
}

/// What was meant.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) suites: Vec<Suite>,
    pub(crate) rounds: u32,
    pub(crate) amounts: Amounts,
    pub(crate) streams: Vec<u32>,
    pub(crate) methods: Vec<Method>,
    /// Connections that are held open.
    pub(crate) held: Vec<u32>,
    /// Worker threads of each process.
    pub(crate) workers: Vec<u32>,
    /// Connections at the same time, for those.
    pub(crate) connections: Vec<u32>,
    /// What the name of a case of latency has to contain.
    pub(crate) case: String,
    pub(crate) adit: Option<PathBuf>,
    /// None: the folder of the workspace.
    pub(crate) rivals: Option<PathBuf>,
    pub(crate) only: Vec<&'static str>,
    pub(crate) json: Option<PathBuf>,
    pub(crate) smoke: bool,
    pub(crate) write_docs: bool,
}

/// How much is moved in one measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Amounts {
    /// Bytes of a transfer.
    pub(crate) bytes: u64,
    /// Bytes of the transfer before it, of which every byte is compared.
    pub(crate) warm_up: u64,
    /// Bytes of the transfer under strace, which slows it down.
    pub(crate) traced: u64,
    /// Bytes of a transfer of datagrams.
    pub(crate) datagram_bytes: u64,
    /// Connections opened and closed.
    pub(crate) connections: u32,
    /// Milliseconds of echoes.
    pub(crate) latency_millis: u64,
    /// Milliseconds that one measurement of a cipher takes at least.
    pub(crate) cipher_millis: u64,
}

const MIB: u64 = 1 << 20;

/// What even the slowest carry.
const LEAST: u64 = 128 << 10;

impl Amounts {
    fn usual(bytes: u64) -> Self {
        Self {
            bytes,
            warm_up: (bytes / 16).clamp(MIB, 32 * MIB),
            traced: (bytes / 4).clamp(MIB, 256 * MIB),
            datagram_bytes: (bytes / 4).max(MIB),
            connections: 5000,
            latency_millis: 3000,
            cipher_millis: 100,
        }
    }

    /// Fewer bytes in a stream, for a slow implementation.
    pub(crate) fn divided(self, by: u64) -> Self {
        let share = |bytes: u64| (bytes / by).max(bytes.min(LEAST));
        Self {
            bytes: share(self.bytes),
            warm_up: share(self.warm_up),
            traced: share(self.traced),
            ..self
        }
    }

    fn smoke(bytes: u64) -> Self {
        Self {
            bytes,
            warm_up: MIB,
            traced: MIB,
            datagram_bytes: 2 * MIB,
            connections: 100,
            latency_millis: 20,
            cipher_millis: 1,
        }
    }
}

/// What is done if nothing else is typed.
struct Usual {
    rounds: u32,
    streams: &'static [u32],
    methods: &'static [Method],
    held: &'static [u32],
    workers: &'static [u32],
    connections: &'static [u32],
}

const USUAL: Usual = Usual {
    rounds: 5,
    streams: &[1, 8],
    methods: &[BLAKE3_AES_128, CHACHA20],
    held: &[1000, 50_000],
    workers: &[1, 2],
    connections: &[1, 8, 1000],
};

const SMOKE: Usual = Usual {
    rounds: 1,
    streams: &[2],
    methods: &[BLAKE3_AES_128],
    held: &[50],
    workers: &[1],
    connections: &[4],
};

impl Settings {
    /// Fills in what was not typed.
    fn from_args(args: Args) -> Result<Self> {
        let or = |given: Vec<u32>, default: &[u32]| {
            if given.is_empty() {
                default.to_vec()
            } else {
                given
            }
        };
        let usual = if args.smoke { SMOKE } else { USUAL };
        let amounts = if args.smoke {
            Amounts::smoke(args.bytes.unwrap_or(8 * MIB))
        } else {
            Amounts::usual(args.bytes.unwrap_or(1024 * MIB))
        };
        ensure!(amounts.bytes >= 64 * 1024, "`--bytes` is at least 64KiB");
        Ok(Self {
            suites: if args.suite.is_empty() {
                Suite::ALL.to_vec()
            } else {
                args.suite
            },
            rounds: args.rounds.unwrap_or(usual.rounds),
            amounts,
            streams: or(args.streams, usual.streams),
            methods: if args.method.is_empty() {
                usual.methods.to_vec()
            } else {
                args.method
            },
            held: or(args.idle_connections, usual.held),
            workers: or(args.workers, usual.workers),
            connections: or(args.connections, usual.connections),
            case: args.case.unwrap_or_default(),
            adit: args.adit,
            rivals: args.rivals,
            only: args.only,
            json: args.json,
            smoke: args.smoke,
            write_docs: args.write_docs,
        })
    }

    /// Whether this implementation takes part.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.contains(&name)
    }
}

fn parse_bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: u64 = match text.get(digits.len()..).unwrap_or_default() {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => MIB,
        "GiB" => 1 << 30,
        other => return Err(format!("no unit `{other}`: KiB, MiB or GiB")),
    };
    let number = digits
        .parse::<u64>()
        .map_err(|_| format!("`{digits}` is no number"))?;
    number
        .checked_mul(unit)
        .ok_or_else(|| "too much".to_owned())
}

fn parse_method(text: &str) -> Result<Method, String> {
    let found = METHODS.iter().find(|method| method.name == text);
    let names = || METHODS.map(|method| method.name).join(", ");
    found
        .copied()
        .ok_or_else(|| format!("the methods are {}", names()))
}

fn parse_name(text: &str) -> Result<&'static str, String> {
    let mut names = KINDS.iter().map(|kind| kind.name);
    let all = || {
        KINDS
            .iter()
            .map(|kind| kind.name)
            .collect::<Vec<_>>()
            .join(", ")
    };
    names
        .find(|name| *name == text)
        .ok_or_else(|| format!("the implementations are {}", all()))
}

#[cfg(test)]
mod tests;
