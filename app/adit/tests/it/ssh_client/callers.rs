//! Programs that start `ssh`: rsync, sshfs, lftp, git, scp, and a pipe of tar.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use adit_interop::openssh::current_user;
use adit_interop::{AditProcess, BytePattern, ChildProcess, TEST_TIMEOUT, TempFolder};

use super::{World, run, run_fine};
use crate::setup::bin;

/// More than the pipes and sockets on the path hold together.
const MUCH: usize = 3 << 20;

impl World {
    /// Returns `adit ssh` with all options, as one line of words.
    fn line(&self) -> String {
        format!("{} ssh {}", bin().display(), self.options().join(" "))
    }

    /// Returns the same as a separate program.
    fn wrapper(&self) -> PathBuf {
        let text = format!("#!/bin/sh\nexec {} \"$@\"\n", self.line());
        let file = self.home.write_file("wrapper", text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o700)).unwrap();
        file
    }

    /// Runs a program, which must succeed within a minute.
    fn fine(&self, program: &str, args: &[&str]) -> String {
        let mut command = Command::new("timeout");
        command.args(["60", program]).args(args);
        self.environment(&mut command);
        run(command, b"").fine()
    }
}

/// Creates a folder with a large file, an empty file, and a file in a subfolder.
fn tree(folder: &TempFolder, name: &str) -> String {
    let top = folder.path().join(name);
    fs::create_dir_all(top.join("down")).unwrap();
    fs::write(top.join("much"), BytePattern::new(5).next_bytes(MUCH)).unwrap();
    fs::write(top.join("none"), "").unwrap();
    fs::write(
        top.join("down/some"),
        BytePattern::new(6).next_bytes(70_001),
    )
    .unwrap();
    top.display().to_string()
}

#[track_caller]
fn same(a: &str, b: &str) {
    run_fine(Command::new("diff").args(["-r", a, b]));
}

fn there(path: &str) -> String {
    format!("{}:{path}", World::place())
}

#[test]
fn rsync_both_ways_with_both_servers() {
    let world = World::new("");
    let source = tree(&world.home, "source");
    let key = world.sshd.folder().join("authorized_keys");
    let (host, key) = (world.at_home("host"), key.display().to_string());
    let ours = [
        "sshd",
        "--listen",
        "127.0.0.1:0",
        "--host-key",
        host.to_str().unwrap(),
    ];
    let ours = AditProcess::start_with(
        &bin(),
        &[&ours[..], &["--authorized-keys", &key]].concat(),
        1,
    );
    let ours = ours.unwrap();
    for port in [world.sshd.port(), ours.addr().port()] {
        let shell = world
            .line()
            .replace(&format!("-p {}", world.sshd.port()), &format!("-p {port}"));
        let (up, back) = (
            format!("{source}-{port}-up"),
            format!("{source}-{port}-back"),
        );
        world.fine(
            "rsync",
            &["-a", "-e", &shell, &format!("{source}/"), &there(&up)],
        );
        world.fine(
            "rsync",
            &["-a", "-e", &shell, &there(&format!("{up}/")), &back],
        );
        same(&source, &back);
    }
    ours.stop().unwrap();
}

#[test]
fn lftp_mirrors_both_ways() {
    let world = World::new("");
    let source = tree(&world.home, "source");
    let (up, back) = (format!("{source}-up"), format!("{source}-back"));
    let script = format!(
        "set sftp:connect-program '{} -a -x'; set net:max-retries 1; set net:timeout 20; \
         set cmd:fail-exit yes; open -p {} -u {}, sftp://127.0.0.1; \
         mirror -R {source} {up}; mirror {up} {back}",
        world.line(),
        world.sshd.port(),
        current_user(),
    );
    world.fine("lftp", &["--norc", "-c", &script]);
    same(&source, &back);
}

#[test]
fn git_and_tar_both_ways() {
    let world = World::new("");
    let source = tree(&world.home, "source");
    let (bare, clone) = (format!("{source}.git"), format!("{source}-clone"));
    let git = |args: &[&str]| {
        let mut command = Command::new("timeout");
        command
            .args(["60", "git", "-c", "user.name=a", "-c", "user.email=a@b"])
            .args(args);
        world.environment(&mut command);
        command
            .env("GIT_SSH_COMMAND", world.line())
            .env("GIT_SSH_VARIANT", "ssh");
        run(command, b"").fine()
    };
    git(&["init", "-q", "--bare", "-b", "main", &bare]);
    git(&["-C", &source, "init", "-q", "-b", "main"]);
    git(&["-C", &source, "add", "."]);
    git(&["-C", &source, "commit", "-q", "-m", "all"]);
    git(&["-C", &source, "push", "-q", &there(&bare), "main"]);
    git(&["clone", "-q", &there(&bare), &clone]);
    fs::remove_dir_all(Path::new(&source).join(".git")).unwrap();
    fs::remove_dir_all(Path::new(&clone).join(".git")).unwrap();
    same(&source, &clone);
    let (up, back) = (format!("{source}-up"), format!("{source}-back"));
    fs::create_dir(&back).unwrap();
    let (ssh, place) = (world.line(), World::place());
    let pipes = format!(
        "set -e; tar -C {source} -c . | {ssh} {place} 'mkdir {up} && tar -C {up} -x'; \
         {ssh} {place} tar -C {up} -c . | tar -C {back} -x"
    );
    world.fine("sh", &["-c", &pipes]);
    same(&source, &back);
}

#[test]
fn scp_starts_it_with_its_own_options() {
    let world = World::new("");
    let source = tree(&world.home, "source");
    let wrapper = world.wrapper().display().to_string();
    for kind in ["-s", "-O"] {
        let (up, back) = (format!("{source}{kind}up"), format!("{source}{kind}back"));
        let port = world.sshd.port().to_string();
        let scp = [kind, "-q", "-r", "-p", "-S", &wrapper, "-P", &port];
        world.fine("scp", &[&scp[..], &[&source, &there(&up)]].concat());
        world.fine("scp", &[&scp[..], &[&there(&up), &back]].concat());
        same(&source, &back);
    }
    // It disables the agent; a later option overrides that.
    let sftp = ["-q", "-S", &wrapper, "-b", "-", &World::place()];
    let mut command = Command::new("timeout");
    command.args(["60", "sftp"]).args(sftp);
    world.environment(&mut command);
    assert!(
        run(command, b"pwd\n")
            .fine()
            .contains("Remote working directory")
    );
}

#[test]
fn sshfs_reads_and_writes() {
    if OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/fuse")
        .is_err()
    {
        eprintln!("the kernel has no FUSE here, or not for us: sshfs is not tested");
        return;
    }
    let world = World::new("");
    let (source, at) = (tree(&world.home, "source"), world.at_home("mount"));
    fs::create_dir(&at).unwrap();
    let mut command = Command::new("sshfs");
    world.environment(&mut command);
    command
        .arg("-f")
        .arg("-o")
        .arg(format!("ssh_command={}", world.line()));
    command.arg(there(&source)).arg(&at);
    let mut sshfs = ChildProcess::spawn(command).unwrap();
    let start = Instant::now();
    while !at.join("much").exists() {
        assert!(
            start.elapsed() < TEST_TIMEOUT,
            "nothing is mounted:\n{}",
            sshfs.output()
        );
        thread::sleep(Duration::from_millis(20));
    }
    let mounted = at.display().to_string();
    let outcome = Command::new("timeout")
        .args(["30", "diff", "-r", &source, &mounted])
        .output();
    let written = fs::copy(at.join("much"), at.join("copy"));
    unmount(&mounted);
    sshfs.wait(TEST_TIMEOUT).unwrap();
    let outcome = outcome.unwrap();
    assert!(outcome.status.success(), "{outcome:?}\n{}", sshfs.output());
    assert_eq!(written.unwrap(), MUCH as u64);
    same(&format!("{source}/much"), &format!("{source}/copy"));
}

/// Unmounts what [`sshfs_reads_and_writes`] mounted. A program that another test starts meanwhile
/// has copies of the descriptors until its `exec`, and the last ones of `diff` are released shortly after
/// its end, so "busy" is retried.
#[track_caller]
fn unmount(mounted: &str) {
    let start = Instant::now();
    loop {
        let mut command = Command::new("fusermount3");
        let output = command.args(["-u", mounted]).output().unwrap();
        if output.status.success() {
            return;
        }
        let busy = String::from_utf8_lossy(&output.stderr).contains("busy");
        assert!(busy && start.elapsed() < TEST_TIMEOUT, "{output:?}");
        thread::sleep(Duration::from_millis(50));
    }
}
