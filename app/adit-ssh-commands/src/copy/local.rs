//! Files of this machine.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// A path of this machine from its octets.
pub(crate) fn native(path: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(path.to_vec()))
}

/// The octets of a path.
pub(crate) fn octets(path: &Path) -> &[u8] {
    OsStr::as_bytes(path.as_os_str())
}

/// The name that the copy of a file of this machine gets; `.` and `..` have one elsewhere.
pub(crate) fn name_here(path: &Path) -> Vec<u8> {
    match path.file_name() {
        Some(name) => octets(Path::new(name)).to_vec(),
        None => {
            let real = path.canonicalize().unwrap_or_default();
            super::base(octets(&real)).to_vec()
        }
    }
}

/// Folders of this machine, for patterns.
#[derive(Debug)]
pub(crate) struct Local;

impl super::Folders for Local {
    async fn names(&mut self, folder: &[u8]) -> Result<Vec<Vec<u8>>, super::Fault> {
        let folder = if folder.is_empty() { b"." } else { folder };
        let entries = fs::read_dir(native(folder))?;
        let names = entries.filter_map(|entry| Some(entry.ok()?.file_name().into_vec()));
        Ok(names.collect())
    }

    async fn is_there(&mut self, path: &[u8]) -> Result<bool, super::Fault> {
        Ok(native(path).symlink_metadata().is_ok())
    }
}
