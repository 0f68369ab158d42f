//! What may be typed, and what it means.

use std::path::PathBuf;

use adit_interop::shadowsocks::{BLAKE3_AES_128, CHACHA20, METHODS, Method};
use anyhow::{Result, ensure};
use clap::Parser;

use crate::peers::KINDS;
use crate::suite::Suite;

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
    /// Write the results of these suites, and a chart for each, into the documents
    #[arg(long)]
    write_docs: bool,
    /// The folder of the documents [default: docs]
    #[arg(long, value_name = "DIR", requires = "write_docs")]
    docs: Option<PathBuf>,
}

/// What was meant.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) suites: Vec<Suite>,
    pub(crate) rounds: u32,
    pub(crate) amounts: Amounts,
    pub(crate) streams: Vec<u32>,
    pub(crate) methods: Vec<Method>,
    pub(crate) adit: Option<PathBuf>,
    /// None: the folder of the workspace.
    pub(crate) rivals: Option<PathBuf>,
    pub(crate) only: Vec<&'static str>,
    pub(crate) json: Option<PathBuf>,
    pub(crate) smoke: bool,
    pub(crate) install_rivals: bool,
    pub(crate) write_docs: bool,
    pub(crate) docs: Option<PathBuf>,
}

/// How much is moved in one measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Amounts {
    /// Bytes of a transfer.
    pub(crate) bytes: u64,
    /// Bytes of the transfer before it, of which every byte is compared.
    pub(crate) warm_up: u64,
    /// Bytes of the transfer under strace.
    pub(crate) traced: u64,
    /// Bytes of a transfer of datagrams.
    pub(crate) datagram_bytes: u64,
    /// Connections opened and closed.
    pub(crate) connections: u32,
    /// Connections held open.
    pub(crate) held: u32,
    /// Milliseconds that one measurement of a cipher takes at least.
    pub(crate) cipher_millis: u64,
}

const MIB: u64 = 1 << 20;

impl Amounts {
    fn usual(bytes: u64) -> Self {
        Self {
            bytes,
            warm_up: (bytes / 16).clamp(MIB, 32 * MIB),
            traced: (bytes / 16).clamp(MIB, 64 * MIB),
            datagram_bytes: (bytes / 4).max(MIB),
            connections: 5000,
            held: 1000,
            cipher_millis: 100,
        }
    }

    fn smoke(bytes: u64) -> Self {
        Self {
            bytes,
            warm_up: MIB,
            traced: MIB,
            datagram_bytes: 2 * MIB,
            connections: 100,
            held: 50,
            cipher_millis: 1,
        }
    }
}

impl Settings {
    /// Fills in what was not typed.
    pub(crate) fn from_args(args: Args) -> Result<Self> {
        let or = |given: Vec<u32>, default: &[u32]| {
            if given.is_empty() {
                default.to_vec()
            } else {
                given
            }
        };
        let (amounts, streams, methods): (_, &[u32], &[Method]) = if args.smoke {
            (
                Amounts::smoke(args.bytes.unwrap_or(8 * MIB)),
                &[2],
                &[BLAKE3_AES_128],
            )
        } else {
            let amounts = Amounts::usual(args.bytes.unwrap_or(1024 * MIB));
            (amounts, &[1, 8], &[BLAKE3_AES_128, CHACHA20])
        };
        ensure!(amounts.bytes >= 64 * 1024, "`--bytes` is at least 64KiB");
        Ok(Self {
            suites: if args.suite.is_empty() {
                Suite::ALL.to_vec()
            } else {
                args.suite
            },
            rounds: args.rounds.unwrap_or(if args.smoke { 1 } else { 5 }),
            amounts,
            streams: or(args.streams, streams),
            methods: if args.method.is_empty() {
                methods.to_vec()
            } else {
                args.method
            },
            adit: args.adit,
            rivals: args.rivals,
            only: args.only,
            json: args.json,
            smoke: args.smoke,
            install_rivals: args.install_rivals,
            write_docs: args.write_docs,
            docs: args.docs,
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
mod tests {
    use super::*;

    fn settings(words: &[&str]) -> Result<Settings> {
        let words = ["bench"].iter().chain(words);
        Settings::from_args(Args::try_parse_from(words)?)
    }

    #[test]
    fn bytes_have_units() {
        assert_eq!(parse_bytes("100"), Ok(100));
        assert_eq!(parse_bytes("3MiB"), Ok(3 << 20));
        assert_eq!(parse_bytes("2GiB"), Ok(2 << 30));
        for bad in ["", "MiB", "1MB", "-1", "99999999999GiB"] {
            assert!(parse_bytes(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn lists_are_separated_by_commas() {
        let settings = settings(&[
            "--suite",
            "ss-tcp,idle",
            "--streams",
            "1,4",
            "--method",
            "aes-256-gcm",
        ])
        .unwrap();
        assert_eq!(settings.suites, [Suite::SsTcp, Suite::Idle]);
        assert_eq!(settings.streams, [1, 4]);
        assert_eq!(settings.methods.len(), 1);
        assert_eq!(settings.rounds, 5);
    }

    #[test]
    fn smoke_is_small_and_what_is_typed_wins() {
        let small = settings(&["--smoke"]).unwrap();
        assert_eq!((small.rounds, small.amounts.bytes), (1, 8 << 20));
        assert_eq!(small.suites, Suite::ALL);
        let typed = settings(&["--smoke", "--rounds", "3", "--bytes", "1MiB"]).unwrap();
        assert_eq!((typed.rounds, typed.amounts.bytes), (3, 1 << 20));
    }

    #[test]
    fn mistakes_are_refused() {
        for bad in [
            &["--suite", "ss-tpc"][..],
            &["--rounds", "0"],
            &["--streams", "0"],
            &["--bytes", "1"],
            &["--method", "rot13"],
            &["--only", "nobody"],
            &["--smoke", "--write-docs"],
        ] {
            assert!(settings(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn only_narrows() {
        let all = settings(&[]).unwrap();
        assert!(all.wants("adit") && all.wants("sing-box"));
        let one = settings(&["--only", "sing-box"]).unwrap();
        assert!(!one.wants("adit") && one.wants("sing-box"));
    }
}
