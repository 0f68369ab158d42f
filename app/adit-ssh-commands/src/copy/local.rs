//! Local files.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use adit_ssh_proto::sftp::FileAttrs;

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
            super::base(path_bytes(&real)).to_vec()
        }
    }
}

/// The attributes of a file, in the form of SFTP.
pub(super) fn attrs_of(found: &Metadata) -> FileAttrs {
    let seconds = |time: i64| u32::try_from(time.max(0)).unwrap_or(u32::MAX);
    FileAttrs {
        size: Some(found.len()),
        owner: Some((found.uid(), found.gid())),
        permissions: Some(found.mode()),
        times: Some((seconds(found.atime()), seconds(found.mtime()))),
    }
}

/// Gives an open file the permissions and times of another, if they are to be kept.
pub(super) fn apply_attributes(file: &File, attrs: &FileAttrs, preserve: bool) -> io::Result<()> {
    if !preserve {
        return Ok(());
    }
    if let Some((read, changed)) = attrs.times {
        let at = |seconds: u32| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.into());
        let times = fs::FileTimes::new()
            .set_accessed(at(read))
            .set_modified(at(changed));
        file.set_times(times)?;
    }
    match attrs.permissions {
        // Who copies becomes the owner: no one shall run it as them who could not before.
        Some(mode) => file.set_permissions(fs::Permissions::from_mode(mode & 0o1777)),
        None => Ok(()),
    }
}

/// Folders of this machine, for patterns.
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
