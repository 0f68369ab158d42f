//! Files that a client can neither change nor read, whatever path leads to them.
//!
//! A key with `command="internal-sftp"` gives files alone only as long as its user cannot write the
//! file that says so. Where these files are is found out anew for each request, name by name as the
//! kernel does it: every name on the way, be it of a folder or of a symbolic link, is refused to
//! requests that would put something else in its place, and the files themselves are known by their
//! inodes, so that no other name of theirs helps.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, Stat};
use rustix::io::Errno;

/// Symbolic links on the way to a file; the kernel follows as many.
const MOST_LINKS: usize = 40;
/// Folders above a file that are looked at.
const MOST_FOLDERS: usize = 256;

/// The files of a server that its clients may not touch, and folders with all that is in them.
#[derive(Debug, Clone, Default)]
pub(super) struct Protected(Vec<PathBuf>);

/// A file, whatever it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Inode(u64, u64);

/// Where a protected file is now.
#[derive(Debug, Default)]
struct Whereabouts {
    /// The names on the way to it, each in its folder.
    names: Vec<(Inode, Vec<u8>)>,
    /// The file, if it is there.
    file: Option<Inode>,
    is_folder: bool,
}

impl Protected {
    /// These are absolute.
    pub(super) const fn new(paths: Vec<PathBuf>) -> Self {
        Self(paths)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn all(&self) -> Vec<Whereabouts> {
        self.0.iter().map(|path| Whereabouts::of(path)).collect()
    }

    /// Whether this name in a folder may be made, removed or changed.
    pub(super) fn check_name(&self, folder: BorrowedFd<'_>, name: &[u8]) -> Result<(), Errno> {
        if self.is_empty() {
            return Ok(());
        }
        let all = self.all();
        let here = Inode::of(&rustix::fs::fstat(folder)?);
        let is_there = |(folder, other): &(Inode, Vec<u8>)| *folder == here && other == name;
        if all.iter().any(|one| one.names.iter().any(is_there)) {
            return Err(Errno::ACCESS);
        }
        match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => check_inode(&all, Inode::of(&found))?,
            Err(Errno::NOENT) => {}
            Err(why) => return Err(why),
        }
        check_folders(&all, folder)
    }

    /// Whether something in this folder may be opened.
    pub(super) fn check_folder(&self, folder: BorrowedFd<'_>) -> Result<(), Errno> {
        check_folders(&self.all(), folder)
    }

    /// Whether what is open may be.
    pub(super) fn check_open(&self, file: impl AsFd) -> Result<(), Errno> {
        if self.is_empty() {
            return Ok(());
        }
        // The memory of our own processes, with the host's key in it, is a file there.
        #[cfg(target_os = "linux")]
        if rustix::fs::fstatfs(&file)?.f_type == rustix::fs::PROC_SUPER_MAGIC {
            return Err(Errno::ACCESS);
        }
        check_inode(&self.all(), Inode::of(&rustix::fs::fstat(file)?))
    }
}

fn check_inode(all: &[Whereabouts], inode: Inode) -> Result<(), Errno> {
    match all.iter().any(|one| one.file == Some(inode)) {
        true => Err(Errno::ACCESS),
        false => Ok(()),
    }
}

/// Whether none of the folders from this one up is protected.
fn check_folders(all: &[Whereabouts], folder: BorrowedFd<'_>) -> Result<(), Errno> {
    let folders: Vec<Inode> = all
        .iter()
        .filter(|one| one.is_folder)
        .filter_map(|one| one.file)
        .collect();
    if folders.is_empty() {
        return Ok(());
    }
    let mut here = Inode::of(&rustix::fs::fstat(folder)?);
    let mut above: Option<OwnedFd> = None;
    for _ in 0..MOST_FOLDERS {
        if folders.contains(&here) {
            return Err(Errno::ACCESS);
        }
        let from = above.as_ref().map_or(folder, AsFd::as_fd);
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

impl Whereabouts {
    fn of(path: &Path) -> Self {
        let mut found = Self::default();
        // Without symbolic links, so that `..` is what is above.
        let mut folder = PathBuf::from("/");
        let mut rest: VecDeque<OsString> = names(path).collect();
        let mut links = 0;
        while let Some(name) = rest.pop_front() {
            if name == ".." {
                folder.pop();
                continue;
            }
            let Ok(about) = std::fs::metadata(&folder) else {
                return found;
            };
            let here = Inode(about.dev(), about.ino());
            found.names.push((here, name.as_bytes().to_vec()));
            let next = folder.join(&name);
            let Ok(about) = std::fs::symlink_metadata(&next) else {
                return found;
            };
            if !about.is_symlink() {
                folder = next;
                continue;
            }
            links += 1;
            let Some(target) = std::fs::read_link(&next)
                .ok()
                .filter(|_| links <= MOST_LINKS)
            else {
                return found;
            };
            if target.is_absolute() {
                folder = PathBuf::from("/");
            }
            for name in names(&target).collect::<Vec<_>>().into_iter().rev() {
                rest.push_front(name);
            }
        }
        if let Ok(about) = std::fs::metadata(&folder) {
            found.file = Some(Inode(about.dev(), about.ino()));
            found.is_folder = about.is_dir();
        }
        found
    }
}

/// The names of a path, `..` among them.
fn names(path: &Path) -> impl Iterator<Item = OsString> + '_ {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from_vec(b"..".to_vec())),
        _ => None,
    })
}
