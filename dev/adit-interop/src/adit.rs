//! The program under test.

use std::env;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{ChildProcess, TEST_TIMEOUT};

/// A running `adit` that has printed its addresses.
#[derive(Debug)]
pub struct AditProcess {
    process: ChildProcess,
    listen_addrs: Vec<SocketAddr>,
}

impl AditProcess {
    /// Starts the binary that `ADIT_BIN` names, or the one in the build folder of the running test,
    /// and waits until it listens on `listeners` addresses.
    pub fn start(args: &[&str], listeners: usize) -> Result<Self> {
        Self::start_with(&find_binary()?, args, listeners)
    }

    /// Starts the binary `bin`.
    pub fn start_with(bin: &Path, args: &[&str], listeners: usize) -> Result<Self> {
        let mut command = Command::new(bin);
        command.args(args);
        Self::start_command(command, listeners)
    }

    /// Starts a prepared command, for instance with lowered limits.
    pub fn start_command(command: Command, listeners: usize) -> Result<Self> {
        let mut process = ChildProcess::spawn(command)?;
        let lines = process.wait_lines("listening on ", listeners, TEST_TIMEOUT)?;
        let listening = lines
            .iter()
            .map(|line| parse_listen_addr(line))
            .collect::<Result<Vec<_>>>()?;
        Ok(Self {
            process,
            listen_addrs: listening,
        })
    }

    /// Returns the first address it listens on.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addrs()[0]
    }

    /// Returns the addresses it listens on, in the order in which it printed them.
    #[must_use]
    pub fn addrs(&self) -> &[SocketAddr] {
        &self.listen_addrs
    }

    /// Returns the running program.
    pub fn process(&mut self) -> &mut ChildProcess {
        &mut self.process
    }

    /// Ends the program with SIGTERM. It must exit successfully and must not have panicked
    /// (SEC-X8).
    pub fn stop(mut self) -> Result<()> {
        let status = self.process.terminate()?;
        let log = self.process.output();
        ensure!(status.code() == Some(0), "adit ended with {status}:\n{log}");
        ensure!(!log.contains("panicked"), "adit panicked:\n{log}");
        Ok(())
    }
}

fn parse_listen_addr(line: &str) -> Result<SocketAddr> {
    let (_, rest) = line
        .split_once("listening on ")
        .context("the line has no address")?;
    let word = rest.split_whitespace().next().unwrap_or_default();
    word.trim_end_matches([',', ';'])
        .parse()
        .with_context(|| line.to_owned())
}

fn find_binary() -> Result<PathBuf> {
    if let Some(path) = env::var_os("ADIT_BIN") {
        return Ok(path.into());
    }
    let test = env::current_exe()?;
    let built = test
        .ancestors()
        .skip(1)
        .map(|dir| dir.join("adit"))
        .find(|path| path.is_file());
    built.context(
        "cannot find `adit` beside the test; hint: run `cargo build -p adit`, or set ADIT_BIN",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_from_the_log() {
        for (line, addr) in [
            ("listening on 127.0.0.1:1080", "127.0.0.1:1080"),
            ("12:00 INFO listening on [::1]:80 (mixed)", "[::1]:80"),
        ] {
            assert_eq!(parse_listen_addr(line).unwrap(), addr.parse().unwrap());
        }
        assert!(parse_listen_addr("listening on somewhere").is_err());
    }

    #[test]
    fn a_failing_end_is_an_error() {
        let script = |end: &str| {
            let mut command = Command::new("sh");
            let script = format!(
                "trap '{end}' TERM; echo listening on [::1]:9 >&2; while :; do sleep 0.05; done"
            );
            command.args(["-c", &script]);
            AditProcess::start_command(command, 1).unwrap()
        };
        assert_eq!(script("exit 0").addr(), "[::1]:9".parse().unwrap());
        script("exit 0").stop().unwrap();
        assert!(script("exit 1").stop().is_err());
        assert!(script("echo thread panicked; exit 0").stop().is_err());
    }
}
