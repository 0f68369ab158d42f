//! A server of adit on loopback, and its clients.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use adit_interop::openssh::{current_user, generate_key, ssh_command};
use adit_interop::{AditProcess, TempFolder};

/// Time limit of a client.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// A server that accepts one key, `id` in its folder.
pub(super) struct Host {
    pub(super) folder: TempFolder,
    pub(super) adit: AditProcess,
}

impl Host {
    pub(super) fn start(options: &[&str]) -> Self {
        Self::with_keys(options, |line| line.to_owned())
    }

    /// Starts a server; `lines` creates the file of authorized keys from the line of the key.
    pub(super) fn with_keys(options: &[&str], lines: impl FnOnce(&str) -> String) -> Self {
        let folder = TempFolder::new("sshd").unwrap();
        generate_key(folder.path(), "id").unwrap();
        let line = fs::read_to_string(folder.path().join("id.pub")).unwrap();
        folder.write_file("keys", lines(line.trim())).unwrap();
        let (host, keys) = (folder.path().join("host"), folder.path().join("keys"));
        let mut args = vec!["sshd", "--listen", "127.0.0.1:0", "--host-key"];
        args.push(host.to_str().unwrap());
        args.push("--authorized-keys");
        args.push(keys.to_str().unwrap());
        args.extend(options);
        let adit = AditProcess::start(&args, 1).unwrap();
        Self { folder, adit }
    }

    pub(super) fn port(&self) -> u16 {
        self.adit.addr().port()
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn key(&self) -> PathBuf {
        self.path("id")
    }

    /// Returns `ssh` with options, without a destination.
    pub(super) fn options(&self, options: &[&str]) -> Command {
        let mut command = ssh_command(self.port(), &self.key());
        command.args(options);
        command
    }

    /// Returns `ssh` to this host.
    pub(super) fn ssh(&self, options: &[&str], line: &str) -> Command {
        let mut command = self.options(options);
        command.arg(destination());
        if !line.is_empty() {
            command.arg(line);
        }
        command
    }

    /// Runs a line. Returns the exit status and both outputs.
    pub(super) fn run(&self, options: &[&str], line: &str) -> (Option<i32>, String, String) {
        let output = ended(self.ssh(options, line), b"");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (
            output.status.code(),
            text(&output.stdout),
            text(&output.stderr),
        )
    }

    /// Returns the standard output of a line, which must succeed.
    pub(super) fn says(&self, options: &[&str], line: &str) -> String {
        let (status, out, err) = self.run(options, line);
        assert_eq!(status, Some(0), "{line}: {out}{err}");
        out.trim_end().to_owned()
    }
}

/// Returns user and host.
pub(super) fn destination() -> String {
    format!("{}@127.0.0.1", current_user())
}

/// Runs a command with this input until it exits.
pub(super) fn ended(mut command: Command, input: &[u8]) -> Output {
    let shown = format!("{command:?}");
    let mut child = Guard::spawn(
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped()),
    );
    let (stdin, stdout, stderr) = (
        child.0.stdin.take().unwrap(),
        child.0.stdout.take().unwrap(),
        child.0.stderr.take().unwrap(),
    );
    let reader = |mut from: Box<dyn Read + Send>| {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = from.read_to_end(&mut bytes);
            bytes
        })
    };
    let outputs = [reader(Box::new(stdout)), reader(Box::new(stderr))];
    let input = input.to_vec();
    let writer = thread::spawn(move || {
        let mut stdin = stdin;
        // A program may stop reading its input.
        let _ = stdin.write_all(&input);
    });
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = child.0.try_wait().unwrap() {
            break status;
        }
        assert!(Instant::now() < deadline, "{shown} still runs");
        thread::sleep(Duration::from_millis(5));
    };
    writer.join().unwrap();
    let [stdout, stderr] = outputs.map(|one| one.join().unwrap());
    Output {
        status,
        stdout,
        stderr,
    }
}

/// A process that ends with the test.
pub(super) struct Guard(pub(super) Child);

impl Guard {
    pub(super) fn spawn(command: &mut Command) -> Self {
        Self(command.spawn().unwrap())
    }

    /// Kills it with a signal that it cannot catch.
    pub(super) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until the condition is true.
pub(super) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Returns true if a process runs. A zombie does not.
pub(super) fn lives(pid: &str) -> bool {
    fs::read_to_string(format!("/proc/{}/stat", pid.trim()))
        .is_ok_and(|stat| !stat.contains(") Z ") && !stat.contains(") X "))
}

/// Returns the text of a file once another process has written a whole line.
pub(super) fn line_of(path: &Path) -> String {
    let mut text = String::new();
    until(&path.display().to_string(), || {
        text = fs::read_to_string(path).unwrap_or_default();
        text.ends_with('\n')
    });
    text.trim().to_owned()
}
