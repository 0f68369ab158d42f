//! The resolver's file and the host name of Windows.

use std::fs::Metadata;
use std::os::windows::fs::MetadataExt;
use std::path::PathBuf;

/// The time of the last change, and the size of a file.
pub(in super::super) type FileVersion = (u64, u64);

pub(in super::super) fn file_version(metadata: &Metadata) -> FileVersion {
    (metadata.last_write_time(), metadata.file_size())
}

/// Returns the paths of `resolv.conf`, `hosts` and `nsswitch.conf`. Only the second exists here. The others are empty,
/// because every user may create a folder `\etc` at the root of a drive.
pub(in super::super) fn files() -> [PathBuf; 3] {
    let root = std::env::var_os("SystemRoot").map(PathBuf::from);
    let hosts = root
        .filter(|root| root.is_absolute())
        .map(|root| root.join("System32\\drivers\\etc\\hosts"));
    [PathBuf::new(), hosts.unwrap_or_default(), PathBuf::new()]
}

pub(in super::super) fn host_name() -> String {
    gethostname::gethostname().to_string_lossy().into_owned()
}
