//! `adit man`: the manual pages.

use adit_cli::{CommandResult, Failure, FailureCode};
use anyhow::Context;
use clap::CommandFactory;

use super::help_topic::{ManualPage, PAGES};
use crate::args::{self, Args};

pub(super) fn write_manual(typed: &args::ManArgs) -> CommandResult {
    let mut command = Args::command();
    match &typed.dir {
        Some(dir) => {
            std::fs::create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))?;
            clap_mangen::generate_to(command, dir)
                .with_context(|| format!("writing to {}", dir.display()))?;
            for page in &PAGES {
                let path = dir.join(page.file_name());
                std::fs::write(&path, page.to_roff())
                    .with_context(|| format!("writing {}", path.display()))?;
            }
        }
        None => {
            if let Some(name) = &typed.page {
                if let Some(page) = ManualPage::find_by_name(name) {
                    print!("{}", page.to_roff());
                    return Ok(());
                }
                command = command_of_page(command, name)?;
            }
            clap_mangen::Man::new(command)
                .render(&mut std::io::stdout())
                .context("writing the manual page")?;
        }
    }
    Ok(())
}

/// Returns the command of a page name: `adit`, `run` or `adit-run`.
fn command_of_page(mut command: clap::Command, name: &str) -> Result<clap::Command, Failure> {
    if name == "adit" {
        return Ok(command);
    }
    command.build();
    let found = command.find_subcommand(name.strip_prefix("adit-").unwrap_or(name));
    found.cloned().ok_or_else(|| {
        let pages: Vec<&str> = PAGES.iter().map(|page| page.name).collect();
        let hint = format!(
            "pages: adit, {}, and one for each command",
            pages.join(", ")
        );
        Failure::new(FailureCode::Usage, format!("no manual page `{name}`")).with_hint(hint)
    })
}
