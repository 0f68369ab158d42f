//! Checks the workflows of CI with actionlint, which also runs shellcheck on their scripts, and that the commands of
//! this program that they run exist.

use std::fs;

use anyhow::{Context, Result, ensure};

use crate::command::{CommandRun, root};
use crate::install::actionlint_program;

/// The folder of the workflows.
const FOLDER: &str = ".github/workflows";

pub(crate) fn check_workflows() -> Result<String> {
    let program = actionlint_program();
    ensure!(
        program.is_file(),
        "actionlint is missing: `cargo xtask install` builds it"
    );
    let mut count = 0;
    let mut unknown = Vec::new();
    for entry in fs::read_dir(root().join(FOLDER)).context(FOLDER)? {
        let path = entry?.path();
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let commands = xtask_commands(&text).filter(|name| !crate::has_command(name));
        unknown.extend(commands.map(|name| format!("{}: `{name}`", path.display())));
        count += 1;
    }
    ensure!(
        unknown.is_empty(),
        "`cargo xtask` has no such command:\n{}",
        unknown.join("\n")
    );
    CommandRun::new(program, ["-no-color", "-oneline"]).run_captured("actionlint")?;
    Ok(format!("{count} workflows"))
}

/// Returns the commands of `cargo xtask` in a text.
pub(crate) fn xtask_commands(text: &str) -> impl Iterator<Item = &str> {
    let calls = text.split("cargo xtask ").skip(1);
    calls.filter_map(|call| {
        call.split(|c: char| !c.is_ascii_alphanumeric() && c != '-')
            .next()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found() {
        let text = "run: cargo xtask fuzz --seconds 3\n  - run: cargo xtask api\n# cargo test\n";
        assert_eq!(xtask_commands(text).collect::<Vec<_>>(), ["fuzz", "api"]);
        assert!(crate::has_command("fuzz") && !crate::has_command("fuz"));
    }
}
