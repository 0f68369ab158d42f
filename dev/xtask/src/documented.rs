//! The commands of the documentation that build, measure or check the repository: each runs as its page has it, by a
//! shell in the root of the repository.
//!
//! All other commands of the documentation run in the walkthroughs of `app/adit/tests/it`.

use std::collections::BTreeSet;

use adit_doc_commands::{PageCommand, commands_of, pages};
use anyhow::{Context, Result};

use crate::command::{CommandRun, root};
use crate::install::InstallScope;
use crate::steps::StepRunner;

/// The command whose run this is.
const THIS_RUN: &str = "cargo xtask test";
/// The beginning of commands that measure.
const MEASURES: &str = "cargo xtask bench";
/// The options that are added to them: tiny amounts, and no rivals, which the step `bench smoke` measures.
const SMOKE: &str = "--smoke --only adit";
/// Downloads the programs of all rivals.
const INSTALLS_RIVALS: &str = "cargo xtask install --rivals";
/// Other emulated tests than those of the archives.
const EMULATED: &str = "cargo xtask emulated";
/// The beginning of commands that make archives.
const ARCHIVES: &str = "cargo xtask dist";
/// The time after which a command is ended, in minutes.
const LIMIT: u64 = 120;

/// When a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunTime {
    /// The run of all tests is this command.
    Now,
    /// In every run of all tests.
    Always,
    /// Only with `--all`: it downloads, or compiles for other machines.
    WithAll,
}

/// Returns the commands of all pages for the repository, each once, in the order of the pages.
fn read_commands() -> Result<Vec<(String, PageCommand)>> {
    let root = root();
    let (mut found, mut known) = (Vec::new(), BTreeSet::new());
    for page in pages(&root)? {
        let text = std::fs::read_to_string(root.join(&page)).with_context(|| page.clone())?;
        for command in commands_of(&text).with_context(|| page.clone())? {
            if command.is_for_repository() && known.insert(command.words()) {
                found.push((page.clone(), command));
            }
        }
    }
    Ok(found)
}

fn run_time(command: &PageCommand) -> RunTime {
    let line = command.words().join(" ");
    match line.strip_prefix(ARCHIVES) {
        // The archive for this processor is made in any case.
        Some("" | " --run") => return RunTime::Always,
        Some(_) => return RunTime::WithAll,
        None => {}
    }
    match line.as_str() {
        THIS_RUN => RunTime::Now,
        INSTALLS_RIVALS | EMULATED => RunTime::WithAll,
        _ => RunTime::Always,
    }
}

/// Returns the line that a shell runs.
fn shell_line(command: &PageCommand) -> String {
    match command.text.starts_with(MEASURES) {
        // Without the comment that may end it.
        true => format!("{} {SMOKE}", command.words().join(" ")),
        false => command.text.clone(),
    }
}

/// Runs the commands, one step for each.
pub(crate) fn run(steps: &mut StepRunner, scope: InstallScope) {
    let mut commands = Vec::new();
    let read = steps.run_step("documented commands", || {
        commands = read_commands()?;
        let slow = |(_, command): &&(String, PageCommand)| run_time(command) == RunTime::WithAll;
        let left = match scope {
            InstallScope::All => String::new(),
            InstallScope::Default => {
                let left = commands.iter().filter(slow).count();
                format!(", {left} of them only with --all")
            }
        };
        Ok(format!("{}{left}", commands.len()))
    });
    if !read {
        return;
    }
    for (page, command) in &commands {
        let runs = match run_time(command) {
            RunTime::Now => false,
            RunTime::Always => true,
            RunTime::WithAll => scope == InstallScope::All,
        };
        if runs {
            let line = shell_line(command);
            let name = command.words().join(" ");
            steps.run_step(&name, || {
                CommandRun::new("sh", ["-ec", &line])
                    .with_limit(LIMIT)
                    .run_captured(&format!("documented-{name}"))
                    .with_context(|| format!("{page}:{}: `{line}`", command.line))?;
                Ok(page.clone())
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source_files::{has_extension, read_files};
    use crate::workflows::xtask_commands;

    fn command(text: &str) -> PageCommand {
        PageCommand {
            block: 1,
            line: 1,
            text: text.to_owned(),
        }
    }

    #[test]
    fn only_slow_commands_wait_for_all() {
        for (text, expected) in [
            ("cargo xtask test", RunTime::Now),
            ("cargo xtask dist   # a note", RunTime::Always),
            ("cargo xtask dist --run", RunTime::Always),
            ("cargo xtask dist --twice", RunTime::WithAll),
            ("cargo xtask dist --run x", RunTime::WithAll),
            ("cargo xtask emulated", RunTime::WithAll),
            ("cargo xtask install --rivals", RunTime::WithAll),
            ("cargo xtask install", RunTime::Always),
            ("cargo build --release", RunTime::Always),
        ] {
            assert_eq!(run_time(&command(text)), expected, "{text}");
        }
    }

    #[test]
    fn benchmarks_are_short() {
        let line = |text| shell_line(&command(text));
        assert_eq!(
            line("cargo xtask bench --suite a # note"),
            "cargo xtask bench --suite a --smoke --only adit"
        );
        assert_eq!(line("cargo build --release"), "cargo build --release");
    }

    #[test]
    fn the_pages_have_commands_for_the_repository() {
        let found = read_commands().unwrap();
        // Those of Windows, the emulated ones and the measurements of a fleet have no other step.
        for words in [
            "cargo build --release",
            "cargo xtask bench --suite fleet",
            "cargo xtask windows",
            EMULATED,
            THIS_RUN,
        ] {
            let one = |(_, command): &&(String, PageCommand)| command.words().join(" ") == words;
            assert_eq!(found.iter().filter(one).count(), 1, "{words}: {found:#?}");
        }
    }

    #[test]
    fn commands_that_the_documents_name_exist() {
        let documents = read_files(&root(), |path| has_extension(path, &["md"])).unwrap();
        let mut count = 0;
        for document in documents {
            for name in xtask_commands(&document.text).filter(|name| !name.is_empty()) {
                assert!(crate::has_command(name), "{}: `{name}`", document.path);
                count += 1;
            }
        }
        assert!(count > 20, "{count} commands");
    }
}
