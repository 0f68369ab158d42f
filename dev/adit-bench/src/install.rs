//! The rivals: those that the tests use come from `cargo xtask install`, the others are packages
//! or are built from the Go module proxy.

use std::fs;
use std::path::Path;
use std::process::Command;

use adit_interop::Folder;
use anyhow::{Context, Result, ensure};

use crate::places::{cargo, find_program, peers_dir};

/// A program that only the benchmarks use, and its Debian package.
const PROGRAMS: [(&str, &str); 4] = [
    ("perf", "linux-perf"),
    ("strace", "strace"),
    ("microsocks", "microsocks"),
    ("danted", "dante-server"),
];

/// A program that only the benchmarks use, built from source.
#[derive(Debug)]
struct GoProgram {
    /// As it is called here.
    name: &'static str,
    module: &'static str,
    version: &'static str,
    /// The folder of its `main` in the module.
    folder: &'static str,
}

const GO_PROGRAMS: [GoProgram; 2] = [
    GoProgram {
        name: "shadowsocks-go",
        module: "github.com/database64128/shadowsocks-go",
        version: "v1.14.0",
        folder: "cmd/shadowsocks-go",
    },
    GoProgram {
        name: "xray",
        module: "github.com/xtls/xray-core",
        version: "v1.260327.0",
        folder: "main",
    },
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
    for program in &GO_PROGRAMS {
        attempt(program.name, program.install(&peers_dir()));
    }
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

impl GoProgram {
    /// Builds it into `folder`, unless this version is there.
    fn install(&self, folder: &Path) -> Result<()> {
        let (program, stamp) = (folder.join(self.name), folder.join(self.stamp()));
        if program.is_file() && stamp.is_file() {
            return Ok(());
        }
        eprintln!("building {} {}", self.name, self.version);
        fs::create_dir_all(folder)?;
        // `go install MODULE@VERSION` wants the list of all versions, which not every proxy has;
        // a module of our own that asks for one version does not.
        let module = Folder::new("rival")?;
        let go = |words: &[&str]| -> Result<()> {
            let status = Command::new("go")
                .args(words)
                .current_dir(module.path())
                .env("GOFLAGS", "")
                .env("CGO_ENABLED", "0")
                .status()
                .context("`go` (Debian package golang-go)")?;
            ensure!(status.success(), "`go {}`: {status}", words.join(" "));
            Ok(())
        };
        go(&["mod", "init", "rival"])?;
        go(&["get", &format!("{}@{}", self.module, self.version)])?;
        let package = format!("{}/{}", self.module, self.folder);
        let out = program.to_string_lossy();
        let build = ["build", "-mod=mod", "-trimpath", "-ldflags", "-s -w", "-o"];
        go(&[&build[..], &[&out, &package]].concat())?;
        ensure!(program.is_file(), "no program after the build");
        Ok(fs::write(stamp, "")?)
    }

    /// Marks a finished build of this version.
    fn stamp(&self) -> String {
        format!("{}-{}.stamp", self.name, self.version)
    }
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

    #[test]
    fn a_finished_build_is_not_repeated() {
        let folder = Folder::new("peers").unwrap();
        let [program, _] = GO_PROGRAMS;
        folder.write(program.name, "").unwrap();
        folder.write(&program.stamp(), "").unwrap();
        program.install(folder.path()).unwrap();
        // Another version is another build.
        assert_eq!(program.stamp(), "shadowsocks-go-v1.14.0.stamp");
    }
}
