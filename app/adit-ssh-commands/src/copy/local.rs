//! Local files.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Converts bytes to a local path.
pub(crate) fn path_from_bytes(path: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(path.to_vec()))
}

/// Returns the bytes of a path.
pub(crate) fn path_bytes(path: &Path) -> &[u8] {
    OsStr::as_bytes(path.as_os_str())
}

/// Returns the name for a copy of a local file; `.` and `..` are resolved first.
pub(crate) fn local_copy_name(path: &Path) -> Vec<u8> {
    match path.file_name() {
        Some(name) => path_bytes(Path::new(name)).to_vec(),
        None => {
            let real = path.canonicalize().unwrap_or_default();
            super::base_name(path_bytes(&real)).to_vec()
        }
    }
}

/// Local folders, as a source for patterns.
#[derive(Debug)]
pub(crate) struct LocalFolders;

impl super::FolderSource for LocalFolders {
    async fn list_names(&mut self, folder: &[u8]) -> Result<Vec<Vec<u8>>, super::CopyError> {
        let folder = if folder.is_empty() { b"." } else { folder };
        let entries = fs::read_dir(path_from_bytes(folder))?;
        let names = entries.filter_map(|entry| Some(entry.ok()?.file_name().into_vec()));
        Ok(names.collect())
    }

    async fn exists(&mut self, path: &[u8]) -> Result<bool, super::CopyError> {
        Ok(path_from_bytes(path).symlink_metadata().is_ok())
    }
}
