//! How files and folders of the user alone are created on Unix, and how files are locked.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, fsync, open, openat, renameat, unlinkat};

/// Creates a folder and its parents, for the user alone, unless it exists.
pub(super) fn make_folder(folder: &Path) -> io::Result<()> {
    let mut made = DirBuilder::new();
    made.recursive(true);
    made.mode(0o700);
    made.create(folder)
}

/// Locks a file against others that call this, until it is closed.
pub(super) fn try_lock(file: &File) -> Result<(), TryLockError> {
    file.try_lock()
}

/// Returns true if the path leads to this open file.
pub(super) fn is_file_at(file: &File, path: &Path) -> io::Result<bool> {
    let (here, there) = (file.metadata()?, fs::metadata(path)?);
    Ok((here.dev(), here.ino()) == (there.dev(), there.ino()))
}

pub(super) fn replace_file(folder: &Path, name: &OsStr, content: &[u8]) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    // From here on it is this folder, wherever its path leads.
    let folder = open(folder, flags, Mode::empty())?;
    let fresh = super::fresh_name();
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(openat(&folder, &*fresh, flags, Mode::RUSR | Mode::WUSR)?);
    let mut written = || {
        file.write_all(content)?;
        file.sync_all()?;
        renameat(&folder, &*fresh, &folder, name)?;
        Ok(())
    };
    if let Err(why) = written() {
        // A leftover file only costs disk space.
        let _ = unlinkat(&folder, &*fresh, AtFlags::empty());
        return Err(why);
    }
    Ok(fsync(&folder)?)
}
