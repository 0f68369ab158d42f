//! The steps of packets and codes in memory, for the suites `kcp` and `fec`: the output of `adit
//! bench` beside that of the peer on kcp-go, row by row.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use adit_interop::external_tools;
use anyhow::{Context, Result, ensure};

use super::Suite;
use super::kcp::{implementations, limit_figure};
use super::rounds::BenchRun;
use crate::figures::{Figures, Metric, NS_PER_OP};

/// A table: its suite, its title, and the prefixes of its rows.
type StepTable = (Suite, &'static str, &'static [&'static str]);

const TABLES: [StepTable; 5] = [
    (
        Suite::Kcp,
        "the windows of a session",
        &["flush", "input", "send"],
    ),
    (
        Suite::Kcp,
        "sealing and opening a datagram of 1,400 B",
        &["seal", "open"],
    ),
    (
        Suite::Kcp,
        "checks of 1,400 B, and a nonce",
        &["crc32", "highway", "nonce"],
    ),
    (
        Suite::Fec,
        "the codes, for each datagram of 1,400 B",
        &["code"],
    ),
    (
        Suite::Fec,
        "the stages around them, for each datagram of 1,400 B",
        &["stage"],
    ),
];

fn table_titles(suite: Suite, name: &str) -> impl Iterator<Item = &'static str> {
    let fits = move |(of, _, starts): &StepTable| {
        *of == suite && starts.iter().any(|start| name.starts_with(start))
    };
    TABLES.into_iter().filter(fits).map(|(_, title, _)| title)
}

/// Maximum cost of adit, in nanoseconds.
const LIMITS: [(&str, f64); 4] = [
    ("flush-1023-in-flight", 500.0),
    ("code-encode-vandermonde-10+3", 120.0),
    ("stage-encode-vandermonde-10+3", 120.0),
    ("code-decode-3-vandermonde-10+3", 300.0),
];

/// A row of one of the programs.
#[derive(Debug, PartialEq)]
pub(super) struct MemoryStep {
    pub(super) name: String,
    /// Number of bytes that the step processes.
    pub(super) bytes: u64,
    pub(super) ns: f64,
}

/// Returns the path of the measured adit.
pub(super) fn adit_program(bench: &BenchRun) -> Option<PathBuf> {
    let adit = bench.peers.iter().find(|peer| peer.name() == "adit");
    adit.and_then(|peer| peer.program().map(Path::to_path_buf))
}

/// Runs both programs in every round.
pub(super) fn run_suite(bench: &mut BenchRun, suite: Suite) {
    let adit = adit_program(bench);
    for round in 1..=bench.settings.rounds() {
        for who in implementations(bench, round) {
            let millis = bench.settings.amounts().cipher_millis.to_string();
            let command = match (&adit, who) {
                (Some(adit), "adit") => {
                    let mut command = Command::new(adit);
                    let suite = suite.to_string();
                    command.args(["bench", &suite, "--json", "--millis", &millis]);
                    command
                }
                (None, "adit") => continue,
                _ => {
                    let mut command = Command::new(external_tools::peer_path("kcppeer"));
                    let role = if suite == Suite::Fec { "fec" } else { "steps" };
                    command.args([role, "-millis", &millis]);
                    command
                }
            };
            match run_for_steps(command).context(external_tools::missing_program_message("kcppeer"))
            {
                Ok(steps) => record_steps(bench, suite, who, round, &steps),
                Err(why) => {
                    bench
                        .journal
                        .record_outcome(suite, "steps in memory", who, round, Err(why));
                }
            }
        }
    }
}

/// Returns the rows that a command prints, within two minutes.
pub(super) fn run_for_steps(command: Command) -> Result<Vec<MemoryStep>> {
    let ended = external_tools::run_to_end(command, Duration::from_secs(120))?;
    parse_steps(&ended.expect_success()?)
}

/// Parses rows of JSON: those of adit are the results of documents, those of peers are alone.
pub(super) fn parse_steps(told: &str) -> Result<Vec<MemoryStep>> {
    ensure!(!told.is_empty(), "the command printed no rows");
    let step = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).ok()?;
        let row = line.get("result").unwrap_or(&line);
        let ns = row.get("nsPerOp").or_else(|| row.get("ns_per_op"))?;
        Some(MemoryStep {
            name: row.get("name")?.as_str()?.to_owned(),
            bytes: row.get("bytes")?.as_u64()?,
            ns: ns.as_f64()?,
        })
    };
    told.lines()
        .map(|line| step(line).with_context(|| format!("malformed row: {line}")))
        .collect()
}

fn record_steps(
    bench: &mut BenchRun,
    suite: Suite,
    who: &'static str,
    round: u32,
    steps: &[MemoryStep],
) {
    for step in steps {
        for title in table_titles(suite, &step.name) {
            let figures = Ok(step_figures(who, step));
            bench
                .journal
                .record_outcome(suite, title, &step.name, round, figures);
        }
    }
}

fn step_figures(who: &'static str, step: &MemoryStep) -> Figures {
    let metric = Metric {
        quantity: NS_PER_OP,
        part: who,
    };
    let mut figures = vec![(metric, step.ns)];
    let limit = LIMITS.iter().find(|(name, _)| *name == step.name);
    if let (Some((_, limit)), "adit") = (limit, who) {
        figures.push(limit_figure(NS_PER_OP, *limit));
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_and_find_their_chapter() {
        let rows = r#"{"command":"bench kcp","event":"row","result":{"name":"seal-aes","bytes":1400,"nsPerOp":12.5}}
{"name":"flush-1023-in-flight","bytes":0,"ns_per_op":16}"#;
        let steps = parse_steps(rows).unwrap();
        assert_eq!(steps[0].ns, 12.5);
        assert_eq!(steps[1].ns, 16.0);
        for (name, title) in [
            ("seal-one-aes", "sealing and opening a datagram of 1,400 B"),
            ("send-and-flush", "the windows of a session"),
            ("nonce", "checks of 1,400 B, and a nonce"),
        ] {
            let titles: Vec<_> = table_titles(Suite::Kcp, name).collect();
            assert_eq!(titles, [title]);
        }
        assert_eq!(step_figures("adit", &steps[1]).len(), 2);
        assert_eq!(step_figures("kcp-go", &steps[1]).len(), 1);
        assert!(
            parse_steps("").is_err()
                && parse_steps("adit 1").is_err()
                && parse_steps("{}").is_err()
        );
    }
}
