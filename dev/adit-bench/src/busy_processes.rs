//! Processes that do nothing but count, one per core: they model other tenants of a shared machine.

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

/// Busy processes; dropping them ends them.
#[derive(Debug)]
pub(crate) struct BusyProcesses {
    _each: Vec<OwnProcess>,
}

impl BusyProcesses {
    /// Starts one process for each core.
    pub(crate) fn start() -> Result<Self> {
        let cores = thread::available_parallelism()?.get();
        let each = (0..cores).map(|_| OwnProcess::start(&["spin"]));
        Ok(Self {
            _each: each.collect::<Result<_>>()?,
        })
    }
}

/// Another process of this program, which runs until its input ends; dropping it ends it.
#[derive(Debug)]
pub(crate) struct OwnProcess(Child);

impl OwnProcess {
    pub(crate) fn start(args: &[&str]) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(args).stdin(Stdio::piped());
        Ok(Self(command.stdout(Stdio::piped()).spawn()?))
    }

    /// Reads the next line that the process prints.
    pub(crate) fn read_line(&mut self) -> Result<String> {
        let mut line = String::new();
        let out = self
            .0
            .stdout
            .as_mut()
            .context("the process has no output")?;
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
