//! How many system calls a process makes, counted in a run of its own.
//!
//! `perf` counts without slowing anything down. Where the kernel does not let it, `strace` does: a
//! traced process is many times slower, so its reads find more data, and the counts are an order
//! of magnitude. A time is never taken from such a run.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use adit_interop::{Folder, Process};
use anyhow::{Context, Result};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::Signal;

use crate::account;
use crate::args::Amounts;
use crate::places;
use crate::topology::Rig;

/// How long a counter may take to begin, or to write what it has counted.
const PATIENCE: Duration = Duration::from_secs(10);

/// Who counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counter {
    /// The kernel, asked by `perf stat`.
    Perf,
    Strace,
}

impl Counter {
    /// The best one that works here.
    pub(crate) fn here() -> Option<Self> {
        let installed = |name| places::find_program(name, Path::new("")).is_some();
        let works = || {
            let mut perf = Command::new("perf");
            perf.args(["stat", "-x,", "-e", EVENT, "true"]);
            let said = perf.output().ok()?;
            parse_counts(&String::from_utf8_lossy(&said.stderr))
        };
        if installed("perf") && works().is_some_and(|calls| calls > 0) {
            Some(Self::Perf)
        } else {
            installed("strace").then_some(Self::Strace)
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Perf => "perf",
            Self::Strace => "strace",
        }
    }

    /// Whether calls are counted in this round: in each if it costs no time.
    pub(crate) const fn counts_in(self, round: u32) -> bool {
        matches!(self, Self::Perf) || round == 1
    }

    /// Bytes of a transfer whose calls are counted.
    pub(crate) const fn bytes(self, amounts: &Amounts) -> u64 {
        match self {
            Self::Perf => amounts.bytes,
            Self::Strace => amounts.traced,
        }
    }

    /// Bytes in datagrams of such a transfer.
    pub(crate) const fn datagram_bytes(self, amounts: &Amounts) -> u64 {
        match self {
            Self::Perf => amounts.datagram_bytes,
            // A traced process takes some 50 µs for each datagram.
            Self::Strace => amounts.traced / 32,
        }
    }
}

/// A counter on every process of a rig.
#[derive(Debug)]
pub(crate) struct Trace {
    counter: Counter,
    tracers: Vec<Process>,
    folder: Folder,
}

impl Trace {
    /// Counts from now on, in all threads and in whatever they start.
    pub(crate) fn attach(counter: Counter, rig: &Rig) -> Result<Self> {
        let folder = Folder::new("calls")?;
        let mut tracers = Vec::new();
        for (index, member) in rig.members().iter().enumerate() {
            let pids = account::pids(member.running.pid())?;
            let out = folder.path().join(index.to_string());
            tracers.push(match counter {
                Counter::Perf => perf(&pids, &out)?,
                Counter::Strace => strace(&pids, &out)?,
            });
        }
        Ok(Self {
            counter,
            tracers,
            folder,
        })
    }

    /// Detaches; the calls of each process since.
    pub(crate) fn finish(mut self) -> Result<Vec<u64>> {
        for tracer in &self.tracers {
            tracer.signal(Signal::INT)?;
        }
        let mut counts = Vec::new();
        for (index, tracer) in self.tracers.iter_mut().enumerate() {
            tracer.wait(PATIENCE)?;
            let table = fs::read_to_string(self.folder.path().join(index.to_string()))?;
            let count = match self.counter {
                Counter::Perf => parse_counts(&table),
                Counter::Strace => parse_table(&table),
            };
            counts.push(count.with_context(|| format!("{} wrote no table", self.counter.name()))?);
        }
        Ok(counts)
    }
}

/// The event of every system call.
const EVENT: &str = "raw_syscalls:sys_enter";

fn perf(pids: &[u32], out: &Path) -> Result<Process> {
    let fifo = out.with_extension("control");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).context("a pipe for perf")?;
    let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
    let mut command = Command::new("perf");
    command
        .args(["stat", "-x,", "-e", EVENT, "-D", "-1", "-p"])
        .args([&pids.join(","), "--control"])
        .arg(format!("fifo:{}", fifo.display()))
        .arg("-o")
        .arg(out);
    let mut perf = Process::spawn(command)?;
    let why = "perf cannot attach";
    perf.wait_lines("Events disabled", 1, PATIENCE)
        .context(why)?;
    // It has the other end open since it has said so.
    File::options()
        .write(true)
        .open(&fifo)?
        .write_all(b"enable\n")?;
    perf.wait_lines("Events enabled", 1, PATIENCE)
        .context(why)?;
    Ok(perf)
}

fn strace(pids: &[u32], out: &Path) -> Result<Process> {
    let mut command = Command::new("strace");
    command.args(["-c", "-f", "-o"]).arg(out);
    command.args(
        pids.iter()
            .flat_map(|pid| ["-p".to_owned(), pid.to_string()]),
    );
    let mut strace = Process::spawn(command)?;
    strace
        .wait_lines("attached", pids.len(), PATIENCE)
        .context("strace cannot attach")?;
    Ok(strace)
}

/// The sum of what `perf stat -x,` has counted; None if it could not.
fn parse_counts(text: &str) -> Option<u64> {
    let rows = text.lines().filter(|line| line.contains(EVENT));
    let counts = rows.map(|row| match row.split(',').next() {
        // Of a process that has not run meanwhile.
        Some("<not counted>") => Some(0),
        field => field?.parse::<u64>().ok(),
    });
    let counts: Vec<u64> = counts.collect::<Option<_>>()?;
    (!counts.is_empty()).then(|| counts.iter().sum())
}

/// The sum of the column `calls`; None if there is no table.
fn parse_table(table: &str) -> Option<u64> {
    let rows = table.lines().skip_while(|line| !line.starts_with("------"));
    // % time, seconds, usecs/call, calls, errors (often blank), syscall. The row of totals has
    // other columns in older versions, so it is not read.
    let calls = rows.filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let named = fields.last().is_some_and(|name| *name != "total");
        if named {
            fields.get(3)?.parse::<u64>().ok()
        } else {
            None
        }
    });
    table.contains("------").then(|| calls.sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_perf_are_summed_or_none() {
        let row = |count| format!("{count},,raw_syscalls:sys_enter,1903,100.00,,\n");
        let two = format!("# started on Sun\n\n{}{}", row("17"), row("<not counted>"));
        assert_eq!(parse_counts(&two), Some(17));
        for none in ["", "Error: no permission\n", &row("<not supported>")] {
            assert_eq!(parse_counts(none), None, "{none}");
        }
    }

    const TABLE: &str = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 62.50    0.000250           2       125         5 recvfrom
 37.50    0.000150           1       100           sendto
  0.00    0.000000           0         3         3 epoll_wait
------ ----------- ----------- --------- --------- ----------------
100.00    0.000400           1       228         8 total
";

    #[test]
    fn calls_are_summed_without_the_total() {
        assert_eq!(parse_table(TABLE), Some(228));
    }

    #[test]
    fn an_older_total_changes_nothing() {
        let older = TABLE.replace("           1       228", "                   228");
        assert_eq!(parse_table(&older), Some(228));
    }

    #[test]
    fn no_table_is_none() {
        assert_eq!(
            parse_table("strace: attach: ptrace: Operation not permitted\n"),
            None
        );
        assert_eq!(parse_table(""), None);
    }
}
