//! Commands with captured output and a deadline.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// Number of lines shown of a failed command's output.
const SHOWN_LINES: usize = 120;

/// Returns the folder of the workspace.
pub(crate) fn root() -> PathBuf {
    let here = env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    here.join("../..").canonicalize().unwrap_or(here)
}

/// Returns the folder of build products.
pub(crate) fn target_dir() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |dir| root().join(dir))
}

/// Returns the path of the command with this name on the PATH, if there is one.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    // Debian keeps service tools in sbin, which the PATH of an ordinary user does not include.
    env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|dir| dir.join(name))
        .find(|file| file.is_file())
}

/// Returns the path of the file that captures the output of a command.
pub(crate) fn log_path(name: &str) -> PathBuf {
    let name = format!("{}.log", name.replace(['/', ' '], "-"));
    target_dir().join("xtask").join(name)
}

/// A command to be run in the workspace's folder.
#[derive(Debug)]
pub(crate) struct CommandRun {
    command: Command,
    limit: Duration,
}

impl CommandRun {
    /// Creates a command with a limit of ten minutes.
    pub(crate) fn new<S: AsRef<OsStr>>(
        program: impl AsRef<OsStr>,
        args: impl IntoIterator<Item = S>,
    ) -> Self {
        let mut command = Command::new(program);
        command.args(args).current_dir(root()).stdin(Stdio::null());
        Self {
            command,
            limit: Duration::from_secs(600),
        }
    }

    /// Creates a command for the cargo that runs this program.
    pub(crate) fn cargo<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Self {
        Self::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()), args)
    }

    pub(crate) fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.command.args(args);
        self
    }

    pub(crate) fn env(mut self, key: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(key, value);
        self
    }

    pub(crate) fn envs<K: AsRef<OsStr>, V: AsRef<OsStr>>(
        mut self,
        variables: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        self.command.envs(variables);
        self
    }

    /// Sets the working directory.
    pub(crate) fn in_folder(mut self, folder: impl AsRef<Path>) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Lets the command, and what it starts, use only processor time that nothing else wants. Without `chrt`, it runs as
    /// any other.
    pub(crate) fn at_idle_priority(self) -> Self {
        let Some(chrt) = find_program("chrt") else {
            return self;
        };
        let command = &self.command;
        let variables = command.get_envs();
        let mut idle = Self::new(chrt, ["--idle", "0"])
            .args([command.get_program()])
            .args(command.get_args())
            .envs(variables.filter_map(|(key, value)| Some((key, value?))));
        if let Some(folder) = command.get_current_dir() {
            idle = idle.in_folder(folder);
        }
        idle.limit = self.limit;
        idle
    }

    /// Sets the time, in minutes, after which the command and all its descendants are ended.
    pub(crate) fn with_limit(mut self, minutes: u64) -> Self {
        self.limit = Duration::from_secs(60 * minutes);
        self
    }

    /// Runs the command with the input and output of this process. Returns true if it succeeded.
    pub(crate) fn run_inherited(mut self) -> Result<bool> {
        let status = self.command.stdin(Stdio::inherit()).status();
        Ok(status.with_context(|| self.to_string())?.success())
    }

    /// Runs the command with its output captured in a file. Returns the output, or an error that ends with the end of
    /// the output: a log that is cut still shows what failed, and why.
    pub(crate) fn run_captured(mut self, log: &str) -> Result<String> {
        let log = log_path(log);
        log.parent().map_or(Ok(()), fs::create_dir_all)?;
        let file = File::create(&log)?;
        self.command.stdout(file.try_clone()?).stderr(file);
        let status = self.wait_with_limit();
        let output = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
        let why = match status {
            Ok(status) if status.success() => return Ok(output),
            Ok(status) => status.to_string(),
            Err(why) => format!("{why:#}"),
        };
        bail!(
            "{self}: {why}; see the output in {}\n{}",
            log.display(),
            output_tail(&output)
        );
    }

    fn wait_with_limit(&mut self) -> Result<ExitStatus> {
        let mut child = self.command.spawn().context("cannot start the command")?;
        let start = Instant::now();
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            if start.elapsed() > self.limit {
                for pid in descendants(child.id()) {
                    let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
                }
                child.kill()?;
                child.wait()?;
                bail!("ended after {} s", self.limit.as_secs());
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
}

impl std::fmt::Display for CommandRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}", self.command.get_program().to_string_lossy())?;
        for arg in self.command.get_args() {
            write!(f, " {}", arg.to_string_lossy())?;
        }
        write!(f, "`")
    }
}

/// Returns the descendants of `pid`, the youngest first.
pub(crate) fn descendants(pid: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let parents: Vec<(u32, u32)> = entries
        .filter_map(|entry| {
            let child = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            // The name in brackets may contain blanks: the state and the parent follow the last
            // bracket.
            let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?;
            Some((child, parent.parse().ok()?))
        })
        .collect();
    let mut found = vec![pid];
    let mut at = 0;
    while let Some(&parent) = found.get(at) {
        found.extend(
            parents
                .iter()
                .filter(|(_, p)| *p == parent)
                .map(|(c, _)| *c),
        );
        at += 1;
    }
    found.remove(0);
    found.reverse();
    found
}

/// Returns the end of the output, without libFuzzer's progress lines.
fn output_tail(output: &str) -> String {
    let progress = |line: &&str| {
        let numbered = line
            .strip_prefix('#')
            .is_some_and(|n| n.starts_with(|c: char| c.is_ascii_digit()));
        !numbered && !line.starts_with("\tNEW_FUNC")
    };
    let lines: Vec<&str> = output.trim_end().lines().filter(progress).collect();
    let from = lines.len().saturating_sub(SHOWN_LINES);
    lines.get(from..).unwrap_or_default().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_kept_and_a_failure_shows_it() {
        let told = CommandRun::new("sh", ["-c", "echo out; echo err >&2"])
            .run_captured("t1")
            .unwrap();
        assert_eq!(told, "out\nerr\n");
        let why = CommandRun::new("sh", ["-c", "echo because; exit 3"])
            .run_captured("t2")
            .unwrap_err();
        let why = format!("{why:#}");
        assert!(
            why.ends_with("\nbecause") && why.contains("exit status: 3"),
            "{why}"
        );
    }

    #[test]
    fn a_command_over_its_limit_ends_with_its_children() {
        let mut run =
            CommandRun::new("sh", ["-c", "echo $$; sleep 77 & sleep 78; true"]).with_limit(0);
        run.limit = Duration::from_millis(300);
        let why = format!("{:#}", run.run_captured("t3").unwrap_err());
        assert!(why.lines().next().unwrap().contains("ended after"), "{why}");
        // The shell may say that its child was killed.
        let shell: u32 = why.lines().nth(1).unwrap().trim().parse().unwrap();
        assert!(descendants(shell).is_empty());
        assert!(!PathBuf::from(format!("/proc/{shell}")).exists());
    }

    #[test]
    fn an_idle_command_keeps_its_arguments_and_settings() {
        let script = r#"echo "$1 $VALUE"; pwd; chrt --pid $$"#;
        let told = CommandRun::new("sh", ["-c", script, "sh", "one"])
            .env("VALUE", "two")
            .in_folder("/")
            .at_idle_priority()
            .run_captured("t4")
            .unwrap();
        assert!(told.starts_with("one two\n/\n"), "{told}");
        assert!(told.contains("SCHED_IDLE"), "{told}");
    }

    #[test]
    fn the_root_holds_the_workspace() {
        assert!(root().join("proto/adit-wire/Cargo.toml").is_file());
    }

    #[test]
    fn only_the_end_of_long_output_is_shown() {
        let long: String = (0..1000).map(|n| format!("{n}\n")).collect();
        assert_eq!(output_tail(&long).lines().count(), SHOWN_LINES);
        assert!(output_tail(&long).ends_with("999"));
        assert_eq!(
            output_tail("#12\tNEW cov: 1\n# a title\n\tNEW_FUNC[1/1]: 0x1\nend\n"),
            "# a title\nend"
        );
    }
}
