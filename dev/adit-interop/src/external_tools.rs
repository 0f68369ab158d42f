//! Programs that run to their end: curl, dig, iperf3, the browser.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{env, fs};

use anyhow::{Context, Result, ensure};

use crate::ChildProcess;

/// Exit code and output of a program, with both outputs together.
#[derive(Debug, Clone)]
pub struct ToolOutput {
    /// Exit code; `None` after a signal.
    pub code: Option<i32>,
    /// Output.
    pub output: String,
}

impl ToolOutput {
    /// Returns the output of a program that succeeded.
    pub fn expect_success(self) -> Result<String> {
        ensure!(
            self.code == Some(0),
            "the program ended with {:?}:\n{}",
            self.code,
            self.output
        );
        Ok(self.output)
    }
}

/// Runs a program to its end, for at most `limit`.
pub fn run_to_end(command: Command, limit: Duration) -> Result<ToolOutput> {
    let shown = format!("{command:?}");
    let mut process = ChildProcess::spawn(command)?;
    let status = process.wait(limit).context(shown)?;
    // The readers of the pipes see the end a moment after the process has ended.
    process.wait_for_output_end();
    Ok(ToolOutput {
        code: status.code(),
        output: process.output(),
    })
}

/// Returns the path of a peer that `cargo xtask install` has built, or its bare name if it can only
/// be on the PATH.
#[must_use]
pub fn peer_path(name: &str) -> PathBuf {
    let built = env::var_os("ADIT_PEERS").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/peers")),
        PathBuf::from,
    );
    let file = built.join(name);
    if file.is_file() {
        file
    } else {
        PathBuf::from(name)
    }
}

/// Shifts the wall clock of a program; its timers are unaffected.
pub fn shift_clock(command: &mut Command, offset: &str) -> Result<()> {
    // The `faketime` command forks, so a signal would not reach the program itself.
    command.env("LD_PRELOAD", library_path("faketime/libfaketimeMT.so.1")?);
    command
        .env("FAKETIME", offset)
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    Ok(())
}

/// Does the same by the offset in a file, which can be replaced while the program runs.
pub fn shift_clock_by_file(command: &mut Command, file: &Path) -> Result<()> {
    command.env("LD_PRELOAD", library_path("faketime/libfaketimeMT.so.1")?);
    command
        .env("FAKETIME_TIMESTAMP_FILE", file)
        .env("FAKETIME_NO_CACHE", "1")
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    Ok(())
}

/// Returns the path of a system library, by its name below the folder of the machine's
/// architecture.
pub(crate) fn library_path(name: &str) -> Result<PathBuf> {
    let mut places = fs::read_dir("/usr/lib")?.flatten();
    let found = places.find_map(|place| Some(place.path().join(name)).filter(|p| p.is_file()));
    found.with_context(|| missing_program_message(name))
}

/// Returns the message for a program that cannot be started.
#[must_use]
pub fn missing_program_message(name: &str) -> String {
    format!("cannot start `{name}`; hint: `cargo xtask install` installs the peers")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shifted_clock_is_seen() {
        let year = |offset: Option<&str>| {
            let mut command = Command::new("date");
            command.arg("+%Y");
            if let Some(offset) = offset {
                shift_clock(&mut command, offset).unwrap();
            }
            let output = run_to_end(command, Duration::from_secs(5))
                .unwrap()
                .expect_success()
                .unwrap();
            output.trim().parse::<i32>().unwrap()
        };
        assert_eq!(year(Some("-3650d")), year(None) - 10);
    }

    #[test]
    fn a_program_that_hangs_is_ended() {
        let mut command = Command::new("sleep");
        command.arg("60");
        assert!(run_to_end(command, Duration::from_millis(100)).is_err());
    }
}
