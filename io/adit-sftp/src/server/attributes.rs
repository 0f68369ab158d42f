//! Attributes of files: conversion from the system's form to that of SFTP, and changes.

use std::fs::File;
use std::os::fd::AsFd;

use adit_ssh_proto::sftp::{FileAttrs, StatVfs};
use rustix::fs::{AtFlags, CWD, Gid, Mode, OFlags, Stat, StatVfsMountFlags, Timestamps, Uid};
use rustix::io::Errno;

use super::tree::Tree;

/// The bits of a mode that can be set.
const SETTABLE: u32 = 0o7777;

/// Converts the attributes of a file.
pub(super) fn attrs(stat: &Stat) -> FileAttrs {
    // Times are unsigned 32 bits in version 3: times outside of the range become the nearest one.
    let seconds = |time: i64| u32::try_from(time.max(0)).unwrap_or(u32::MAX);
    FileAttrs {
        size: u64::try_from(stat.st_size).ok(),
        owner: Some((stat.st_uid, stat.st_gid)),
        permissions: Some(mode_bits(stat)),
        times: Some((seconds(stat.st_atime), seconds(stat.st_mtime))),
    }
}

/// Returns the mode with the type of the file.
#[allow(
    clippy::useless_conversion,
    reason = "16 bits wide on other systems than Linux"
)]
pub(super) fn mode_bits(stat: &Stat) -> u32 {
    u32::from(stat.st_mode)
}

/// Returns the mode for a new file or directory.
pub(super) fn new_mode(attrs: &FileAttrs, default: u32) -> Mode {
    mode(attrs.permissions.unwrap_or(default))
}

/// Returns the bits of permissions that can be set.
#[allow(
    clippy::useless_conversion,
    reason = "16 bits wide on other systems than Linux"
)]
pub(crate) fn mode(bits: u32) -> Mode {
    Mode::from_bits_truncate((bits & SETTABLE).try_into().unwrap_or_default())
}

/// Changes the file that a path leads to.
pub(super) fn set(tree: &Tree, path: &[u8], attrs: &FileAttrs) -> Result<(), Errno> {
    let file = tree.resolve_to_change(path)?;
    if let Some(size) = attrs.size {
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        let open = rustix::fs::openat(CWD, file.path(), flags, Mode::empty())?;
        rustix::fs::ftruncate(open, size)?;
    }
    if let Some(bits) = attrs.permissions {
        rustix::fs::chmodat(CWD, file.path(), mode(bits), AtFlags::empty())?;
    }
    if let Some(times) = times(attrs) {
        rustix::fs::utimensat(CWD, file.path(), &times, AtFlags::empty())?;
    }
    if let Some((user, group)) = owner(attrs) {
        rustix::fs::chownat(CWD, file.path(), user, group, AtFlags::empty())?;
    }
    Ok(())
}

/// Changes an open file.
pub(super) fn set_open(file: impl AsFd, attrs: &FileAttrs) -> Result<(), Errno> {
    if let Some(size) = attrs.size {
        rustix::fs::ftruncate(&file, size)?;
    }
    if let Some(bits) = attrs.permissions {
        rustix::fs::fchmod(&file, mode(bits))?;
    }
    if let Some(times) = times(attrs) {
        rustix::fs::futimens(&file, &times)?;
    }
    if let Some((user, group)) = owner(attrs) {
        rustix::fs::fchown(&file, user, group)?;
    }
    Ok(())
}

/// Changes the file of this name without following a symbolic link.
pub(super) fn set_link(tree: &Tree, path: &[u8], attrs: &FileAttrs) -> Result<(), Errno> {
    let at = tree.at_to_change(path)?;
    let (dir, name) = (at.dir(), at.name());
    if attrs.size.is_some() {
        return Err(Errno::INVAL);
    }
    if let Some(bits) = attrs.permissions {
        #[cfg(target_os = "linux")]
        {
            // The system has no chmod that does not follow links; the mode of a link has no meaning.
            let file = super::tree::open_nofollow(&at)?;
            let found = rustix::fs::fstat(&file)?;
            if rustix::fs::FileType::from_raw_mode(found.st_mode).is_symlink() {
                return Err(Errno::OPNOTSUPP);
            }
            let file = super::tree::path_of(file);
            rustix::fs::chmodat(CWD, file.path(), mode(bits), AtFlags::empty())?;
        }
        #[cfg(not(target_os = "linux"))]
        rustix::fs::chmodat(dir, name, mode(bits), AtFlags::SYMLINK_NOFOLLOW)?;
    }
    if let Some(times) = times(attrs) {
        rustix::fs::utimensat(dir, name, &times, AtFlags::SYMLINK_NOFOLLOW)?;
    }
    if let Some((user, group)) = owner(attrs) {
        rustix::fs::chownat(dir, name, user, group, AtFlags::SYMLINK_NOFOLLOW)?;
    }
    Ok(())
}

fn times(attrs: &FileAttrs) -> Option<Timestamps> {
    let (read, changed) = attrs.times?;
    let at = |seconds: u32| rustix::fs::Timespec {
        tv_sec: seconds.into(),
        tv_nsec: 0,
    };
    Some(Timestamps {
        last_access: at(read),
        last_modification: at(changed),
    })
}

/// Returns the owner. A number of all ones means no change.
fn owner(attrs: &FileAttrs) -> Option<(Option<Uid>, Option<Gid>)> {
    let (user, group) = attrs.owner?;
    Some((
        (user != u32::MAX).then(|| Uid::from_raw(user)),
        (group != u32::MAX).then(|| Gid::from_raw(group)),
    ))
}

/// Returns the state of the file system of a path.
pub(super) fn file_system(tree: &Tree, path: &[u8]) -> Result<StatVfs, Errno> {
    let file = tree.resolve(path)?;
    rustix::fs::statvfs(file.path()).map(|found| stat_vfs(&found))
}

/// Returns the state of the file system of an open file.
pub(super) fn file_system_of(file: &File) -> Result<StatVfs, Errno> {
    rustix::fs::fstatvfs(file).map(|found| stat_vfs(&found))
}

fn stat_vfs(found: &rustix::fs::StatVfs) -> StatVfs {
    StatVfs {
        block: found.f_bsize,
        fragment: found.f_frsize,
        blocks: found.f_blocks,
        free: found.f_bfree,
        available: found.f_bavail,
        files: found.f_files,
        files_free: found.f_ffree,
        files_available: found.f_favail,
        id: found.f_fsid,
        read_only: found.f_flag.contains(StatVfsMountFlags::RDONLY),
        no_setuid: found.f_flag.contains(StatVfsMountFlags::NOSUID),
        name_max: found.f_namemax,
    }
}
