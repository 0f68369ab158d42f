//! A Debian root folder, and its systemd as a process in namespaces.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::packages_under_test::script;
use crate::command::{CommandRun, target_dir};
use crate::privilege::{PATH, privileged, spawn_privileged, wait_for};

/// The release of Debian, which provides the tools of the checks as well.
const SUITE: &str = "bookworm";
/// Packages beyond the minimal system.
const PACKAGES: &str = "systemd,systemd-sysv,procps";
/// Time for systemd to start.
const BOOT_TIME: Duration = Duration::from_secs(60);
/// The name of the log of the start.
const BOOT_LOG: &str = "debian-boot";

fn archive() -> PathBuf {
    target_dir().join(format!("debian-{SUITE}-root.tar.gz"))
}

/// Downloads the packages of a minimal system with systemd, if that was not done before.
pub(crate) fn install_debian_root() -> Result<String> {
    let archive = archive();
    if archive.is_file() {
        return Ok("present".to_owned());
    }
    archive.parent().map_or(Ok(()), fs::create_dir_all)?;
    // The name is that of a finished file.
    let partial = archive.with_file_name("debian-root-partial.tar.gz");
    let include = format!("--include={PACKAGES}");
    let words = [
        "--variant=minbase",
        &include,
        SUITE,
        &partial.to_string_lossy(),
    ];
    privileged("mmdebstrap", &words)?
        .with_limit(10)
        .run_captured("mmdebstrap")?;
    fs::rename(&partial, &archive)?;
    Ok(format!("made from {SUITE}"))
}

/// Unpacks the root folder, and returns its path.
pub(super) fn unpack_root(work: &Path) -> Result<PathBuf> {
    let folder = work.join("root");
    fs::create_dir_all(&folder)?;
    ensure!(
        archive().is_file(),
        "{}: missing; `cargo xtask install` makes it",
        archive().display()
    );
    // The devices are those of the booted system.
    privileged(
        "tar",
        &[
            "-xzf",
            &archive().to_string_lossy(),
            "-C",
            &folder.to_string_lossy(),
            "--exclude=./dev/*",
        ],
    )?
    .run_captured("debian-root")?;
    Ok(folder)
}

/// A running systemd, which ends with this value.
pub(super) struct BootedRoot {
    process: Child,
    /// Name of its control group.
    group: String,
    /// Process ID of systemd.
    systemd: u32,
}

impl BootedRoot {
    /// Starts the systemd of a root folder.
    pub(super) fn boot(folder: &Path) -> Result<Self> {
        let group = format!("adit-packages-{}", std::process::id());
        let (script, folder) = (script("boot.sh"), folder.to_string_lossy());
        let process = spawn_privileged(&["sh", &script, &folder, &group], BOOT_LOG)?;
        let mut booted = Self {
            process,
            group,
            systemd: 0,
        };
        booted.systemd = booted.wait_for_systemd()?;
        Ok(booted)
    }

    /// Waits for the process, and returns its ID.
    fn wait_for_systemd(&mut self) -> Result<u32> {
        wait_for("systemd starts", BOOT_TIME, BOOT_LOG, || {
            ensure!(self.process.try_wait()?.is_none(), "systemd did not start");
            Ok(find_systemd(&self.group))
        })
    }

    /// Creates a command that runs inside.
    pub(super) fn command(&self, words: &[&str]) -> Result<CommandRun> {
        let target = format!("--target={}", self.systemd);
        let enter = [
            &*target,
            "--mount",
            "--pid",
            "--ipc",
            "--uts",
            "--net",
            "--cgroup",
            "--root",
            "--wd",
            "env",
            "-i",
            PATH,
            "LC_ALL=C.UTF-8",
            "HOME=/",
        ];
        privileged("nsenter", &[&enter[..], words].concat())
    }
}

impl Drop for BootedRoot {
    fn drop(&mut self) {
        // systemd is the first process of its namespace: with it all others end.
        if self.systemd != 0 {
            let id = self.systemd.to_string();
            let killed = privileged("kill", &["-9", &id]).and_then(|run| run.run_captured("kill"));
            if let Err(why) = killed {
                eprintln!("systemd {id} of the package check is still there: {why:#}");
            }
        } else {
            let _ = self.process.kill();
        }
        let _ = self.process.wait();
        let (own, below) = (format!("*/{}", self.group), format!("*/{}/*", self.group));
        let select = ["(", "-path", &own, "-o", "-path", &below, ")"];
        let from = ["/sys/fs/cgroup", "-depth", "-type", "d"];
        let remove = ["-exec", "rmdir", "{}", ";"];
        let words = [&from[..], &select[..], &remove[..]];
        // An empty group that remains does no harm.
        let _ = privileged("find", &words.concat()).and_then(|run| run.run_captured("rmdir"));
    }
}

/// Returns the ID of the systemd below a control group.
fn find_systemd(group: &str) -> Option<u32> {
    let entries = fs::read_dir("/proc").ok()?.flatten();
    entries.into_iter().find_map(|entry| {
        let id: u32 = entry.file_name().to_str()?.parse().ok()?;
        let name = fs::read_to_string(entry.path().join("comm")).ok()?;
        let groups = fs::read_to_string(entry.path().join("cgroup")).ok()?;
        (name.trim() == "systemd" && groups.contains(group)).then_some(id)
    })
}
