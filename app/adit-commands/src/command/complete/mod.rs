//! Completions: scripts for shells that ask the program, and its answers.
//!
//! A script passes the words of the line to the hidden `adit complete`. clap finds out which argument
//! the last one belongs to, and `values` has what may stand there.

mod files;
mod hosts;
mod lists;
mod urls;
mod values;

use std::ffi::OsString;

use adit_cli::{Done, Failure};
use anyhow::Context;
use clap::CommandFactory;
use clap_complete::Shell;
use clap_complete::engine::{CompletionCandidate, complete as candidates};

use crate::args::{self, Args, CompleteFor};

/// Prints the script for a shell. Those of bash, zsh and fish ask the program.
pub(super) fn completion(typed: &args::Completion) -> Done {
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

/// Prints what may stand in the place of a word, one completion on each line.
pub(super) fn complete(typed: &args::Complete) -> Done {
    for candidate in answer(typed.words.clone(), typed.index)? {
        if let Some(line) = line(&candidate, typed.shell, typed.raw) {
            println!("{line}");
        }
    }
    Ok(())
}

/// The completions of the word at `index`, the name of the program included.
fn answer(words: Vec<OsString>, index: usize) -> Result<Vec<CompletionCandidate>, Failure> {
    // A newer shell than this program may count otherwise.
    if index >= words.len() {
        return Ok(Vec::new());
    }
    let mut command = values::with_values(Args::command());
    let found = candidates(&mut command, words, index, None).context("completing")?;
    Ok(found)
}

/// A completion as the script of a shell reads it; `None` for one that is not text on one line.
fn line(candidate: &CompletionCandidate, shell: CompleteFor, raw: bool) -> Option<String> {
    let value = candidate.get_value().to_str()?;
    if value.is_empty() || value.contains(char::is_control) {
        return None;
    }
    let goes_on = value.ends_with([':', '/', '@', '=', ',']);
    Some(match shell {
        CompleteFor::Bash if raw => value.to_owned(),
        CompleteFor::Bash => format!("{}{}", escaped(value), if goes_on { "" } else { " " }),
        CompleteFor::Zsh | CompleteFor::Fish => {
            let help = candidate.get_help().map(ToString::to_string);
            let help = help.unwrap_or_default();
            match help.lines().next().map(str::trim) {
                Some(help) if !help.is_empty() => format!("{value}\t{help}"),
                _ => value.to_owned(),
            }
        }
    })
}

/// A word as bash takes it outside of quotes.
fn escaped(value: &str) -> String {
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
