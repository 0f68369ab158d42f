//! Resolution of paths.
//!
//! Without a root, paths are resolved by the system as usual. With one, the kernel resolves every path
//! as if the root were the whole file system (`openat2` with `RESOLVE_IN_ROOT`): neither `..` nor a
//! symbolic link nor a race with one leads out. System calls that take a path receive the directory that
//! contains the name, opened that way, or the file itself through `/proc/self/fd`.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use adit_wire::subslice;
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

use super::options::{FileTreeOptions, ServeError};
use super::protected::ProtectedPaths;
use super::refusal::errno;

/// All files that a client may access.
#[derive(Debug)]
pub(super) struct Tree {
    root: Option<Root>,
    protected: ProtectedPaths,
    /// The directory in which relative paths start: an absolute path, as the client sees it.
    start: Vec<u8>,
}

#[cfg(target_os = "linux")]
#[derive(Debug)]
struct Root {
    dir: OwnedFd,
    /// Its path, without a trailing slash.
    path: Vec<u8>,
}

/// A name in a directory: the two arguments of the `…at` calls.
#[derive(Debug)]
pub(super) struct NameInDirectory<'a> {
    dir: Option<OwnedFd>,
    name: Cow<'a, [u8]>,
}

impl NameInDirectory<'_> {
    /// Returns the directory.
    pub(super) fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_ref().map_or(CWD, AsFd::as_fd)
    }

    /// Returns the name.
    pub(super) fn name(&self) -> &[u8] {
        &self.name
    }
}

/// A path to a file after all symbolic links were followed.
#[derive(Debug)]
pub(super) struct ResolvedFile<'a> {
    path: Cow<'a, [u8]>,
    /// Keeps the path valid while it is open.
    held: Option<OwnedFd>,
}

impl ResolvedFile<'_> {
    /// Returns the path.
    pub(super) fn path(&self) -> &[u8] {
        &self.path
    }
}

impl Tree {
    pub(super) fn new(options: &FileTreeOptions) -> Result<Self, ServeError> {
        let at = |path: &Path| {
            let path = path.to_owned();
            move |why| ServeError::Directory { path, why }
        };
        let root = match &options.root {
            Some(path) => Some(Root::open(path).map_err(at(path))?),
            None => None,
        };
        let mut start = match root {
            Some(_) => b"/".to_vec(),
            None => std::env::current_dir()?.into_os_string().into_vec(),
        };
        if let Some(path) = &options.start {
            start = join(&start, path.as_os_str().as_bytes());
        }
        let tree = Self {
            root,
            protected: ProtectedPaths::new(options.protected.clone()),
            start,
        };
        if let Some(path) = &options.start {
            tree.open(b".", OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
                .map_err(|why| at(path)(why.into()))?;
        }
        Ok(tree)
    }

    /// Returns the directory in which relative paths start, as the client sees it.
    pub(super) fn start(&self) -> &[u8] {
        &self.start
    }

    /// True if there is a root.
    pub(super) const fn is_confined(&self) -> bool {
        self.root.is_some()
    }

    /// Opens a file, following symbolic links.
    pub(super) fn open(&self, path: &[u8], flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY;
        if !self.protected.is_empty() {
            return self.open_unprotected(path, flags, mode);
        }
        let path = self.absolute(path)?;
        match &self.root {
            Some(root) => root.open_inside(&path, flags, mode),
            None => rustix::fs::openat(CWD, path.as_ref(), flags, mode),
        }
    }

    /// Opens a file unless it is protected: the path is resolved first, opened without following more
    /// links, and truncated last.
    fn open_unprotected(&self, path: &[u8], flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        let real = self.real(path)?;
        let at = if flags.contains(OFlags::CREATE) {
            self.at_to_change(&real)?
        } else {
            // Directories on the way to a protected file can be listed.
            let at = self.at(&real)?;
            self.protected.check_dir(at.dir())?;
            at
        };
        let careful = flags.difference(OFlags::TRUNC) | OFlags::NOFOLLOW;
        let file = rustix::fs::openat(at.dir(), at.name(), careful, mode)?;
        self.protected.check_open(&file)?;
        if flags.contains(OFlags::TRUNC) {
            rustix::fs::ftruncate(&file, 0)?;
        }
        Ok(file)
    }

    /// The same as [`Tree::at`], for a name that will be created, removed or changed.
    pub(super) fn at_to_change<'a>(&self, path: &'a [u8]) -> Result<NameInDirectory<'a>, Errno> {
        let at = self.at(path)?;
        self.protected.check_name(at.dir(), at.name())?;
        Ok(at)
    }

    /// The same as [`Tree::resolve`], for a file that will be changed.
    pub(super) fn resolve_to_change<'a>(&self, path: &'a [u8]) -> Result<ResolvedFile<'a>, Errno> {
        let file = self.resolve(path)?;
        if let Some(held) = &file.held {
            self.protected.check_open(held)?;
            let real = self.real(path)?;
            self.at_to_change(&real)?;
        }
        Ok(file)
    }

    /// Returns the last name of a path, and the directory that contains it. A symbolic link of that name
    /// is not followed.
    pub(super) fn at<'a>(&self, path: &'a [u8]) -> Result<NameInDirectory<'a>, Errno> {
        let path = self.absolute(path)?;
        if self.root.is_none() && self.protected.is_empty() {
            return Ok(NameInDirectory {
                dir: None,
                name: path,
            });
        }
        let (dir, name) = split(&path);
        let (dir, name) = match name {
            // These name the directory itself.
            b"" | b"." | b".." => (&*path, &b"."[..]),
            name => (dir, name),
        };
        Ok(NameInDirectory {
            dir: Some(self.handle(dir, PATH_ONLY | OFlags::DIRECTORY)?),
            name: Cow::Owned(name.to_vec()),
        })
    }

    /// Resolves a path, following symbolic links.
    pub(super) fn resolve<'a>(&self, path: &'a [u8]) -> Result<ResolvedFile<'a>, Errno> {
        let path = self.absolute(path)?;
        if self.root.is_none() && self.protected.is_empty() {
            return Ok(ResolvedFile { path, held: None });
        }
        Ok(path_of(self.handle(&path, PATH_ONLY)?))
    }

    /// Opens an absolute path as a handle for other calls.
    fn handle(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        match &self.root {
            Some(root) => root.open_inside(path, flags, Mode::empty()),
            None => rustix::fs::openat(CWD, path, flags, Mode::empty()),
        }
    }

    /// Returns the path without symbolic links, `.` and `..`, as the client sees it. Its last name need
    /// not exist.
    pub(super) fn real(&self, path: &[u8]) -> Result<Vec<u8>, Errno> {
        let path = self.absolute(path)?;
        match self.real_of(&path) {
            Err(Errno::NOENT) => {}
            found => return found,
        }
        let (dir, name) = split(&path);
        match name {
            b"" | b"." | b".." => Err(Errno::NOENT),
            name => Ok(join(&self.real_of(dir)?, name)),
        }
    }

    fn real_of(&self, path: &[u8]) -> Result<Vec<u8>, Errno> {
        match &self.root {
            Some(root) => root.real(path),
            None => std::fs::canonicalize(OsStr::from_bytes(path))
                .map(|path| path.into_os_string().into_vec())
                .map_err(|why| errno(&why)),
        }
    }

    /// Returns the absolute path. An empty path does not exist.
    fn absolute<'a>(&self, path: &'a [u8]) -> Result<Cow<'a, [u8]>, Errno> {
        match path {
            [] => Err(Errno::NOENT),
            [b'/', ..] => Ok(Cow::Borrowed(path)),
            _ => Ok(Cow::Owned(join(&self.start, path))),
        }
    }
}

/// Flags of a handle that only identifies a file.
#[cfg(target_os = "linux")]
pub(super) const PATH_ONLY: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
pub(super) const PATH_ONLY: OFlags = OFlags::CLOEXEC;

/// Returns the path of an open file.
pub(super) fn path_of(file: OwnedFd) -> ResolvedFile<'static> {
    use std::os::fd::AsRawFd;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    ResolvedFile {
        path: Cow::Owned(path.into_bytes()),
        held: Some(file),
    }
}

/// Opens a handle of a name without following a symbolic link.
#[cfg(target_os = "linux")]
pub(super) fn open_nofollow(at: &NameInDirectory<'_>) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(
        at.dir(),
        at.name(),
        PATH_ONLY | OFlags::NOFOLLOW,
        Mode::empty(),
    )
}

#[cfg(target_os = "linux")]
impl Root {
    /// Opens the root, and checks that the kernel has `openat2`.
    fn open(path: &Path) -> std::io::Result<Self> {
        let dir = rustix::fs::openat(CWD, path, PATH_ONLY | OFlags::DIRECTORY, Mode::empty())?;
        let mut root = Self {
            dir,
            path: Vec::new(),
        };
        root.open_inside(b"/", PATH_ONLY, Mode::empty())?;
        let path = read_link(&root.dir)?;
        root.path = path.strip_suffix(b"/").unwrap_or(&path).to_vec();
        Ok(root)
    }

    fn open_inside(&self, path: &[u8], flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        use rustix::fs::ResolveFlags;
        /// A user who renames directories in a loop must not block the server.
        const MAX_TRIES: u32 = 32;
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let mode = if flags.contains(OFlags::CREATE) {
            mode
        } else {
            Mode::empty()
        };
        let mut outcome = Err(Errno::AGAIN);
        for _ in 0..MAX_TRIES {
            outcome = rustix::fs::openat2(&self.dir, path, flags, mode, resolve);
            if !matches!(outcome, Err(Errno::AGAIN)) {
                break;
            }
        }
        outcome
    }

    fn real(&self, path: &[u8]) -> Result<Vec<u8>, Errno> {
        let path = read_link(&self.open_inside(path, PATH_ONLY, Mode::empty())?)?;
        // A path that is not below the root was just moved out of it.
        match path.strip_prefix(&*self.path) {
            Some(b"") => Ok(b"/".to_vec()),
            Some(inside @ [b'/', ..]) => Ok(inside.to_vec()),
            _ => Err(Errno::NOENT),
        }
    }
}

/// Returns the present path of an open file.
#[cfg(target_os = "linux")]
fn read_link(file: &OwnedFd) -> Result<Vec<u8>, Errno> {
    use std::os::fd::AsRawFd;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::readlinkat(CWD, path, Vec::new()).map(std::ffi::CString::into_bytes)
}

/// The root of a client that is confined to a directory, which this system cannot do.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
enum Root {}

#[cfg(not(target_os = "linux"))]
impl Root {
    fn open(_: &Path) -> std::io::Result<Self> {
        Err(std::io::Error::new(
            std::io::ErrorKind::Unsupported,
            "this system cannot confine a client to a directory",
        ))
    }

    const fn open_inside(&self, _: &[u8], _: OFlags, _: Mode) -> Result<OwnedFd, Errno> {
        match *self {}
    }

    const fn real(&self, _: &[u8]) -> Result<Vec<u8>, Errno> {
        match *self {}
    }
}

/// Joins a path to a directory; an absolute path is returned unchanged.
fn join(dir: &[u8], path: &[u8]) -> Vec<u8> {
    if path.starts_with(b"/") {
        return path.to_vec();
    }
    let dir = dir.strip_suffix(b"/").unwrap_or(dir);
    [dir, path].join(&b'/')
}

/// Splits an absolute path into its directory and its last name, without trailing slashes.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    let slashes = path.iter().rev().take_while(|b| **b == b'/').count();
    let path = subslice(path, ..path.len() - slashes);
    match path.iter().rposition(|b| *b == b'/') {
        Some(place) => path.split_at_checked(place + 1).unwrap_or((path, b"")),
        None => (b"/", path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_split_and_joined() {
        for (path, dir, name) in [
            ("/", "/", ""),
            ("//", "/", ""),
            ("/a", "/", "a"),
            ("/a/b//", "/a/", "b"),
            ("/a/..", "/a/", ".."),
        ] {
            let found = split(path.as_bytes());
            assert_eq!(found, (dir.as_bytes(), name.as_bytes()), "{path}");
        }
        assert_eq!(join(b"/", b"a"), b"/a");
        assert_eq!(join(b"/a", b"b/c"), b"/a/b/c");
        assert_eq!(join(b"/a", b"/b"), b"/b");
    }
}
