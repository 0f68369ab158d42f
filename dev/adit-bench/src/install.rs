//! The rivals: those that the tests use come from `cargo xtask install`, the others are packages.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::places::{cargo, find_program};

/// A program that only the benchmarks use, and its Debian package.
const PROGRAMS: [(&str, &str); 4] = [
    ("perf", "linux-perf"),
    ("strace", "strace"),
    ("microsocks", "microsocks"),
    ("danted", "dante-server"),
];

/// Installs everything that is not there. One that cannot be had does not keep the others out.
pub(crate) fn run() -> Result<()> {
    let mut failures = Vec::new();
    let mut attempt = |what: &str, outcome: Result<()>| {
        if let Err(why) = outcome {
            eprintln!("{what}: {why:#}");
            failures.push(what.to_owned());
        }
    };
    attempt("cargo xtask install --all", xtask());
    attempt("packages", packages());
    ensure!(
        failures.is_empty(),
        "not installed: {}",
        failures.join(", ")
    );
    Ok(())
}

fn xtask() -> Result<()> {
    let status = cargo()
        .args(["xtask", "install", "--all"])
        .status()
        .context("cargo xtask install")?;
    ensure!(status.success(), "it failed");
    Ok(())
}

fn packages() -> Result<()> {
    let missing = missing(|program| find_program(program, Path::new("")).is_some());
    if missing.is_empty() {
        return Ok(());
    }
    let install = ["install", "-y", "--no-install-recommends"];
    apt_get(&install.iter().chain(&missing).copied().collect::<Vec<_>>())?;
    if missing.contains(&"dante-server") {
        stop_service("danted");
    }
    Ok(())
}

fn missing(there: impl Fn(&str) -> bool) -> Vec<&'static str> {
    PROGRAMS
        .iter()
        .filter(|(program, _)| !there(program))
        .map(|(_, package)| *package)
        .collect()
}

fn apt_get(args: &[&str]) -> Result<()> {
    let status = as_root("apt-get", args)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .status();
    let done = status.is_ok_and(|status| status.success());
    ensure!(
        done,
        "cannot install; as root run: apt-get {}",
        args.join(" ")
    );
    Ok(())
}

/// Debian starts what it installs. A machine without a service manager starts nothing.
fn stop_service(name: &str) {
    if Path::new("/run/systemd/system").is_dir() {
        let _ = as_root("systemctl", &["disable", "--now", name]).status();
    }
}

fn as_root(program: &str, args: &[&str]) -> Command {
    if rustix::process::geteuid().is_root() {
        let mut command = Command::new(program);
        command.args(args);
        return command;
    }
    let mut command = Command::new("sudo");
    command
        .args(["-n", "--preserve-env=DEBIAN_FRONTEND", program])
        .args(args);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_missing_is_installed() {
        assert!(missing(|_| true).is_empty());
        assert_eq!(missing(|program| program != "danted"), ["dante-server"]);
    }
}
