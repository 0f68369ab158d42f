//! How many system calls a process makes, counted by `strace` in a run of its own.
//!
//! A traced process is many times slower, so its reads find more data: treat the counts as an
//! order of magnitude, and never take a time from such a run.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use adit_interop::{Folder, Process};
use anyhow::{Context, Result};
use rustix::process::Signal;

use crate::account;
use crate::places;
use crate::topology::Rig;

/// How long strace may take to attach, or to write its table.
const PATIENCE: Duration = Duration::from_secs(10);

/// Whether there is an strace here.
pub(crate) fn available() -> bool {
    places::find_program("strace", Path::new("")).is_some()
}

/// A strace on every process of a rig.
#[derive(Debug)]
pub(crate) struct Trace {
    tracers: Vec<Process>,
    folder: Folder,
}

impl Trace {
    /// Attaches to all threads and to whatever they start.
    pub(crate) fn attach(rig: &Rig) -> Result<Self> {
        let folder = Folder::new("strace")?;
        let mut tracers = Vec::new();
        for (index, member) in rig.members().iter().enumerate() {
            let pids = account::pids(member.running.pid())?;
            let mut command = Command::new("strace");
            command
                .args(["-c", "-f", "-o"])
                .arg(folder.path().join(index.to_string()));
            command.args(
                pids.iter()
                    .flat_map(|pid| ["-p".to_owned(), pid.to_string()]),
            );
            let mut tracer = Process::spawn(command)?;
            tracer
                .wait_lines("attached", pids.len(), PATIENCE)
                .context("strace cannot attach")?;
            tracers.push(tracer);
        }
        Ok(Self { tracers, folder })
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
            counts.push(parse_table(&table).context("strace wrote no table")?);
        }
        Ok(counts)
    }
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
