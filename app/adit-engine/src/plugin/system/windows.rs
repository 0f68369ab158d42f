//! Programs of Windows.

use std::ffi::OsStr;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

/// Characters that are not part of a program's plain name; a colon follows a drive, or precedes a stream of a file.
pub(in super::super) const NOT_IN_NAMES: [char; 4] = ['/', '\\', ':', '\0'];
/// The extension of programs. Scripts have others, but run in a shell that interprets their arguments again.
const EXTENSION: &str = "exe";
/// Variables without which programs cannot open sockets or find their libraries and temporary files.
const INHERITED: [&str; 7] = [
    "PATH",
    "SystemRoot",
    "SystemDrive",
    "windir",
    "TEMP",
    "TMP",
    "LANG",
];

/// Returns the path with `.exe` at its end, unless it is there already.
pub(in super::super) fn with_extension(path: PathBuf) -> PathBuf {
    if has_extension(&path) {
        return path;
    }
    let mut path = path.into_os_string();
    path.push(".");
    path.push(EXTENSION);
    path.into()
}

fn has_extension(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case(EXTENSION))
}

/// Returns true if a file is a program by its name.
pub(in super::super) fn is_program(path: &Path, _: &Metadata) -> bool {
    has_extension(path)
}

/// Returns true for the search path and what the system needs itself.
pub(in super::super) fn is_inherited_variable(name: &OsStr) -> bool {
    INHERITED.iter().any(|kept| name.eq_ignore_ascii_case(kept))
}

/// Describes how a process ended.
pub(in super::super) fn describe_exit(status: &Option<ExitStatus>) -> String {
    match status.and_then(|status| status.code()) {
        Some(code) => format!("exited with code {code}"),
        None => "ended".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_get_the_extension_of_programs_once() {
        let named = |name: &str| with_extension(PathBuf::from(name));
        assert_eq!(named("v2ray-plugin"), Path::new("v2ray-plugin.exe"));
        assert_eq!(named("v1.2"), Path::new("v1.2.exe"));
        assert_eq!(named("A.EXE"), Path::new("A.EXE"));
        assert!(is_inherited_variable(OsStr::new("SYSTEMROOT")));
        assert!(!is_inherited_variable(OsStr::new("SS_LOCAL_PORT")));
    }
}
