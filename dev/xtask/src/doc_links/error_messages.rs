//! The messages of the error index: each must occur in the program's sources.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::document::prose_lines;
use crate::source_files::{has_extension, is_below, read_files};

/// The index. The first column of its tables has messages in code spans, in which `…` is a value.
const INDEX: &str = "docs/book/errors.md";
/// The folders of the sources that contain messages.
const SOURCES: &[&str] = &["app", "io", "proto"];
/// Messages of the command-line parser and of the system.
const FOREIGN_MESSAGES: &[&str] = &[
    "the following required arguments were not provided",
    "unrecognized subcommand",
    ": Address already in use",
    ": Permission denied",
];
/// Minimum length of a part of a message; shorter parts occur anywhere.
const MIN_PART_LEN: usize = 8;

/// Returns the messages that no source contains.
pub(super) fn find_faults(root: &Path) -> Result<Vec<String>> {
    let index = fs::read_to_string(root.join(INDEX)).context(INDEX)?;
    let sources = read_files(root, |path| {
        let has_messages = SOURCES.iter().any(|folder| path.starts_with(folder));
        has_messages && has_extension(path, &["rs"]) && !is_below(path, "tests")
    })?;
    let sources: String = sources
        .iter()
        .map(|source| join_continued_lines(&source.text))
        .collect();
    Ok(missing_messages(&index, &sources))
}

/// Returns source text with string literals that continue on the next line joined.
fn join_continued_lines(source: &str) -> String {
    let mut parts = source.split("\\\n");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str(part.trim_start());
    }
    out
}

/// Returns the parts of messages in the tables of `index` that `sources` does not contain.
fn missing_messages(index: &str, sources: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for (number, line) in prose_lines(index) {
        let Some(cell) = line.strip_prefix("| `") else {
            continue;
        };
        // Every second part is between backticks; the first begins after one.
        let first = cell.split(" | ").next().unwrap_or_default();
        for message in first.split('`').step_by(2) {
            for part in message.split('…').map(str::trim) {
                let known = part.len() < MIN_PART_LEN || FOREIGN_MESSAGES.contains(&part);
                if !known && !sources.contains(part) {
                    faults.push(format!("{INDEX}:{number}: no source contains `{part}`"));
                }
            }
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_looked_up_by_their_parts() {
        let sources = join_continued_lines(
            "(\"no connection to {server}: {e}\"), \"the clock is \\\n    wrong\"",
        );
        let index = "| `no connection to …` | a | b |\n| `… the clock is wrong` | c | d |\n\
                     | message | `not looked at here` |\n| `the clock is right`, `unrecognized subcommand` | e |\n";
        assert_eq!(
            missing_messages(index, &sources),
            ["docs/book/errors.md:4: no source contains `the clock is right`"]
        );
    }
}
