//! Where a path leads.
//!
//! Without a root that is the system's business. With one, every path is resolved by the kernel as
//! if the root were all there is (`openat2` with `RESOLVE_IN_ROOT`): neither `..` nor a symbolic
//! link nor a race with one leads out. Calls that take a path get the folder that holds the name,
//! opened that way, or the file itself through `/proc/self/fd`.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use adit_wire::subslice;
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

use super::fault::errno;
use super::options::{Options, ServeError};
use super::protected::Protected;

/// All files that a client may reach.
#[derive(Debug)]
pub(super) struct Tree {
    root: Option<Root>,
    protected: Protected,
    /// An absolute path, as the client sees it.
    start: Vec<u8>,
}

#[derive(Debug)]
struct Root {
    dir: OwnedFd,
    /// Its own path, without a slash at the end.
    path: Vec<u8>,
}

/// A name in a folder: the two arguments of the `…at` calls.
#[derive(Debug)]
pub(super) struct At<'a> {
    dir: Option<OwnedFd>,
    name: Cow<'a, [u8]>,
}

impl At<'_> {
    /// The folder.
    pub(super) fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_ref().map_or(CWD, AsFd::as_fd)
    }

    /// The name.
    pub(super) fn name(&self) -> &[u8] {
        &self.name
    }
}

/// A path that leads to the file itself, whatever symbolic links were on the way.
#[derive(Debug)]
pub(super) struct Reached<'a> {
    path: Cow<'a, [u8]>,
    /// Keeps the path valid.
    held: Option<OwnedFd>,
}

impl Reached<'_> {
    /// The path.
    pub(super) fn path(&self) -> &[u8] {
        &self.path
    }
}

impl Tree {
    pub(super) fn new(options: &Options) -> Result<Self, ServeError> {
        let at = |path: &Path| {
            let path = path.to_owned();
            move |why| ServeError::Folder { path, why }
        };
        let root = match &options.root {
            Some(path) => Some(Root::open(path).map_err(at(path))?),
            None => None,
        };
        let mut start = match root {
            Some(_) => b"/".to_vec(),
            None => std::env::current_dir()?.into_os_string().into_vec(),
        };
        if let Some(wish) = &options.start {
            start = join(&start, wish.as_os_str().as_bytes());
        }
        let tree = Self {
            root,
            protected: Protected::new(options.protected.clone()),
            start,
        };
        if let Some(wish) = &options.start {
            tree.open(b".", OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
                .map_err(|why| at(wish)(why.into()))?;
        }
        Ok(tree)
    }

    /// Where relative paths begin, as the client sees it.
    pub(super) fn start(&self) -> &[u8] {
        &self.start
    }

    /// Whether there is a root.
    pub(super) const fn is_confined(&self) -> bool {
        self.root.is_some()
    }

    /// Opens what a path leads to, following symbolic links.
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

    /// Opens what a path leads to, unless it is protected: what it leads to is found out first,
    /// opened without following anything more, and emptied last.
    fn open_unprotected(&self, path: &[u8], flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        let real = self.real(path)?;
        let at = if flags.contains(OFlags::CREATE) {
            self.at_to_change(&real)?
        } else {
            // Folders on the way to what is protected can be looked at.
            let at = self.at(&real)?;
            self.protected.check_folder(at.dir())?;
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

    /// The same as [`Tree::problem_at`], for a name that is going to be made, removed or changed.
    pub(super) fn at_to_change<'a>(&self, path: &'a [u8]) -> Result<At<'a>, Errno> {
        let at = self.at(path)?;
        self.protected.check_name(at.dir(), at.name())?;
        Ok(at)
    }

    /// The same as [`Tree::reach`], for a file that is going to be changed.
    pub(super) fn reach_to_change<'a>(&self, path: &'a [u8]) -> Result<Reached<'a>, Errno> {
        let file = self.reach(path)?;
        if let Some(held) = &file.held {
            self.protected.check_open(held)?;
            let real = self.real(path)?;
            self.at_to_change(&real)?;
        }
        Ok(file)
    }

    /// The name that a path ends in, and the folder that holds it. A symbolic link of that name
    /// is not followed.
    pub(super) fn at<'a>(&self, path: &'a [u8]) -> Result<At<'a>, Errno> {
        let path = self.absolute(path)?;
        if self.root.is_none() && self.protected.is_empty() {
            return Ok(At {
                dir: None,
                name: path,
            });
        }
        let (folder, name) = split(&path);
        let (folder, name) = match name {
            // These are no names in a folder: the folder itself is meant.
            b"" | b"." | b".." => (&*path, &b"."[..]),
            name => (folder, name),
        };
        Ok(At {
            dir: Some(self.handle(folder, PATH_ONLY | OFlags::DIRECTORY)?),
            name: Cow::Owned(name.to_vec()),
        })
    }

    /// What a path leads to, following symbolic links.
    pub(super) fn reach<'a>(&self, path: &'a [u8]) -> Result<Reached<'a>, Errno> {
        let path = self.absolute(path)?;
        if self.root.is_none() && self.protected.is_empty() {
            return Ok(Reached { path, held: None });
        }
        Ok(reached(self.handle(&path, PATH_ONLY)?))
    }

    /// Opens an absolute path, to name what it leads to.
    fn handle(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        match &self.root {
            Some(root) => root.open_inside(path, flags, Mode::empty()),
            None => rustix::fs::openat(CWD, path, flags, Mode::empty()),
        }
    }

    /// The path without symbolic links, `.` and `..`, as the client sees it. Its last name need
    /// not be there.
    pub(super) fn real(&self, path: &[u8]) -> Result<Vec<u8>, Errno> {
        let path = self.absolute(path)?;
        match self.real_of(&path) {
            Err(Errno::NOENT) => {}
            found => return found,
        }
        let (folder, name) = split(&path);
        match name {
            b"" | b"." | b".." => Err(Errno::NOENT),
            name => Ok(join(&self.real_of(folder)?, name)),
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

    /// The path from `/` on. An empty one is none.
    fn absolute<'a>(&self, path: &'a [u8]) -> Result<Cow<'a, [u8]>, Errno> {
        match path {
            [] => Err(Errno::NOENT),
            [b'/', ..] => Ok(Cow::Borrowed(path)),
            _ => Ok(Cow::Owned(join(&self.start, path))),
        }
    }
}

/// A handle of a file that only names it.
#[cfg(target_os = "linux")]
pub(super) const PATH_ONLY: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
pub(super) const PATH_ONLY: OFlags = OFlags::CLOEXEC;

/// The path of an open file.
pub(super) fn reached(file: OwnedFd) -> Reached<'static> {
    use std::os::fd::AsRawFd;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    Reached {
        path: Cow::Owned(path.into_bytes()),
        held: Some(file),
    }
}

/// A handle of what this name is, be it a symbolic link.
#[cfg(target_os = "linux")]
pub(super) fn name_only(at: &At<'_>) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(
        at.dir(),
        at.name(),
        PATH_ONLY | OFlags::NOFOLLOW,
        Mode::empty(),
    )
}

#[cfg(target_os = "linux")]
impl Root {
    /// Opens it, and finds out whether the kernel can do what is needed.
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
        /// Someone who renames folders all the time must not hold us for ever.
        const TRIES: u32 = 32;
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let mode = if flags.contains(OFlags::CREATE) {
            mode
        } else {
            Mode::empty()
        };
        let mut outcome = Err(Errno::AGAIN);
        for _ in 0..TRIES {
            outcome = rustix::fs::openat2(&self.dir, path, flags, mode, resolve);
            if !matches!(outcome, Err(Errno::AGAIN)) {
                break;
            }
        }
        outcome
    }

    fn real(&self, path: &[u8]) -> Result<Vec<u8>, Errno> {
        let path = read_link(&self.open_inside(path, PATH_ONLY, Mode::empty())?)?;
        // What is not below was moved away just now.
        match path.strip_prefix(&*self.path) {
            Some(b"") => Ok(b"/".to_vec()),
            Some(inside @ [b'/', ..]) => Ok(inside.to_vec()),
            _ => Err(Errno::NOENT),
        }
    }
}

/// Where an open file is.
#[cfg(target_os = "linux")]
fn read_link(file: &OwnedFd) -> Result<Vec<u8>, Errno> {
    use std::os::fd::AsRawFd;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::readlinkat(CWD, path, Vec::new()).map(std::ffi::CString::into_bytes)
}

#[cfg(not(target_os = "linux"))]
impl Root {
    fn open(_: &Path) -> std::io::Result<Self> {
        Err(std::io::Error::new(
            std::io::ErrorKind::Unsupported,
            "this system cannot keep a client inside a folder",
        ))
    }

    fn open_inside(&self, _: &[u8], _: OFlags, _: Mode) -> Result<OwnedFd, Errno> {
        Err(Errno::NOSYS)
    }

    fn real(&self, _: &[u8]) -> Result<Vec<u8>, Errno> {
        Err(Errno::NOSYS)
    }
}

/// A path below another, or itself if it is absolute.
fn join(folder: &[u8], path: &[u8]) -> Vec<u8> {
    if path.starts_with(b"/") {
        return path.to_vec();
    }
    let folder = folder.strip_suffix(b"/").unwrap_or(folder);
    [folder, path].join(&b'/')
}

/// The folder and the last name of an absolute path. Slashes at the end belong to neither.
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
        for (path, folder, name) in [
            ("/", "/", ""),
            ("//", "/", ""),
            ("/a", "/", "a"),
            ("/a/b//", "/a/", "b"),
            ("/a/..", "/a/", ".."),
        ] {
            let found = split(path.as_bytes());
            assert_eq!(found, (folder.as_bytes(), name.as_bytes()), "{path}");
        }
        assert_eq!(join(b"/", b"a"), b"/a");
        assert_eq!(join(b"/a", b"b/c"), b"/a/b/c");
        assert_eq!(join(b"/a", b"/b"), b"/b");
    }
}
