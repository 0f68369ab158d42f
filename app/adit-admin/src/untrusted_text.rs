//! Rules for text that arrives over a socket.

use std::io;
use std::path::Path;

use adit_config::{FileText, Problem, Sources};
use zeroize::Zeroizing;

/// Sources without files and variables: remote text must not refer to those of this machine.
pub(crate) struct NoExternalSources;

impl Sources for NoExternalSources {
    fn read_file(&self, _: &Path) -> io::Result<FileText> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn read_variable(&self, _: &str) -> Option<Zeroizing<String>> {
        None
    }
}

/// Returns the titles of problems, which contain no secrets, in one line.
pub(crate) fn join_titles(problems: &[Problem]) -> String {
    let titles: Vec<&str> = problems.iter().map(|p| p.title.as_str()).collect();
    titles.join("; ")
}

/// Returns the titles of problems with their places in the text, which contain no secrets, in one line.
pub(crate) fn join_places(problems: &[Problem]) -> String {
    let line = |problem: &Problem| match &problem.place {
        Some(place) => format!(
            "line {}, column {}: {}",
            place.line, place.column, problem.title
        ),
        None => problem.title.clone(),
    };
    let lines: Vec<String> = problems.iter().map(line).collect();
    lines.join("; ")
}

/// Returns true if the text is a valid user name.
pub(crate) fn is_user_name(name: &str) -> bool {
    (1..=255).contains(&name.len()) && !name.chars().any(char::is_control)
}
