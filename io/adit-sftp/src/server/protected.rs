//! Files that a client can neither change nor read, by any path.
//!
//! A key with `command="internal-sftp"` restricts its user to files only if that user cannot write the
//! file that contains the restriction. The locations of protected files are resolved again for each
//! request, name by name as the kernel does it. Requests that would replace a name on the way, of a
//! directory or of a symbolic link, are refused. The files themselves are recognized by their inodes, so
//! that other names of them are protected too.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, Stat};
use rustix::io::Errno;

/// Maximum number of symbolic links on the way to a file, as in the kernel.
const MAX_LINKS: usize = 40;
/// Maximum number of parent directories that are checked.
const MAX_PARENTS: usize = 256;

/// The files that clients may not access, and directories with all of their content.
#[derive(Debug, Clone, Default)]
pub(super) struct ProtectedPaths(Vec<PathBuf>);

/// The identity of a file: its device and inode numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Inode(u64, u64);

/// The present location of a protected file.
#[derive(Debug, Default)]
struct Location {
    /// The names on the way to it, each with the directory that contains it.
    names: Vec<(Inode, Vec<u8>)>,
    /// The file, if it exists.
    file: Option<Inode>,
    is_dir: bool,
}

impl ProtectedPaths {
    /// Creates a set of absolute paths.
    pub(super) const fn new(paths: Vec<PathBuf>) -> Self {
        Self(paths)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn locations(&self) -> Vec<Location> {
        self.0.iter().map(|path| Location::resolve(path)).collect()
    }

    /// Checks that a name in a directory may be created, removed or changed.
    pub(super) fn check_name(&self, dir: BorrowedFd<'_>, name: &[u8]) -> Result<(), Errno> {
        if self.is_empty() {
            return Ok(());
        }
        let all = self.locations();
        let here = Inode::of(&rustix::fs::fstat(dir)?);
        let is_there = |(dir, other): &(Inode, Vec<u8>)| *dir == here && other == name;
        if all.iter().any(|one| one.names.iter().any(is_there)) {
            return Err(Errno::ACCESS);
        }
        match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => check_inode(&all, Inode::of(&found))?,
            Err(Errno::NOENT) => {}
            Err(why) => return Err(why),
        }
        check_dirs(&all, dir)
    }

    /// Checks that the entries of a directory may be opened.
    pub(super) fn check_dir(&self, dir: BorrowedFd<'_>) -> Result<(), Errno> {
        check_dirs(&self.locations(), dir)
    }

    /// Checks that an open file is not protected.
    pub(super) fn check_open(&self, file: impl AsFd) -> Result<(), Errno> {
        if self.is_empty() {
            return Ok(());
        }
        // The memory of this process, which contains the host key, is a file there.
        #[cfg(target_os = "linux")]
        if rustix::fs::fstatfs(&file)?.f_type == rustix::fs::PROC_SUPER_MAGIC {
            return Err(Errno::ACCESS);
        }
        check_inode(&self.locations(), Inode::of(&rustix::fs::fstat(file)?))
    }
}

fn check_inode(all: &[Location], inode: Inode) -> Result<(), Errno> {
    match all.iter().any(|one| one.file == Some(inode)) {
        true => Err(Errno::ACCESS),
        false => Ok(()),
    }
}

/// Checks that neither this directory nor one above it is protected.
fn check_dirs(all: &[Location], dir: BorrowedFd<'_>) -> Result<(), Errno> {
    let dirs: Vec<Inode> = all
        .iter()
        .filter(|one| one.is_dir)
        .filter_map(|one| one.file)
        .collect();
    if dirs.is_empty() {
        return Ok(());
    }
    let mut here = Inode::of(&rustix::fs::fstat(dir)?);
    let mut above: Option<OwnedFd> = None;
    for _ in 0..MAX_PARENTS {
        if dirs.contains(&here) {
            return Err(Errno::ACCESS);
        }
        let from = above.as_ref().map_or(dir, AsFd::as_fd);
        let flags = super::tree::PATH_ONLY | OFlags::DIRECTORY;
        let next = rustix::fs::openat(from, "..", flags, Mode::empty())?;
        let inode = Inode::of(&rustix::fs::fstat(&next)?);
        if inode == here {
            return Ok(());
        }
        (here, above) = (inode, Some(next));
    }
    Err(Errno::ACCESS)
}

impl Inode {
    #[allow(
        clippy::unnecessary_cast,
        clippy::cast_sign_loss,
        reason = "other types on other systems"
    )]
    const fn of(stat: &Stat) -> Self {
        Self(stat.st_dev as u64, stat.st_ino as u64)
    }
}

impl Location {
    fn resolve(path: &Path) -> Self {
        let mut found = Self::default();
        // It contains no symbolic links, so that `..` is its parent.
        let mut dir = PathBuf::from("/");
        let mut rest: VecDeque<OsString> = names(path).collect();
        let mut links = 0;
        while let Some(name) = rest.pop_front() {
            if name == ".." {
                dir.pop();
                continue;
            }
            let Ok(about) = std::fs::metadata(&dir) else {
                return found;
            };
            let here = Inode(about.dev(), about.ino());
            found.names.push((here, name.as_bytes().to_vec()));
            let next = dir.join(&name);
            let Ok(about) = std::fs::symlink_metadata(&next) else {
                return found;
            };
            if !about.is_symlink() {
                dir = next;
                continue;
            }
            links += 1;
            let Some(target) = std::fs::read_link(&next)
                .ok()
                .filter(|_| links <= MAX_LINKS)
            else {
                return found;
            };
            if target.is_absolute() {
                dir = PathBuf::from("/");
            }
            for name in names(&target).collect::<Vec<_>>().into_iter().rev() {
                rest.push_front(name);
            }
        }
        if let Ok(about) = std::fs::metadata(&dir) {
            found.file = Some(Inode(about.dev(), about.ino()));
            found.is_dir = about.is_dir();
        }
        found
    }
}

/// Returns the names of a path, including `..`.
fn names(path: &Path) -> impl Iterator<Item = OsString> + '_ {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from_vec(b"..".to_vec())),
        _ => None,
    })
}
