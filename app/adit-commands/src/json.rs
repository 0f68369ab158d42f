//! `--json`: results, events and failures for programs.
//!
//! A command prints one document, `{"command": …, "result": …}`. A command that serves or measures prints one per
//! line, each with an `event`. A failure is `{"error": …}` on standard error. All names are in camel case, as in the
//! management API; docs/book/commands.md describes them.

use std::ffi::OsString;
use std::process::ExitCode;

use adit_cli::{Failure, FailureCode};
use adit_config::{Plan, Problem, WarningKind};
use clap::CommandFactory;
use clap::error::ErrorKind;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::args::Args;

/// The exit code of invalid arguments.
const USAGE: u8 = FailureCode::Usage as u8;
/// Name of the option.
const OPTION: &str = "json";

/// Prints the result of a command.
pub(crate) fn print_result(command: &str, result: &impl Serialize) {
    print_document(&json!({ "command": command, "result": result }));
}

/// Prints an event of a command that keeps running, in one line.
pub(crate) fn print_event(command: &str, event: &str, result: &impl Serialize) {
    print_document(&json!({ "command": command, "event": event, "result": result }));
}

fn print_document(document: &Value) {
    println!("{document}");
}

/// Returns the warnings of a plan. Secrets on the command line are one of them, without a place.
pub(crate) fn warnings_of(plan: &Plan) -> Vec<Value> {
    let mut warnings: Vec<Value> = Vec::new();
    for warning in &plan.warnings {
        let value = match warning.kind {
            WarningKind::LiteralSecret => problem_value(&Problem::without_place(
                "all users of this machine can read a key on the command line",
                "write `@FILE` or `$NAME` instead",
            )),
            _ => problem_value(&warning.about),
        };
        if !warnings.contains(&value) {
            warnings.push(value);
        }
    }
    warnings
}

/// Prints a failure as JSON on standard error, and returns the exit code.
pub(crate) fn print_failure(failure: &Failure) -> ExitCode {
    let code = exit_code(failure);
    if let Some(error) = error_value(failure, code) {
        eprintln!("{}", json!({ "error": error }));
    }
    ExitCode::from(code)
}

/// Prints the error of arguments as JSON if they ask for it, and returns the exit code. Help and versions are no errors.
pub(crate) fn print_usage_error(why: &clap::Error, words: &[OsString]) -> Option<ExitCode> {
    let is_error = !matches!(
        why.kind(),
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    if !is_error || !is_requested(words) {
        return None;
    }
    let text = why.render().to_string();
    let mut paragraphs = text.split("\n\n").map(one_line);
    let what = paragraphs.next().unwrap_or_default();
    let what = what.strip_prefix("error: ").unwrap_or(&what).to_owned();
    let help: Vec<String> = paragraphs
        .filter(|text| !text.is_empty() && !text.starts_with("For more information"))
        .collect();
    let help = (!help.is_empty()).then(|| help.join("; "));
    let error = json!({ "what": what, "where": null, "help": help, "exitCode": USAGE });
    eprintln!("{}", json!({ "error": error }));
    Some(ExitCode::from(USAGE))
}

/// Returns true if the words contain `--json`, and the command has this option.
pub(crate) fn is_requested(words: &[OsString]) -> bool {
    let mut root = Args::command();
    root.build();
    let mut command = &root;
    let mut is_requested = false;
    for word in words.iter().skip(1).filter_map(|word| word.to_str()) {
        match word {
            "--" => break,
            "--json" => is_requested = true,
            _ => command = command.find_subcommand(word).unwrap_or(command),
        }
    }
    is_requested && command.get_arguments().any(|arg| arg.get_id() == OPTION)
}

fn exit_code(failure: &Failure) -> u8 {
    match failure {
        Failure::Exit { status, .. } => *status,
        other => other.code() as u8,
    }
}

/// Returns the error of a failure; `None` if it is an exit code alone.
fn error_value(failure: &Failure, exit_code: u8) -> Option<Value> {
    let mut error = match failure {
        Failure::Plain { what, hint, .. } => object([
            ("what", json!(what)),
            ("where", Value::Null),
            ("help", json!(hint)),
        ]),
        Failure::Config(problems) => {
            let mut problems = problems.iter().map(problem_value);
            let mut first = match problems.next() {
                Some(Value::Object(first)) => first,
                _ => return None,
            };
            let more: Vec<Value> = problems.collect();
            if !more.is_empty() {
                first.insert("more".to_owned(), Value::Array(more));
            }
            first
        }
        Failure::Exit { why, .. } => {
            return error_value(why.as_deref()?, exit_code);
        }
    };
    error.insert("exitCode".to_owned(), json!(exit_code));
    Some(Value::Object(error))
}

/// Returns the finding of a failure in an event: the same as its error, without an exit code.
pub(crate) fn finding_value(failure: &Failure) -> Value {
    let mut error = error_value(failure, 0).unwrap_or(Value::Null);
    if let Some(error) = error.as_object_mut() {
        error.remove("exitCode");
    }
    error
}

/// Returns a problem of a configuration. Its place is redacted already.
fn problem_value(problem: &Problem) -> Value {
    let mut what = problem.title.clone();
    if !problem.label.is_empty() {
        what.push_str(&format!(" ({})", problem.label));
    }
    let help = (!problem.help.is_empty()).then(|| problem.help.join("; "));
    let place = problem.place.as_ref().map(ToString::to_string);
    Value::Object(object([
        ("what", json!(what)),
        ("where", json!(place)),
        ("help", json!(help)),
    ]))
}

fn object<const N: usize>(entries: [(&str, Value); N]) -> Map<String, Value> {
    let entries = entries.into_iter();
    entries
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// Joins the lines of a text by spaces.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn json_is_requested_from_commands_that_have_it() {
        for line in ["adit keygen --json", "adit -v keygen --nonsense --json"] {
            assert!(is_requested(&words(line)), "{line}");
        }
        for line in ["adit keygen", "adit keygen -- --json", "adit schema --json"] {
            assert!(!is_requested(&words(line)), "{line}");
        }
    }

    #[test]
    fn failures_have_one_form() {
        let failure = Failure::new(FailureCode::Network, "no answer").with_hint("start it");
        let error = error_value(&failure, exit_code(&failure)).unwrap();
        assert_eq!(
            error,
            json!({"what": "no answer", "where": null, "help": "start it", "exitCode": 4})
        );
        let failure = failure.with_status(130);
        let error = error_value(&failure, exit_code(&failure)).unwrap();
        assert_eq!(error["exitCode"], 130);
        let problems = ["a", "b"].map(|title| Problem::without_place(title, "mend it"));
        let failure = Failure::Config(problems.to_vec());
        let error = error_value(&failure, exit_code(&failure)).unwrap();
        assert_eq!(error["what"], "a");
        assert_eq!(error["exitCode"], 3);
        assert_eq!(
            error["more"],
            json!([{"what": "b", "where": null, "help": "mend it"}])
        );
        let silent = Failure::Exit {
            status: 7,
            why: None,
        };
        assert_eq!(error_value(&silent, 7), None);
    }
}
