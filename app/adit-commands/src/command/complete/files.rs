//! Completions of file names.

use std::ffi::OsStr;

use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter};

use super::urls::add_prefix;

/// Returns the completions of `@FILE`.
pub(super) fn complete_at_file(typed: &str) -> Vec<CompletionCandidate> {
    match typed.strip_prefix('@') {
        Some(path) => add_prefix(complete_path(path), "@"),
        None if typed.is_empty() => add_prefix(complete_path(""), "@"),
        None => Vec::new(),
    }
}

/// Returns the files and folders whose path starts with `typed`.
pub(super) fn complete_path(typed: &str) -> Vec<CompletionCandidate> {
    PathCompleter::any().complete(OsStr::new(typed))
}
