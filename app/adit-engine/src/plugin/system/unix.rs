//! Programs of Unix.

use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

/// Characters that are not part of a program's plain name.
pub(in super::super) const NOT_IN_NAMES: [char; 2] = ['/', '\0'];

/// Returns the path unchanged: names of programs have no extension.
pub(in super::super) const fn with_extension(path: PathBuf) -> PathBuf {
    path
}

/// Returns true if a file can be executed.
pub(in super::super) fn is_program(_: &Path, metadata: &Metadata) -> bool {
    metadata.permissions().mode() & 0o111 != 0
}

/// Returns true for the search path and the locale.
pub(in super::super) fn is_inherited_variable(name: &OsStr) -> bool {
    name == "PATH" || name == "LANG" || name.as_encoded_bytes().starts_with(b"LC_")
}

/// Describes how a process ended.
pub(in super::super) fn describe_exit(status: &Option<ExitStatus>) -> String {
    match status.map(|status| (status.code(), status.signal())) {
        Some((Some(code), _)) => format!("exited with code {code}"),
        Some((None, Some(signal))) => format!("was killed by signal {signal}"),
        _ => "ended".to_owned(),
    }
}
