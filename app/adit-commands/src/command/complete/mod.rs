//! `adit completion` and the hidden `adit complete`: scripts for shells, and the candidates that they
//! request.
//!
//! A script passes the words of the line to `adit complete`. clap finds the argument that the last
//! word belongs to, and `completers` has its possible values.

mod algorithms;
mod completers;
mod files;
mod hosts;
mod urls;

use std::ffi::OsString;

use adit_cli::{CommandResult, Failure};
use anyhow::Context;
use clap::CommandFactory;
use clap_complete::Shell;
use clap_complete::engine::{CompletionCandidate, complete};

use crate::args::{self, Args, ScriptedShell};

/// Prints the script for a shell. The scripts for bash, zsh and fish run `adit complete`.
pub(super) fn print_script(typed: &args::CompletionArgs) -> CommandResult {
    match typed.shell {
        Shell::Bash => print!("{}", include_str!("scripts/adit.bash")),
        Shell::Zsh => print!("{}", include_str!("scripts/adit.zsh")),
        Shell::Fish => print!("{}", include_str!("scripts/adit.fish")),
        other => {
            let mut command = Args::command();
            clap_complete::generate(other, &mut command, "adit", &mut std::io::stdout());
        }
    }
    Ok(())
}

/// Prints the completions of a word, one per line.
pub(super) fn print_candidates(typed: &args::CompleteArgs) -> CommandResult {
    for candidate in find_candidates(typed.words.clone(), typed.index)? {
        if let Some(line) = format_line(&candidate, typed.shell, typed.raw) {
            println!("{line}");
        }
    }
    Ok(())
}

/// Returns the completions of the word at `index`; the name of the program has index 0.
fn find_candidates(
    words: Vec<OsString>,
    index: usize,
) -> Result<Vec<CompletionCandidate>, Failure> {
    // The script of another version may count differently.
    if index >= words.len() {
        return Ok(Vec::new());
    }
    let mut command = completers::with_completers(Args::command());
    let found = complete(&mut command, words, index, None).context("completing")?;
    Ok(found)
}

/// Returns a completion in the format of a shell's script, or `None` if it is not text on one line.
fn format_line(candidate: &CompletionCandidate, shell: ScriptedShell, raw: bool) -> Option<String> {
    let value = candidate.get_value().to_str()?;
    if value.is_empty() || value.contains(char::is_control) {
        return None;
    }
    let is_partial = value.ends_with([':', '/', '@', '=', ',']);
    Some(match shell {
        ScriptedShell::Bash if raw => value.to_owned(),
        ScriptedShell::Bash => format!(
            "{}{}",
            escape_for_bash(value),
            if is_partial { "" } else { " " }
        ),
        ScriptedShell::Zsh | ScriptedShell::Fish => {
            let help = candidate.get_help().map(ToString::to_string);
            let help = help.unwrap_or_default();
            match help.lines().next().map(str::trim) {
                Some(help) if !help.is_empty() => format!("{value}\t{help}"),
                _ => value.to_owned(),
            }
        }
    })
}

/// Escapes a word for bash, outside quotes.
fn escape_for_bash(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for letter in value.chars() {
        if " \"'\\$`&|;<>()*?[]{}!#".contains(letter) {
            out.push('\\');
        }
        out.push(letter);
    }
    out
}

#[cfg(test)]
mod tests;
