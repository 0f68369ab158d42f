//! Tests at a terminal, which `script` creates.

use std::fs;
use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use adit_interop::TEST_TIMEOUT;

use super::{World, keygen};
use crate::setup::bin;

/// A terminal in which a program runs.
pub(super) struct Terminal {
    child: Child,
    stdin: ChildStdin,
    reader: JoinHandle<()>,
    seen: Arc<(Mutex<Vec<u8>>, Condvar)>,
    /// Number of bytes of the output that were already matched.
    passed: usize,
}

impl Terminal {
    /// Runs a line of a shell, which ends within a minute.
    pub(super) fn new(line: &str, environment: impl FnOnce(&mut Command)) -> Self {
        let mut command = Command::new("timeout");
        command.args(["60", "script", "-qec", line, "/dev/null"]);
        environment(&mut command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let seen = Arc::new((Mutex::new(Vec::new()), Condvar::new()));
        let screen = Arc::clone(&seen);
        let reader = thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(n @ 1..) = stdout.read(&mut piece) {
                screen.0.lock().unwrap().extend_from_slice(&piece[..n]);
                screen.1.notify_all();
            }
        });
        Self {
            child,
            stdin,
            reader,
            seen,
            passed: 0,
        }
    }

    /// Runs `adit ssh` with these options and words.
    pub(super) fn ssh(world: &World, options: &[&str], words: &str) -> Self {
        let mut all = world.options();
        all.extend(options.iter().map(|&word| word.to_owned()));
        let all: Vec<String> = all.iter().map(|word| format!("'{word}'")).collect();
        let (bin, place) = (bin(), World::place());
        let line = format!("'{}' ssh {} {place} {words}", bin.display(), all.join(" "));
        Self::new(&line, |command| world.environment(command))
    }

    /// Waits until this appears in the output that was not matched before.
    #[track_caller]
    pub(super) fn wait(&mut self, text: &str) {
        let deadline = Instant::now() + TEST_TIMEOUT;
        let mut seen = self.seen.0.lock().unwrap();
        loop {
            let new = seen.get(self.passed..).unwrap_or_default();
            if let Some(at) = new
                .windows(text.len())
                .position(|part| part == text.as_bytes())
            {
                self.passed += at + text.len();
                return;
            }
            let all = String::from_utf8_lossy(&seen).into_owned();
            assert!(Instant::now() < deadline, "no `{text}` in {all:?}");
            seen = self
                .seen
                .1
                .wait_timeout(seen, Duration::from_millis(100))
                .unwrap()
                .0;
        }
    }

    pub(super) fn keys(&mut self, keys: &str) {
        self.stdin.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for the end. Returns the exit code and the whole output.
    pub(super) fn end(mut self) -> (Option<i32>, String) {
        let code = self.child.wait().unwrap().code();
        drop(self.stdin);
        // The program may end before its last output is read.
        let deadline = Instant::now() + TEST_TIMEOUT;
        while !self.reader.is_finished() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
        let seen = self.seen.0.lock().unwrap();
        (code, String::from_utf8_lossy(&seen).into_owned())
    }
}

#[test]
fn programs_have_a_terminal_if_they_are_to() {
    let world = World::new("");
    let script = "'tty; stty -echo; echo ready; read x; echo got:$x; exit 5'";
    let mut terminal = Terminal::ssh(&world, &["-t"], script);
    terminal.wait("/dev/pts/");
    terminal.wait("ready");
    terminal.keys("hello\r");
    terminal.wait("got:hello");
    assert_eq!(terminal.end().0, Some(5));
    let mut terminal = Terminal::ssh(&world, &["-T"], "'tty; exit 5'");
    terminal.wait("not a tty");
    assert_eq!(terminal.end().0, Some(5));
    // Without a local terminal, only if it is forced.
    assert_eq!(world.run(&["-t"], &["tty"], b"").text().trim(), "not a tty");
    assert!(
        world
            .run(&["-tt"], &["tty"], b"")
            .text()
            .contains("/dev/pts/")
    );
}

#[test]
fn a_shell_ends_with_its_own_code() {
    let world = World::new("");
    let mut terminal = Terminal::ssh(&world, &[], "");
    terminal.keys("echo 'a''b'; exit 6\r");
    terminal.wait("ab");
    let (code, shown) = terminal.end();
    assert_eq!(code, Some(6), "{shown}");
}

#[test]
fn the_size_of_a_terminal_is_told_and_its_changes() {
    let world = World::new("");
    let script = "'trap \"stty size\" WINCH; stty size; while :; do sleep 0.1; done'";
    let mut terminal = Terminal::new(
        &format!(
            "t=$(tty); stty rows 31 cols 97; (sleep 2; stty rows 32 cols 98 < $t) & '{}' ssh {} -t {} {script}",
            bin().display(),
            world.options().join(" "),
            World::place()
        ),
        |command| world.environment(command),
    );
    terminal.wait("31 97");
    terminal.wait("32 98");
    terminal.keys("\r~.");
    assert_eq!(terminal.end().0, Some(255));
}

#[test]
fn escapes_are_for_us() {
    let world = World::new("");
    // The remote program would wait forever.
    let mut terminal = Terminal::ssh(&world, &["-t"], "'echo ready; sleep 50'");
    terminal.wait("ready");
    terminal.keys("~?");
    terminal.wait("close the connection");
    terminal.keys("\r~R\r~.");
    terminal.wait("was closed by an escape");
    assert_eq!(terminal.end().0, Some(255));
    let script = "'echo ready; read x; echo \"got:$x\"'";
    let mut terminal = Terminal::ssh(&world, &["-t", "-e", "none"], script);
    terminal.wait("ready");
    terminal.keys("~.\r");
    terminal.wait("got:~.");
    assert_eq!(terminal.end().0, Some(0));
}

#[test]
fn a_passphrase_is_asked_for_and_not_shown() {
    let world = World::new("");
    let key = world.at_home("locked");
    keygen(&key, "ed25519", "correct horse");
    let allowed = world.sshd.folder().join("authorized_keys");
    fs::copy(world.at_home("locked.pub"), allowed).unwrap();
    let key = key.display().to_string();
    let mut terminal = Terminal::ssh(&world, &["-i", &key], "'echo in'");
    terminal.wait("passphrase for");
    terminal.keys("wrong\r");
    terminal.wait("bad passphrase; passphrase for");
    terminal.keys("correct horse\r");
    terminal.wait("in\r\n");
    let (code, shown) = terminal.end();
    assert_eq!(code, Some(0), "{shown}");
    assert!(
        !shown.contains("horse") && !shown.contains("wrong"),
        "{shown}"
    );
    // No prompt is possible.
    let got = world.run(&["-i", &key, "-o", "BatchMode=yes"], &["true"], b"");
    assert_eq!(got.code, Some(255));
    assert!(got.err.contains("publickey"), "{}", got.err);
}
