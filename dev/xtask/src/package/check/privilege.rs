//! Commands that need the rights of root.

use anyhow::{Context, Result, ensure};

use crate::command::{CommandRun, find_program};

/// Creates a command that needs the rights of root.
pub(super) fn privileged(program: &str, args: &[&str]) -> Result<CommandRun> {
    let words = privileged_words(&[&[program], args].concat())?;
    let (program, args) = words.split_first().context("no program")?;
    Ok(CommandRun::new(program, args))
}

/// Returns the words of a command with the rights of root: as they are for root, and with sudo for other users.
pub(super) fn privileged_words(words: &[&str]) -> Result<Vec<String>> {
    let id = CommandRun::new("id", ["-u"]).run_captured("id")?;
    let before: &[&str] = if id.trim() == "0" {
        &[]
    } else {
        &["sudo", "-n"]
    };
    ensure!(
        before.is_empty() || find_program("sudo").is_some(),
        "installing packages in a folder needs root, or sudo without a password"
    );
    Ok([before, words]
        .concat()
        .into_iter()
        .map(str::to_owned)
        .collect())
}
