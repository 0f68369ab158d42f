//! Files that are named in a value.

use std::ffi::OsStr;

use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter};

use super::urls::prefixed;

/// Returns how `@FILE` may go on.
pub(super) fn named(typed: &str) -> Vec<CompletionCandidate> {
    match typed.strip_prefix('@') {
        Some(path) => prefixed(any(path), "@"),
        None if typed.is_empty() => prefixed(any(""), "@"),
        None => Vec::new(),
    }
}

/// Returns the files and folders that begin like this.
pub(super) fn any(typed: &str) -> Vec<CompletionCandidate> {
    PathCompleter::any().complete(OsStr::new(typed))
}
