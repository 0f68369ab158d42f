//! The command line and its meaning.

use std::net::SocketAddr;
use std::path::PathBuf;

use adit_crypto::packet::PacketKind;
use adit_interop::shadowsocks::{BLAKE3_AES_128, CHACHA20, METHODS, MethodKey};
use clap::builder::PossibleValuesParser;
use clap::{Parser, Subcommand, ValueEnum};

use crate::bare_records::RecordEnds;
use crate::connection_holder::HoldArgs;
use crate::kcp_session::SpeedArgs;
use crate::peers::{BEFORE, KINDS};
use crate::suite::Suite;

/// Measures adit against all installed rivals: alternating rounds on loopback, with the CPU seconds
/// and system calls per GiB of every process, not only Gbit/s.
#[derive(Debug, Parser)]
#[command(
    name = "cargo xtask bench",
    bin_name = "cargo xtask bench",
    disable_help_subcommand = true
)]
pub(crate) struct BenchArgs {
    #[command(flatten)]
    pub(crate) settings: BenchSettings,
    /// Count the instructions of hot loops instead of time, and compare them with the committed
    /// counts
    #[arg(long, conflicts_with_all = ["suite", "write_docs"])]
    pub(crate) instructions: bool,
    /// Write the counts instead of comparing them
    #[arg(long, requires = "instructions")]
    pub(crate) bless: bool,
    /// Draw the charts of the documents again, from the figures of their pages, instead of measuring
    #[arg(long, conflicts_with_all = ["suite", "write_docs", "instructions"])]
    pub(crate) plots: bool,
    /// Run a server and a client and draw their output, for the README, instead of measuring
    #[arg(long, conflicts_with_all = ["suite", "write_docs", "instructions", "plots"])]
    pub(crate) terminal: bool,
    #[command(subcommand)]
    pub(crate) own: Option<InternalCommand>,
}

/// Commands of this program's own processes, which run until their input ends or they are ended.
#[derive(Debug, Subcommand)]
pub(crate) enum InternalCommand {
    /// Run a hot loop this many times, for the count
    #[command(hide = true)]
    Hot { name: String, times: u32 },
    /// Send back what arrives over KCP
    #[command(hide = true)]
    KcpServe { cipher: PacketKind },
    /// Hold this many KCP sessions with a server
    #[command(hide = true)]
    KcpCrowd { server: SocketAddr, sessions: u32 },
    /// Measure a KCP session between two ends of this process
    #[command(hide = true)]
    KcpSpeed(SpeedArgs),
    /// Relay with `splice(2)` alone: to one address, or as a SOCKS5 client requests
    #[command(hide = true)]
    Splice {
        at: SocketAddr,
        to: Option<SocketAddr>,
    },
    /// Hold connections through a SOCKS5 proxy
    #[command(hide = true)]
    Hold(HoldArgs),
    /// Be an end of a tunnel of records without a protocol
    #[command(hide = true)]
    Records(RecordEnds),
    /// Do nothing but count
    #[command(hide = true)]
    Spin,
}

/// The measurements to take.
#[derive(Debug, clap::Args)]
pub(crate) struct BenchSettings {
    /// Suites to run [default: all]
    #[arg(long, value_delimiter = ',', value_name = "SUITE,…")]
    suite: Vec<Suite>,
    /// Rounds; in each, every implementation is measured once, in turn [default: 5, with --smoke 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,
    /// Bytes per transfer, all streams together; a quarter of it in datagrams [default: 1GiB]
    #[arg(long, value_name = "N[KiB|MiB|GiB]", value_parser = parse_bytes)]
    bytes: Option<u64>,
    /// Shadowsocks methods [default: 2022-blake3-aes-128-gcm,chacha20-ietf-poly1305]
    #[arg(long, value_delimiter = ',', value_name = "METHOD,…",
        value_parser = PossibleValuesParser::new(METHODS.map(|method| method.name)))]
    method: Vec<String>,
    /// Path of the adit to measure [default: the release build of this workspace]
    #[arg(long, value_name = "PATH")]
    pub(crate) adit: Option<PathBuf>,
    /// Measure this older adit too, in turn, and print what has changed; not for the documents
    #[arg(long, value_name = "PATH", conflicts_with = "write_docs")]
    pub(crate) before: Option<PathBuf>,
    /// Folder of the rivals' binaries, searched before the PATH [default: target/peers]
    #[arg(long, value_name = "DIR")]
    pub(crate) rivals: Option<PathBuf>,
    /// Measure only these implementations
    #[arg(long, value_delimiter = ',', value_name = "NAME,…",
        value_parser = PossibleValuesParser::new(KINDS.iter().map(|kind| kind.name).filter(|name| *name != BEFORE)))]
    only: Vec<String>,
    /// Write every sample as JSON lines; figures have keys such as `cpu_s_per_gib_client`
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Use tiny amounts: shows that the suites work, but the figures mean nothing
    #[arg(long, conflicts_with = "write_docs")]
    pub(crate) smoke: bool,
    /// Write the results of these suites, with their charts, into the documents
    #[arg(long)]
    pub(crate) write_docs: bool,
}

/// The amounts of data and time of one measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LoadAmounts {
    /// Bytes of a transfer.
    pub(crate) bytes: u64,
    /// Bytes of the preceding warm-up transfer, every one of which is compared.
    pub(crate) warm_up: u64,
    /// Bytes of a datagram transfer.
    pub(crate) datagram_bytes: u64,
    /// Number of connections that are opened and closed.
    pub(crate) connections: u32,
    /// Duration of the echoes, in milliseconds.
    pub(crate) latency_millis: u64,
    /// Minimum duration of one measurement of a cipher, in milliseconds.
    pub(crate) cipher_millis: u64,
}

const MIB: u64 = 1 << 20;

/// Number of bytes that even the slowest implementation transfers.
const MIN_STREAM_BYTES: u64 = 128 << 10;

impl LoadAmounts {
    fn default_for(bytes: u64) -> Self {
        Self {
            bytes,
            warm_up: (bytes / 16).clamp(MIB, 32 * MIB),
            datagram_bytes: (bytes / 4).max(MIB),
            connections: 5000,
            latency_millis: 3000,
            cipher_millis: 100,
        }
    }

    /// Returns the amounts with fewer bytes per stream, for a slow implementation.
    pub(crate) fn divided_by(self, by: u64) -> Self {
        let share = |bytes: u64| (bytes / by).max(bytes.min(MIN_STREAM_BYTES));
        Self {
            bytes: share(self.bytes),
            warm_up: share(self.warm_up),
            ..self
        }
    }

    fn smoke_for(bytes: u64) -> Self {
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

/// The number of cases.
#[derive(Debug)]
pub(crate) struct SuiteExtent {
    rounds: u32,
    methods: &'static [MethodKey],
    /// Starts of a process, and pairs of transfers with and without something for each.
    pub(crate) starts: u32,
    pub(crate) pairs: u32,
    /// Numbers of parallel streams.
    pub(crate) streams: &'static [u32],
    /// Numbers of connections that are held open.
    pub(crate) held: &'static [u32],
    /// Numbers of worker threads of each process.
    pub(crate) workers: &'static [Option<u32>],
    /// Numbers of concurrent connections for the cases with these worker threads.
    pub(crate) connections: &'static [u32],
}

const USUAL: SuiteExtent = SuiteExtent {
    rounds: 5,
    methods: &[BLAKE3_AES_128, CHACHA20],
    starts: 5,
    pairs: 8,
    streams: &[1, 8],
    held: &[1000, 50_000],
    workers: &[Some(1), Some(2)],
    connections: &[1, 8, 1000],
};

const SMOKE: SuiteExtent = SuiteExtent {
    rounds: 1,
    methods: &[BLAKE3_AES_128],
    starts: 2,
    pairs: 1,
    streams: &[2],
    held: &[50],
    workers: &[Some(1)],
    connections: &[4],
};

impl BenchSettings {
    pub(crate) const fn extent(&self) -> &'static SuiteExtent {
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

    pub(crate) fn amounts(&self) -> LoadAmounts {
        if self.smoke {
            LoadAmounts::smoke_for(self.bytes.unwrap_or(8 * MIB))
        } else {
            LoadAmounts::default_for(self.bytes.unwrap_or(1024 * MIB))
        }
    }

    pub(crate) fn methods(&self) -> Vec<MethodKey> {
        if self.method.is_empty() {
            return self.extent().methods.to_vec();
        }
        let known = |name: &String| METHODS.into_iter().find(|method| method.name == name);
        self.method.iter().filter_map(known).collect()
    }

    /// Returns true if this implementation is selected.
    pub(crate) fn includes(&self, name: &str) -> bool {
        if name == BEFORE {
            return self.before.is_some();
        }
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
        other => return Err(format!("unknown unit `{other}`; use KiB, MiB or GiB")),
    };
    let number = digits.parse::<u64>();
    let number = number.map_err(|_| format!("`{digits}` is not a number"))?;
    let bytes = number.checked_mul(unit).ok_or("the number is too large")?;
    if bytes < 64 << 10 {
        return Err("the minimum is 64KiB".to_owned());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
