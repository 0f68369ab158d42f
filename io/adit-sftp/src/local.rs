//! Attributes of local files.

use std::fs::{File, FileTimes, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::{Duration, SystemTime};

use adit_ssh_proto::sftp::FileAttrs;

/// Returns the attributes of a local file in the form of SFTP. Times outside of 1970 to 2106 become the
/// nearest ones that version 3 has.
#[must_use]
pub fn attrs_from_metadata(found: &Metadata) -> FileAttrs {
    let seconds = |time: i64| u32::try_from(time.max(0)).unwrap_or(u32::MAX);
    FileAttrs {
        size: Some(found.len()),
        owner: Some((found.uid(), found.gid())),
        permissions: Some(found.mode()),
        times: Some((seconds(found.atime()), seconds(found.mtime()))),
    }
}

/// Sets the times and permissions of an open local file, as far as `attrs` has them. The bits set-user-ID
/// and set-group-ID are omitted: the copy belongs to the user who runs this program.
///
/// # Errors
/// The system refused it.
pub fn apply_attrs(file: &File, attrs: &FileAttrs) -> io::Result<()> {
    if let Some((read, changed)) = attrs.times {
        let at = |seconds: u32| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.into());
        let times = FileTimes::new()
            .set_accessed(at(read))
            .set_modified(at(changed));
        file.set_times(times)?;
    }
    match attrs.permissions {
        Some(mode) => file.set_permissions(Permissions::from_mode(mode & 0o1777)),
        None => Ok(()),
    }
}
