//! The number of system calls of a process, counted by `perf`, which slows nothing down, in a
//! separate run. They are not counted if the kernel does not allow it.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use adit_interop::{ChildProcess, TempFolder};
use anyhow::{Context, Result};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::Signal;

use crate::locations::output_of;
use crate::process_cost;
use crate::topology::ProcessRig;

/// Time that perf may take to start, or to write its counts.
const PATIENCE: Duration = Duration::from_secs(10);

/// Returns the version of perf; `None` if it cannot count here.
pub(crate) fn perf_version() -> Option<String> {
    let mut perf = Command::new("perf");
    perf.args(["stat", "-x,", "-e", EVENT, "true"]);
    let said = perf.output().ok()?;
    parse_counts(&String::from_utf8_lossy(&said.stderr)).filter(|calls| *calls > 0)?;
    // `perf version 6.1`
    let version = output_of("perf", &["--version"]);
    version.split_whitespace().last().map(str::to_owned)
}

/// perf attached to every process of a rig.
#[derive(Debug)]
pub(crate) struct SyscallTrace {
    tracers: Vec<ChildProcess>,
    folder: TempFolder,
}

impl SyscallTrace {
    /// Starts counting, in all threads and in everything they start.
    pub(crate) fn attach(rig: &ProcessRig) -> Result<Self> {
        let folder = TempFolder::new("calls")?;
        let mut tracers = Vec::new();
        for (index, member) in rig.members().iter().enumerate() {
            let pids = process_cost::process_tree(member.running.pid())?;
            tracers.push(start_perf(&pids, &folder.path().join(index.to_string()))?);
        }
        Ok(Self { tracers, folder })
    }

    /// Detaches, and returns the number of calls of each process since [`Self::attach`].
    pub(crate) fn detach(mut self) -> Result<Vec<u64>> {
        for tracer in &self.tracers {
            tracer.send_signal(Signal::INT)?;
        }
        let mut counts = Vec::new();
        for (index, tracer) in self.tracers.iter_mut().enumerate() {
            tracer.wait(PATIENCE)?;
            let table = fs::read_to_string(self.folder.path().join(index.to_string()))?;
            counts.push(parse_counts(&table).context("perf wrote no system call counts")?);
        }
        Ok(counts)
    }
}

/// The event of every system call.
const EVENT: &str = "raw_syscalls:sys_enter";

fn start_perf(pids: &[u32], out: &Path) -> Result<ChildProcess> {
    let fifo = out.with_extension("control");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
        .context("cannot create a pipe for perf")?;
    let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
    let mut command = Command::new("perf");
    command
        .args(["stat", "-x,", "-e", EVENT, "-D", "-1", "-p"])
        .args([&pids.join(","), "--control"])
        .arg(format!("fifo:{}", fifo.display()))
        .arg("-o")
        .arg(out);
    let mut perf = ChildProcess::spawn(command)?;
    let why = "perf cannot attach";
    perf.wait_lines("Events disabled", 1, PATIENCE)
        .context(why)?;
    // perf has opened the other end before it prints its line.
    File::options()
        .write(true)
        .open(&fifo)?
        .write_all(b"enable\n")?;
    perf.wait_lines("Events enabled", 1, PATIENCE)
        .context(why)?;
    Ok(perf)
}

/// Returns the sum of the counts of `perf stat -x,`; `None` if it could not count.
fn parse_counts(text: &str) -> Option<u64> {
    let rows = text.lines().filter(|line| line.contains(EVENT));
    let counts = rows.map(|row| match row.split(',').next() {
        // Printed for a process that has not run meanwhile.
        Some("<not counted>") => Some(0),
        field => field?.parse::<u64>().ok(),
    });
    let counts: Vec<u64> = counts.collect::<Option<_>>()?;
    (!counts.is_empty()).then(|| counts.iter().sum())
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
}
