//! Completions in bash, zsh and fish: each script runs the program under test.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use adit_interop::{TempFolder, external_tools};

const PATIENCE: Duration = Duration::from_secs(30);

/// A folder with a home, the program and the scripts.
struct Shells {
    folder: TempFolder,
}

impl Shells {
    fn new() -> Self {
        let folder = TempFolder::new("completion").unwrap();
        let bin = folder.path().join("bin");
        std::fs::create_dir_all(folder.path().join("home/.ssh")).unwrap();
        std::fs::create_dir_all(&bin).unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_adit"), bin.join("adit")).unwrap();
        folder
            .write_file("home/.ssh/config", "Host web.example db\n")
            .unwrap();
        for shell in ["bash", "zsh", "fish"] {
            let mut adit = Command::new(env!("CARGO_BIN_EXE_adit"));
            adit.args(["completion", shell]);
            let script = external_tools::run_to_end(adit, PATIENCE)
                .unwrap()
                .expect_success()
                .unwrap();
            folder.write_file(&format!("adit.{shell}"), script).unwrap();
        }
        Self { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Runs a shell with these arguments, and returns the lines of its output.
    fn run_shell(&self, shell: &str, args: &[&str]) -> Vec<String> {
        let mut command = Command::new(shell);
        let path = std::env::var("PATH").unwrap();
        let bin = self.path().join("bin");
        command
            .args(args)
            .current_dir(self.path())
            .env("HOME", self.path().join("home"))
            .env("PATH", format!("{}:{path}", bin.display()));
        let said = external_tools::run_to_end(command, PATIENCE)
            .unwrap()
            .expect_success()
            .unwrap();
        said.lines().map(str::to_owned).collect()
    }

    /// Returns `COMPREPLY` for a line and the words that bash splits it into.
    fn complete_in_bash(&self, line: &str, words: &[&str]) -> Vec<String> {
        let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
        let quoted_words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        let script = format!(
            "source ./adit.bash; COMP_LINE={}; COMP_POINT=${{#COMP_LINE}}; COMP_WORDS=({}); \
             COMP_CWORD={}; _adit; printf '%s|\\n' \"${{COMPREPLY[@]}}\"",
            quoted(line),
            quoted_words.join(" "),
            words.len() - 1
        );
        let found = self
            .run_shell("bash", &["--norc", "-c", &script])
            .into_iter();
        // The mark preserves the blank at the end.
        found
            .map(|line| line.trim_end_matches('|').to_owned())
            .collect()
    }

    /// Returns the candidates for these words.
    fn complete_in_zsh(&self, words: &[&str]) -> Vec<String> {
        let script = "compdef() { : }; \
            compadd() { print -rl -- \"${(@P)argv[-1]}\" }; \
            source ./adit.zsh; words=(\"$@\"); CURRENT=$#; _adit; true";
        let mut args = vec!["-f", "-c", script, "zsh"];
        args.extend(words);
        self.run_shell("zsh", &args)
    }

    /// Returns the candidates for a line.
    fn complete_in_fish(&self, line: &str) -> Vec<String> {
        let script = "source ./adit.fish; complete -C $argv[1]";
        let found = self.run_shell("fish", &["--no-config", "-c", script, line]);
        let value = |line: String| line.split('\t').next().unwrap_or_default().to_owned();
        found.into_iter().map(value).collect()
    }
}

#[test]
fn bash_completes_what_it_splits() {
    let shells = Shells::new();
    let method = "2022-blake3-aes-128-gcm";
    assert_eq!(
        shells.complete_in_bash(
            "adit keygen 2022-blake3-aes-1",
            &["adit", "keygen", "2022-blake3-aes-1"]
        ),
        [format!("{method} ")]
    );
    // The shell splits words at the colon, and only replaces the part after it.
    assert_eq!(
        shells.complete_in_bash(
            "adit client ss://2022-blake3-aes-1",
            &["adit", "client", "ss", ":", "//2022-blake3-aes-1"]
        ),
        [format!("//{method}:")]
    );
    assert_eq!(
        shells.complete_in_bash(
            "adit server --method=2022-blake3-aes-1",
            &["adit", "server", "--method", "=", "2022-blake3-aes-1"]
        ),
        [format!("{method} ")]
    );
    // Inside quotes, it does not split.
    assert_eq!(
        shells.complete_in_bash(
            "adit client 'ss://2022-blake3-aes-1",
            &["adit", "client", "'ss://2022-blake3-aes-1"]
        ),
        [format!("ss://{method}:")]
    );
    assert_eq!(
        shells.complete_in_bash("adit ssh me@we", &["adit", "ssh", "me", "@", "we"]),
        ["web.example "]
    );
    assert_eq!(
        shells.complete_in_bash("adit ssh -c aes128-c", &["adit", "ssh", "-c", "aes128-c"]),
        ["aes128-ctr "]
    );
    shells.folder.write_file("a file", "").unwrap();
    assert_eq!(
        shells.complete_in_bash("adit check -c a", &["adit", "check", "-c", "a"]),
        ["a\\ file ", "adit.bash ", "adit.fish ", "adit.zsh "]
    );
    let hosts = shells.complete_in_bash("adit ssh ", &["adit", "ssh", ""]);
    for host in ["db ", "web.example "] {
        assert!(hosts.iter().any(|one| one == host), "{hosts:?}");
    }
}

/// Test tools for completions set only the words, without a line.
#[test]
fn bash_completes_words_without_a_line() {
    let shells = Shells::new();
    let script = "source ./adit.bash; COMP_WORDS=(adit client ss://2022-blake3-aes-1); \
        COMP_CWORD=2; _adit; printf '%s\\n' \"${COMPREPLY[@]}\"";
    assert_eq!(
        shells.run_shell("bash", &["--norc", "-c", script]),
        ["ss://2022-blake3-aes-128-gcm:"]
    );
}

#[test]
fn zsh_completes_words() {
    let shells = Shells::new();
    assert_eq!(
        shells.complete_in_zsh(&["adit", "client", "ss://2022-blake3-aes-1"]),
        ["ss://2022-blake3-aes-128-gcm:"]
    );
    assert_eq!(
        shells.complete_in_zsh(&["adit", "ssh", "me@we"]),
        ["me@web.example"]
    );
    assert_eq!(shells.complete_in_zsh(&["adit", "scp", "db"]), ["db:"]);
    assert_eq!(
        shells.complete_in_zsh(&["adit", "kcp", "client", "--mode", "fast3"]),
        ["fast3"]
    );
}

#[test]
fn fish_completes_lines() {
    let shells = Shells::new();
    assert_eq!(
        shells.complete_in_fish("adit client ss://2022-blake3-aes-1"),
        ["ss://2022-blake3-aes-128-gcm:"]
    );
    assert_eq!(
        shells.complete_in_fish("adit ssh me@we"),
        ["me@web.example"]
    );
    assert_eq!(shells.complete_in_fish("adit scp db"), ["db:"]);
    assert_eq!(
        shells.complete_in_fish("adit ssh -m hmac-sha2-256-e"),
        ["hmac-sha2-256-etm@openssh.com"]
    );
}
