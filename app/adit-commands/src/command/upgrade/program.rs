//! The file of the running program.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

/// Returns the path that this process was started from. Symbolic links in it are not resolved, so that they may point
/// to a newer version later. Call this at the start of the program: a file that was replaced has no path any more.
pub(crate) fn program_of_this_process() -> Result<PathBuf, String> {
    let failed = |why: io::Error| format!("cannot find the program of this process: {why}");
    let running = env::current_exe().map_err(failed)?;
    let typed = env::args_os().next();
    let found = typed.and_then(|name| find_typed_program(&name, env::var_os("PATH")));
    let is_same = |path: &PathBuf| {
        let (path, running) = (path.canonicalize(), running.canonicalize());
        matches!((path, running), (Ok(path), Ok(running)) if path == running)
    };
    Ok(found.filter(is_same).unwrap_or(running))
}

/// Returns the absolute path of a program as a shell finds it.
fn find_typed_program(name: &OsStr, search: Option<OsString>) -> Option<PathBuf> {
    let path = Path::new(name);
    if path.components().count() > 1 {
        return std::path::absolute(path).ok();
    }
    let search = search?;
    let mut candidates = env::split_paths(&search).map(|folder| folder.join(path));
    let found = candidates.find(|path| path.is_file())?;
    std::path::absolute(found).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_as_a_shell_does() {
        let find =
            |name: &str, search: &str| find_typed_program(name.as_ref(), Some(search.into()));
        assert_eq!(find("/bin/x", "").unwrap(), Path::new("/bin/x"));
        assert!(find("./x", "").unwrap().ends_with("x"));
        let sh = find("sh", "/no/such/folder:/bin:/usr/bin").unwrap();
        assert_eq!(sh, Path::new("/bin/sh"));
        assert_eq!(find("sh", "/no/such/folder"), None);
    }

    #[test]
    fn this_process_has_a_program() {
        assert!(program_of_this_process().unwrap().is_file());
    }
}
