//! Commands and processes that need the rights of root.

use std::fs::{self, File};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::command::{CommandRun, find_program, log_path};

/// Where the commands are in a root folder; nothing that runs there has another variable from here.
pub(crate) const PATH: &str = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";
/// Time between two checks of a process.
const INTERVAL: Duration = Duration::from_millis(100);

/// Creates a command that needs the rights of root.
pub(crate) fn privileged(program: &str, args: &[&str]) -> Result<CommandRun> {
    let words = privileged_words(&[&[program], args].concat())?;
    let (program, args) = words.split_first().context("no program")?;
    Ok(CommandRun::new(program, args))
}

/// Returns true if commands have the rights of root without a question.
pub(crate) fn has_privilege() -> bool {
    privileged("true", &[]).is_ok_and(|run| run.run_captured("privilege").is_ok())
}

/// Returns the words of a command with the rights of root: as they are for root, and with sudo for other users.
fn privileged_words(words: &[&str]) -> Result<Vec<String>> {
    let id = CommandRun::new("id", ["-u"]).run_captured("id")?;
    let before: &[&str] = if id.trim() == "0" {
        &[]
    } else {
        &["sudo", "-n"]
    };
    ensure!(
        before.is_empty() || find_program("sudo").is_some(),
        "this needs root, or sudo without a password"
    );
    Ok([before, words]
        .concat()
        .into_iter()
        .map(str::to_owned)
        .collect())
}

/// Starts a process with the rights of root, whose output is in the log of this name.
pub(crate) fn spawn_privileged(words: &[&str], log: &str) -> Result<Child> {
    let words = privileged_words(words)?;
    let (program, args) = words.split_first().context("no program")?;
    let log = File::create(log_path(log))?;
    Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .with_context(|| words.join(" "))
}

/// Waits until `check` returns a value. The error of `check`, and of one that returns none for `limit`, has the log of the
/// process.
pub(crate) fn wait_for<T>(
    what: &str,
    limit: Duration,
    log: &str,
    mut check: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let log = || fs::read_to_string(log_path(log)).unwrap_or_default();
    let start = Instant::now();
    loop {
        if let Some(found) = check().with_context(log)? {
            return Ok(found);
        }
        if start.elapsed() > limit {
            bail!("not in {} s: {what}\n{}", limit.as_secs(), log());
        }
        thread::sleep(INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_with_a_value_an_error_or_its_limit() {
        let mut left = 2;
        let found = wait_for("two checks", Duration::from_secs(60), "no-such-log", || {
            left -= 1;
            Ok((left == 0).then_some(7))
        });
        assert_eq!(found.unwrap(), 7);
        let failed = wait_for::<()>("it", Duration::from_secs(60), "no-such-log", || {
            bail!("it has ended")
        });
        assert!(format!("{:#}", failed.unwrap_err()).contains("it has ended"));
        let late = wait_for::<()>("it answers", Duration::ZERO, "no-such-log", || Ok(None));
        assert!(late.unwrap_err().to_string().contains("it answers"));
    }
}
