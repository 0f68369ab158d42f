//! Suite `cpu`: the output of `adit bench` with the instructions of each class of processors.

use std::process::Command;

use adit_crypto::{CpuLevel, cpu_level};

use super::Suite;
use super::memory_steps;
use super::rounds::BenchRun;
use crate::figures::{Metric, NS_PER_OP};

/// A table: the rows of an `adit bench` command whose kernels adit selects itself.
struct ClassTable {
    title: &'static str,
    command: &'static str,
    rows: &'static [&'static str],
}

const TABLES: [ClassTable; 3] = [
    ClassTable {
        title: "KCP, a datagram of 1,400 B",
        command: "kcp",
        rows: &[
            "seal-aes",
            "open-aes",
            "seal-aes-128",
            "open-aes-128",
            "seal-salsa20",
            "open-salsa20",
            "seal-none",
            "crc32",
            "highwayhash",
        ],
    },
    ClassTable {
        title: "forward error correction, for each datagram of 1,400 B",
        command: "fec",
        rows: &[
            "code-encode-vandermonde-10+3",
            "code-decode-3-vandermonde-10+3",
            "stage-encode-vandermonde-10+3",
            "code-encode-vandermonde-20+10",
            "stage-encode-vandermonde-20+10",
        ],
    },
    ClassTable {
        title: "Shadowsocks, 1,400 B",
        command: "ss",
        rows: &[
            "cipher-chacha20-poly1305",
            "cipher-chacha8-poly1305",
            "packet-seal-2022-blake3-chacha20-poly1305",
            "packet-open-2022-blake3-chacha20-poly1305",
            "packet-seal-2022-blake3-chacha8-poly1305",
            "packet-open-2022-blake3-chacha8-poly1305",
        ],
    },
];

/// Bytes per operation of these rows.
const BYTES: u64 = 1400;

/// Measures, in every round, the classes that this processor supports, in turn.
pub(super) fn run_suite(bench: &mut BenchRun) {
    let Some(adit) = memory_steps::adit_program(bench) else {
        return;
    };
    let here = cpu_level();
    let millis = bench.settings.amounts().cipher_millis.to_string();
    for round in 1..=bench.settings.rounds() {
        for chapter in &TABLES {
            for level in CpuLevel::ALL.into_iter().filter(|level| *level <= here) {
                let mut command = Command::new(&adit);
                command.args(["bench", chapter.command, "--json", "--millis", &millis]);
                command.env("ADIT_CPU", level.name());
                match memory_steps::run_for_steps(command) {
                    Ok(steps) => {
                        for row in chapter.rows {
                            record_row(bench, chapter.title, row, level, round, &steps);
                        }
                    }
                    Err(why) => {
                        bench.journal.record_outcome(
                            Suite::Cpu,
                            chapter.title,
                            "adit",
                            round,
                            Err(why),
                        );
                    }
                }
            }
        }
    }
}

fn record_row(
    bench: &mut BenchRun,
    title: &str,
    row: &str,
    level: CpuLevel,
    round: u32,
    steps: &[memory_steps::MemoryStep],
) {
    let metric = Metric {
        quantity: NS_PER_OP,
        part: level.name(),
    };
    let step = steps
        .iter()
        .find(|step| (&*step.name, step.bytes) == (row, BYTES));
    let outcome = step.map(|step| vec![(metric, step.ns)]);
    let outcome = outcome.ok_or_else(|| anyhow::anyhow!("`adit bench` printed no row {row}"));
    bench
        .journal
        .record_outcome(Suite::Cpu, title, row, round, outcome);
}
