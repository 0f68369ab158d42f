//! The packages under test, and the files of the checks.

use std::path::PathBuf;

use anyhow::Result;

use crate::command::{CommandRun, root};
use crate::package::source::PackageSource;

/// The packages under test, and their place.
pub(super) struct BuiltPackages {
    pub(super) source: PackageSource,
    /// The folder of the archives.
    pub(super) dist: PathBuf,
    /// The folder with one subfolder for each format.
    pub(super) output: PathBuf,
    /// A folder for files of the checks.
    pub(super) work: PathBuf,
}

impl BuiltPackages {
    /// Returns the folder of one format.
    pub(super) fn folder(&self, format: &str) -> PathBuf {
        self.output.join(format)
    }

    /// Returns the program of the archives.
    pub(super) fn program(&self) -> Result<PathBuf> {
        let unpacked = self.source.archives.require_linux()?;
        Ok(unpacked[0].program())
    }
}

/// Returns the path of a script beside this file.
pub(super) fn script(name: &str) -> String {
    let path = root().join("dev/xtask/src/package/check").join(name);
    path.to_string_lossy().into_owned()
}

/// Runs shellcheck.
pub(super) fn shellcheck(shell: &str, paths: &[PathBuf]) -> Result<()> {
    CommandRun::new("shellcheck", ["--shell", shell])
        .args(paths)
        .run_captured("shellcheck")?;
    Ok(())
}
