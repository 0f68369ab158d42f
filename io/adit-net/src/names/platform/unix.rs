//! The resolver's files and the host name of Unix.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// The modification time, size and inode of a file.
pub(in super::super) type FileVersion = (i64, i64, u64, u64);

pub(in super::super) fn file_version(metadata: &Metadata) -> FileVersion {
    (
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.size(),
        metadata.ino(),
    )
}

/// Returns the paths of `resolv.conf`, `hosts` and `nsswitch.conf`.
pub(in super::super) fn files() -> [PathBuf; 3] {
    ["/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf"].map(PathBuf::from)
}

pub(in super::super) fn host_name() -> String {
    let uname = rustix::system::uname();
    uname.nodename().to_string_lossy().into_owned()
}
