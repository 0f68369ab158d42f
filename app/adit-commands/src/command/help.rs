//! `adit help`.

use adit_cli::{CommandResult, Failure, FailureCode};
use adit_config::{nearest_word, schemes};
use anyhow::Context;
use clap::CommandFactory;

use super::help_topic;
use crate::args::{self, Args};
use crate::features;

pub(super) fn print_help(typed: &args::HelpArgs) -> CommandResult {
    let mut command = Args::command();
    let Some(topic) = &typed.topic else {
        return Ok(command.print_long_help().context("printing the help")?);
    };
    if topic.eq_ignore_ascii_case("urls") {
        print!("{}", adit_config::schemes_overview());
        return Ok(());
    }
    if let Some(text) = help_topic::topic_text(topic) {
        print!("{text}");
        return Ok(());
    }
    if let Some(text) = adit_config::scheme_help(topic) {
        print!("{text}");
        return Ok(());
    }
    features::check_name(topic)?;
    command.build();
    match command.find_subcommand_mut(topic) {
        Some(found) => Ok(found.print_long_help().context("printing the help")?),
        None => {
            let names = command.get_subcommands().map(|c| c.get_name().to_owned());
            let all: Vec<String> = names
                .chain(help_topic::topic_names())
                .chain(schemes().iter().map(|s| s.name.to_owned()))
                .collect();
            let failure = Failure::new(FailureCode::Usage, format!("no help on `{topic}`"));
            Err(match nearest_word(topic, all.iter().map(String::as_str)) {
                Some(near) => failure.with_hint(format!("did you mean `adit help {near}`?")),
                None => failure
                    .with_hint("`adit help` lists the commands, `adit help URLS` the schemes"),
            })
        }
    }
}
