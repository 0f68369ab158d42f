//! What may be typed, and what it means.

use std::net::SocketAddr;
use std::path::PathBuf;

use adit_crypto::packet::PacketKind;
use adit_interop::shadowsocks::{BLAKE3_AES_128, CHACHA20, METHODS, Method};
use clap::builder::PossibleValuesParser;
use clap::{Parser, Subcommand, ValueEnum};

use crate::bare_records::Ends;
use crate::hold::Hold;
use crate::kcp_ends::Speed;
use crate::peers::KINDS;
use crate::suite::Suite;

/// Measures adit beside whatever rivals are installed: alternating rounds on loopback, CPU
/// seconds and system calls per GiB of every process, not only Gbit/s.
#[derive(Debug, Parser)]
#[command(
    name = "cargo xtask bench",
    bin_name = "cargo xtask bench",
    disable_help_subcommand = true
)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) settings: Settings,
    /// Instead of time, count the instructions of hot loops, and compare them with those committed
    #[arg(long, conflicts_with_all = ["suite", "write_docs"])]
    pub(crate) instructions: bool,
    /// Write the counts down instead of comparing them
    #[arg(long, requires = "instructions")]
    pub(crate) bless: bool,
    /// Instead of measuring, draw the charts of the documents again from the figures of their pages
    #[arg(long, conflicts_with_all = ["suite", "write_docs", "instructions"])]
    pub(crate) plots: bool,
    /// Instead of measuring, run a server and a client and draw what they print, for the README
    #[arg(long, conflicts_with_all = ["suite", "write_docs", "instructions", "plots"])]
    pub(crate) terminal: bool,
    #[command(subcommand)]
    pub(crate) own: Option<Own>,
}

/// What this program does in processes of its own, until their input ends or they are ended.
#[derive(Debug, Subcommand)]
pub(crate) enum Own {
    /// Run a hot loop so many times, for the counting
    #[command(hide = true)]
    Hot { name: String, times: u32 },
    /// Send back what comes over KCP
    #[command(hide = true)]
    KcpServe { cipher: PacketKind },
    /// Hold so many sessions of KCP with a server
    #[command(hide = true)]
    KcpCrowd { server: SocketAddr, sessions: u32 },
    /// Measure a session of KCP with itself
    #[command(hide = true)]
    KcpSpeed(Speed),
    /// Relay with `splice(2)` alone: to one end, or as a client of SOCKS5 says
    #[command(hide = true)]
    Splice {
        at: SocketAddr,
        to: Option<SocketAddr>,
    },
    /// Hold connections through a SOCKS5 proxy
    #[command(hide = true)]
    Hold(Hold),
    /// Be an end of records without a protocol
    #[command(hide = true)]
    Records(Ends),
    /// Only count
    #[command(hide = true)]
    Spin,
}

/// What is measured.
#[derive(Debug, clap::Args)]
pub(crate) struct Settings {
    /// Suites to run [default: all]
    #[arg(long, value_delimiter = ',', value_name = "SUITE,…")]
    suite: Vec<Suite>,
    /// Rounds; in each, every program is measured once, in turn [default: 5, with --smoke 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,
    /// Bytes per transfer, all streams together; a quarter of it in datagrams [default: 1GiB]
    #[arg(long, value_name = "N[KiB|MiB|GiB]", value_parser = parse_bytes)]
    bytes: Option<u64>,
    /// Shadowsocks methods [default: 2022-blake3-aes-128-gcm,chacha20-ietf-poly1305]
    #[arg(long, value_delimiter = ',', value_name = "METHOD,…",
        value_parser = PossibleValuesParser::new(METHODS.map(|method| method.name)))]
    method: Vec<String>,
    /// The adit to measure [default: the release build of this workspace]
    #[arg(long, value_name = "PATH")]
    pub(crate) adit: Option<PathBuf>,
    /// Where the rivals' binaries are, before the PATH [default: target/peers]
    #[arg(long, value_name = "DIR")]
    pub(crate) rivals: Option<PathBuf>,
    /// Measure only these implementations
    #[arg(long, value_delimiter = ',', value_name = "NAME,…",
        value_parser = PossibleValuesParser::new(KINDS.iter().map(|kind| kind.name)))]
    only: Vec<String>,
    /// Write every sample as JSON lines
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Tiny amounts: shows that the suites work, the figures mean nothing
    #[arg(long, conflicts_with = "write_docs")]
    pub(crate) smoke: bool,
    /// Write the results of these suites, and their charts, into the documents
    #[arg(long)]
    pub(crate) write_docs: bool,
}

/// How much is moved in one measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Amounts {
    /// Bytes of a transfer.
    pub(crate) bytes: u64,
    /// Bytes of the transfer before it, of which every byte is compared.
    pub(crate) warm_up: u64,
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
            ..self
        }
    }

    fn smoke(bytes: u64) -> Self {
        Self {
            bytes,
            warm_up: MIB,
            datagram_bytes: 2 * MIB,
            connections: 100,
            latency_millis: 20,
            cipher_millis: 1,
        }
    }
}

/// How many cases there are.
#[derive(Debug)]
pub(crate) struct Extent {
    rounds: u32,
    methods: &'static [Method],
    /// Numbers of parallel streams.
    pub(crate) streams: &'static [u32],
    /// Numbers of connections that are held open.
    pub(crate) held: &'static [u32],
    /// Numbers of worker threads of each process.
    pub(crate) workers: &'static [Option<u32>],
    /// Numbers of connections at the same time, for those.
    pub(crate) connections: &'static [u32],
}

const USUAL: Extent = Extent {
    rounds: 5,
    methods: &[BLAKE3_AES_128, CHACHA20],
    streams: &[1, 8],
    held: &[1000, 50_000],
    workers: &[Some(1), Some(2)],
    connections: &[1, 8, 1000],
};

const SMOKE: Extent = Extent {
    rounds: 1,
    methods: &[BLAKE3_AES_128],
    streams: &[2],
    held: &[50],
    workers: &[Some(1)],
    connections: &[4],
};

impl Settings {
    pub(crate) const fn extent(&self) -> &'static Extent {
        if self.smoke { &SMOKE } else { &USUAL }
    }

    pub(crate) fn suites(&self) -> &[Suite] {
        if self.suite.is_empty() {
            Suite::value_variants()
        } else {
            &self.suite
        }
    }

    pub(crate) fn rounds(&self) -> u32 {
        self.rounds.unwrap_or_else(|| self.extent().rounds)
    }

    pub(crate) fn amounts(&self) -> Amounts {
        if self.smoke {
            Amounts::smoke(self.bytes.unwrap_or(8 * MIB))
        } else {
            Amounts::usual(self.bytes.unwrap_or(1024 * MIB))
        }
    }

    pub(crate) fn methods(&self) -> Vec<Method> {
        if self.method.is_empty() {
            return self.extent().methods.to_vec();
        }
        let known = |name: &String| METHODS.into_iter().find(|method| method.name == name);
        self.method.iter().filter_map(known).collect()
    }

    /// Whether this implementation takes part.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|one| one == name)
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
    let number = digits.parse::<u64>();
    let number = number.map_err(|_| format!("`{digits}` is no number"))?;
    let bytes = number.checked_mul(unit).ok_or("too much")?;
    if bytes < 64 << 10 {
        return Err("at least 64KiB".to_owned());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
