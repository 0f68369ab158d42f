//! `adit ssh` with OpenSSH's server: programs, forwardings, terminals, keys, known hosts.

mod agents;
mod algorithms;
mod background;
mod callers;
mod forwards;
mod host_keys;
mod other_type;
mod passwords;
mod programs;
mod streams;
mod terminal;
mod trust;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use adit_interop::openssh::{Sshd, current_user};
use adit_interop::{TEST_TIMEOUT, TempFolder};

use crate::setup::bin;

/// The exit code and output of a command.
struct Got {
    code: Option<i32>,
    out: Vec<u8>,
    err: String,
}

impl Got {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.out).into_owned()
    }

    /// Returns its standard output, if it succeeded.
    #[track_caller]
    fn fine(self) -> String {
        assert_eq!(self.code, Some(0), "{}\n{}", self.text(), self.err);
        self.text()
    }
}

/// A server, and the home directory of a user.
struct World {
    sshd: Sshd,
    home: TempFolder,
}

impl World {
    /// Starts the server; `more` are lines of its configuration.
    fn new(more: &str) -> Self {
        Self {
            sshd: Sshd::start(more).unwrap(),
            home: TempFolder::new("ssh-home").unwrap(),
        }
    }

    fn at_home(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn key(&self) -> PathBuf {
        self.sshd.folder().join("id")
    }

    fn place() -> String {
        format!("{}@127.0.0.1", current_user())
    }

    /// Returns `adit ssh` without options, which ends within a minute and has no terminal for prompts.
    fn bare(&self) -> Command {
        let mut command = Command::new("setsid");
        command.args(["timeout", "60"]).arg(bin()).arg("ssh");
        self.environment(&mut command);
        command
    }

    fn environment(&self, command: &mut Command) {
        command.env("HOME", self.home.path());
        for name in ["SSH_AUTH_SOCK", "LANG", "LC_ALL"] {
            command.env_remove(name);
        }
    }

    /// Returns the options that locate the server, trust it, and log in.
    fn options(&self) -> Vec<String> {
        let known = self.at_home("known").display().to_string();
        let port = self.sshd.port().to_string();
        let key = self.key().display().to_string();
        let options = [
            "-F",
            "none",
            "-p",
            &port,
            "-i",
            &key,
            "-o",
            "StrictHostKeyChecking=accept-new",
            "-o",
            &format!("UserKnownHostsFile={known}"),
            "-o",
            "GlobalKnownHostsFile=none",
            "-q",
        ];
        options.map(str::to_owned).to_vec()
    }

    /// Returns `adit ssh` with further options, and the address of the server.
    fn ssh(&self, more: &[&str]) -> Command {
        let mut command = self.bare();
        command.args(self.options()).args(more).arg(Self::place());
        command
    }

    fn run(&self, more: &[&str], words: &[&str], input: &[u8]) -> Got {
        let mut command = self.ssh(more);
        command.args(words);
        run(command, input)
    }

    /// Writes a configuration in which `near` is the server, and `far` is the server through itself.
    fn config(&self) -> PathBuf {
        let known = self.at_home("known").display().to_string();
        let text = format!(
            "Host near far farther\n HostName 127.0.0.1\n Port {}\n User {}\n IdentityFile \"{}\"\n \
             UserKnownHostsFile {known}\n GlobalKnownHostsFile none\n \
             StrictHostKeyChecking accept-new\n LogLevel QUIET\n\
             Host far\n ProxyJump near\nHost farther\n ProxyJump far\n",
            self.sshd.port(),
            current_user(),
            self.key().display(),
        );
        self.home.write_file("config", text).unwrap()
    }
}

/// Runs a command with this input until it exits.
fn run(mut command: Command, input: &[u8]) -> Got {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let output = thread::scope(|scope| {
        scope.spawn(move || {
            // A program need not read it.
            let _ = stdin.write_all(input);
        });
        child.wait_with_output().unwrap()
    });
    Got {
        code: output.status.code(),
        out: output.stdout,
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Waits for a file.
#[track_caller]
fn appears(path: &Path) {
    let start = Instant::now();
    while !path.exists() {
        assert!(
            start.elapsed() < TEST_TIMEOUT,
            "{} is not there",
            path.display()
        );
        thread::sleep(Duration::from_millis(10));
    }
}

/// Generates a key pair with this passphrase.
fn keygen(file: &Path, kind: &str, passphrase: &str) {
    let mut command = Command::new("ssh-keygen");
    command.args(["-q", "-t", kind, "-N", passphrase, "-f"]);
    run_fine(command.arg(file));
}

fn run_fine(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
