//! Processes that only count, one for each core: what a shared machine's other tenants are.

use std::io::{self, BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::thread;

use anyhow::{Context, Result};

/// Counts until the input ends.
pub(crate) fn count_until_closed() -> Result<()> {
    thread::spawn(|| {
        let mut count = 0u64;
        loop {
            count = std::hint::black_box(count.wrapping_add(1));
        }
    });
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// Such processes; dropping them ends them.
#[derive(Debug)]
pub(crate) struct BusyProcesses {
    _each: Vec<OwnProcess>,
}

impl BusyProcesses {
    /// Starts one for each core.
    pub(crate) fn start() -> Result<Self> {
        let cores = thread::available_parallelism()?.get();
        let each = (0..cores).map(|_| OwnProcess::start(&["spin"]));
        Ok(Self {
            _each: each.collect::<Result<_>>()?,
        })
    }
}

/// This program once more, to do something until its input ends; dropping it ends that.
#[derive(Debug)]
pub(crate) struct OwnProcess(Child);

impl OwnProcess {
    pub(crate) fn start(args: &[&str]) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(args).stdin(Stdio::piped());
        Ok(Self(command.stdout(Stdio::piped()).spawn()?))
    }

    /// The next line that it says.
    pub(crate) fn read_line(&mut self) -> Result<String> {
        let mut line = String::new();
        let out = self.0.stdout.as_mut().context("no output")?;
        BufReader::new(out).read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }
}

impl Drop for OwnProcess {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        if self.0.wait().is_err() {
            let _ = self.0.kill();
        }
    }
}
