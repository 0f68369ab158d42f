//! Help and manual pages, from the same tables.

use adit_cli::{Code, Done, Failure};
use adit_config::{nearest_word, schemes};
use anyhow::Context;
use clap::CommandFactory;

use super::topic::{self, PAGES, Page};
use crate::args::{self, Args};

pub(super) fn help(typed: &args::Help) -> Done {
    let mut command = Args::command();
    let Some(topic) = &typed.topic else {
        return Ok(command.print_long_help().context("printing")?);
    };
    if topic.eq_ignore_ascii_case("urls") {
        print!("{}", adit_config::schemes_overview());
        return Ok(());
    }
    if let Some(text) = topic::text(topic) {
        print!("{text}");
        return Ok(());
    }
    if let Some(text) = adit_config::scheme_help(topic) {
        print!("{text}");
        return Ok(());
    }
    command.build();
    match command.find_subcommand_mut(topic) {
        Some(found) => Ok(found.print_long_help().context("printing")?),
        None => {
            let names = command.get_subcommands().map(|c| c.get_name().to_owned());
            let all: Vec<String> = names
                .chain(topic::names())
                .chain(schemes().iter().map(|s| s.name.to_owned()))
                .collect();
            let failure = Failure::new(Code::Usage, format!("no help on `{topic}`"));
            Err(match nearest_word(topic, all.iter().map(String::as_str)) {
                Some(near) => failure.hint(format!("did you mean `adit help {near}`?")),
                None => failure.hint("adit help lists the commands, adit help URLS the schemes"),
            })
        }
    }
}

pub(super) fn man(typed: &args::Man) -> Done {
    let mut command = Args::command();
    match &typed.dir {
        Some(dir) => {
            std::fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
            clap_mangen::generate_to(command, dir)
                .with_context(|| format!("writing into {}", dir.display()))?;
            for page in &PAGES {
                let path = dir.join(page.file_name());
                std::fs::write(&path, page.roff())
                    .with_context(|| format!("writing {}", path.display()))?;
            }
        }
        None => {
            if let Some(name) = &typed.page {
                if let Some(page) = Page::find(name) {
                    print!("{}", page.roff());
                    return Ok(());
                }
                command = page_of(command, name)?;
            }
            clap_mangen::Man::new(command)
                .render(&mut std::io::stdout())
                .context("writing the page")?;
        }
    }
    Ok(())
}

/// The command that a page is about: `adit`, `run` or `adit-run`.
fn page_of(mut command: clap::Command, name: &str) -> Result<clap::Command, Failure> {
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
        Failure::new(Code::Usage, format!("no manual page `{name}`")).hint(hint)
    })
}
