//! A terminal of tmux, whose screen and keys belong to the test.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

use adit_interop::{TEST_TIMEOUT, TempFolder};
use rustix::process::Pid;

/// A terminal with a program.
pub(super) struct Tmux {
    folder: TempFolder,
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Returns true if a screen with its sequences has foreground or background colours, of 8 or of more.
pub(super) fn is_coloured(screen: &str) -> bool {
    let codes = screen.split("\u{1b}[").skip(1);
    let mut codes = codes
        .filter_map(|rest| rest.split_once('m'))
        .flat_map(|(code, _)| code.split(';'));
    codes.any(|code| matches!(code.parse(), Ok(30..=38 | 40..=48 | 90..=107)))
}

impl Tmux {
    /// Starts a program in a terminal of this size, with these variables. When it has ended, the screen has its exit code.
    pub(super) fn start(size: (u16, u16), variables: &[(&str, &str)], words: &[&str]) -> Self {
        let tmux = Self {
            folder: TempFolder::new("tmux").unwrap(),
        };
        let variables = variables
            .iter()
            .map(|(name, value)| format!("{name}={}", quoted(value)));
        let words = words.iter().map(|word| quoted(word));
        let line: Vec<String> = variables.chain(words).collect();
        // The shell waits, so that its last screen can be read.
        let script = format!("env {}; echo exit code $?.; read forever", line.join(" "));
        let (width, height) = (size.0.to_string(), size.1.to_string());
        let started = tmux.command(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            &width,
            "-y",
            &height,
            &script,
        ]);
        assert!(started.status.success(), "{started:?}");
        tmux
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    fn command(&self, words: &[&str]) -> Output {
        let mut command = Command::new("tmux");
        command.arg("-u").arg("-S").arg(self.socket()).args(words);
        // Not the terminal of a developer.
        command.env_remove("TMUX").env("LC_ALL", "C.UTF-8");
        command.output().unwrap()
    }

    /// Returns the lines of the screen.
    pub(super) fn screen(&self) -> Vec<String> {
        let captured = self.command(&["capture-pane", "-p"]);
        assert!(captured.status.success(), "{captured:?}");
        let text = String::from_utf8(captured.stdout).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    /// Returns the screen with the sequences of its colours.
    pub(super) fn coloured_screen(&self) -> String {
        let captured = self.command(&["capture-pane", "-p", "-e"]);
        String::from_utf8(captured.stdout).unwrap()
    }

    /// Presses keys, with the names of tmux.
    pub(super) fn press(&self, keys: &[&str]) {
        let mut words = vec!["send-keys"];
        words.extend(keys);
        let sent = self.command(&words);
        assert!(sent.status.success(), "{sent:?}");
    }

    /// Returns the process ID of the program.
    pub(super) fn program_id(&self) -> Pid {
        let shown = self.command(&["display-message", "-p", "#{pane_pid}"]);
        let shell = String::from_utf8(shown.stdout).unwrap();
        let shell = shell.trim();
        let children = format!("/proc/{shell}/task/{shell}/children");
        let children = std::fs::read_to_string(children).unwrap();
        Pid::from_raw(children.trim().parse().unwrap()).unwrap()
    }

    pub(super) fn resize(&self, size: (u16, u16)) {
        let (width, height) = (size.0.to_string(), size.1.to_string());
        let resized = self.command(&["resize-window", "-x", &width, "-y", &height]);
        assert!(resized.status.success(), "{resized:?}");
    }

    /// Waits until the screen is as expected, and returns it.
    #[track_caller]
    pub(super) fn wait_for(&self, is_expected: impl Fn(&[String]) -> bool) -> Vec<String> {
        let deadline = Instant::now() + TEST_TIMEOUT;
        loop {
            let screen = self.screen();
            if is_expected(&screen) {
                return screen;
            }
            assert!(
                Instant::now() < deadline,
                "the screen is not as expected:\n{}",
                screen.join("\n")
            );
            sleep(Duration::from_millis(50));
        }
    }

    /// Waits until the screen has these words.
    #[track_caller]
    pub(super) fn wait_words(&self, words: &str) -> Vec<String> {
        self.wait_for(|screen| screen.iter().any(|line| line.contains(words)))
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        // The server of this socket, which has no other terminals.
        self.command(&["kill-server"]);
    }
}
