//! A handler for local files.

use std::fs::File;
use std::os::unix::fs::FileExt;

use adit_ssh_proto::sftp::{Extension, ExtensionSet, FileAttrs, OpenFlags, OwnerIds, StatVfs};
use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags};
use rustix::io::Errno;

use super::directory::OpenDirectory;
use super::entries::Entries;
use super::options::{FileTreeOptions, ServeError};
use super::owner_names::{self, OwnerNames};
use super::refusal::{errno, refusal};
use super::tree::{NameInDirectory, Tree};
use super::{Answer, Handler, attributes, copy};

/// A handler for the local file system, with all extensions of OpenSSH that this crate supports.
///
/// Its methods make blocking calls of the system and never wait otherwise:
/// [`serve_files`](super::serve_files()) runs it on a thread that may block. With a
/// [root](FileTreeOptions::root), the kernel resolves every path inside of it (`openat2`, Linux 5.6): no
/// `..`, no symbolic link and no race with one leads out.
#[derive(Debug)]
pub struct FileTree {
    tree: Tree,
    names: OwnerNames,
    read_only: bool,
}

impl FileTree {
    /// Opens the directories of the options.
    ///
    /// # Errors
    /// [`ServeError::Directory`] if one cannot be opened, or the system cannot confine clients to it.
    pub fn new(options: &FileTreeOptions) -> Result<Self, ServeError> {
        Ok(Self {
            tree: Tree::new(options)?,
            names: OwnerNames::default(),
            read_only: options.read_only,
        })
    }

    /// Returns the home directory of a user. With a root, it is the start directory for all users.
    fn home(&self, user: &[u8]) -> Result<Vec<u8>, Errno> {
        if self.tree.is_confined() {
            return Ok(self.tree.start().to_vec());
        }
        owner_names::home(user).ok_or(Errno::NOENT)
    }

    fn expand(&self, path: &[u8]) -> Result<Vec<u8>, Errno> {
        let Some(rest) = path.strip_prefix(b"~") else {
            return self.tree.real(path);
        };
        let slash = rest.iter().position(|b| *b == b'/').unwrap_or(rest.len());
        let (user, below) = rest.split_at_checked(slash).unwrap_or((rest, b""));
        let mut home = self.home(user)?;
        home.extend_from_slice(below);
        self.tree.real(&home)
    }
}

impl Handler for FileTree {
    type File = File;
    type Directory = OpenDirectory;

    fn extensions(&self) -> ExtensionSet {
        match self.read_only {
            false => ExtensionSet::ALL,
            true => ExtensionSet::ALL
                .without(Extension::PosixRename)
                .without(Extension::HardLink)
                .without(Extension::LSetStat)
                .without(Extension::CopyData),
        }
    }

    fn is_read_only(&self) -> bool {
        self.read_only
    }

    async fn open(&mut self, path: &[u8], flags: OpenFlags, attrs: FileAttrs) -> Answer<File> {
        open(&self.tree, path, flags, &attrs).map_err(refusal)
    }

    fn read_now(
        &mut self,
        file: &mut File,
        offset: u64,
        buffer: &mut [u8],
    ) -> Option<Answer<usize>> {
        loop {
            match file.read_at(buffer, offset) {
                Err(why) if why.kind() == std::io::ErrorKind::Interrupted => {}
                outcome => return Some(outcome.map_err(|why| refusal(errno(&why)))),
            }
        }
    }

    async fn read(&mut self, file: &mut File, offset: u64, buffer: &mut [u8]) -> Answer<usize> {
        self.read_now(file, offset, buffer).unwrap_or(Ok(0))
    }

    async fn write(&mut self, file: &mut File, offset: u64, data: &[u8]) -> Answer<()> {
        let written = file.write_all_at(data, offset);
        written.map_err(|why| refusal(errno(&why)))
    }

    async fn stat_open(&mut self, file: &mut File) -> Answer<FileAttrs> {
        let found = rustix::fs::fstat(file).map_err(refusal)?;
        Ok(attributes::attrs(&found))
    }

    async fn set_stat_open(&mut self, file: &mut File, attrs: FileAttrs) -> Answer<()> {
        attributes::set_open(file, &attrs).map_err(refusal)
    }

    async fn stat(&mut self, path: &[u8]) -> Answer<FileAttrs> {
        let file = self.tree.resolve(path).map_err(refusal)?;
        let found = rustix::fs::statat(CWD, file.path(), AtFlags::empty());
        Ok(attributes::attrs(&found.map_err(refusal)?))
    }

    async fn lstat(&mut self, path: &[u8]) -> Answer<FileAttrs> {
        let at = self.tree.at(path).map_err(refusal)?;
        let found = rustix::fs::statat(at.dir(), at.name(), AtFlags::SYMLINK_NOFOLLOW);
        Ok(attributes::attrs(&found.map_err(refusal)?))
    }

    async fn set_stat(&mut self, path: &[u8], attrs: FileAttrs) -> Answer<()> {
        attributes::set(&self.tree, path, &attrs).map_err(refusal)
    }

    async fn open_dir(&mut self, path: &[u8]) -> Answer<OpenDirectory> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let opened = self.tree.open(path, flags, Mode::empty());
        let dir = opened.and_then(Dir::new).map_err(refusal)?;
        Ok(OpenDirectory::new(dir))
    }

    async fn read_dir(
        &mut self,
        directory: &mut OpenDirectory,
        entries: &mut Entries<'_>,
    ) -> Answer<()> {
        let now = i64::try_from(adit_net::system::unix_now().0).unwrap_or(i64::MAX);
        directory.list(&mut self.names, now, entries);
        Ok(())
    }

    async fn stat_open_dir(&mut self, directory: &mut OpenDirectory) -> Answer<FileAttrs> {
        let found = directory.stat().map_err(refusal)?;
        Ok(attributes::attrs(&found))
    }

    async fn set_stat_open_dir(
        &mut self,
        directory: &mut OpenDirectory,
        attrs: FileAttrs,
    ) -> Answer<()> {
        directory.set_stat(&attrs).map_err(refusal)
    }

    async fn remove_file(&mut self, path: &[u8]) -> Answer<()> {
        let at = self.tree.at_to_change(path).map_err(refusal)?;
        unlink(&at, AtFlags::empty()).map_err(refusal)
    }

    async fn create_dir(&mut self, path: &[u8], attrs: FileAttrs) -> Answer<()> {
        let at = self.tree.at_to_change(path).map_err(refusal)?;
        let mode = attributes::new_mode(&attrs, 0o777);
        rustix::fs::mkdirat(at.dir(), at.name(), mode).map_err(refusal)
    }

    async fn remove_dir(&mut self, path: &[u8]) -> Answer<()> {
        let at = self.tree.at_to_change(path).map_err(refusal)?;
        unlink(&at, AtFlags::REMOVEDIR).map_err(refusal)
    }

    async fn rename(&mut self, from: &[u8], to: &[u8]) -> Answer<()> {
        let (from, to) = self.resolve_two(from, to)?;
        rename_new(&from, &to).map_err(refusal)
    }

    async fn symlink(&mut self, target: &[u8], link: &[u8]) -> Answer<()> {
        let at = self.tree.at_to_change(link).map_err(refusal)?;
        rustix::fs::symlinkat(target, at.dir(), at.name()).map_err(refusal)
    }

    async fn read_link(&mut self, path: &[u8]) -> Answer<Vec<u8>> {
        let at = self.tree.at(path).map_err(refusal)?;
        let target = rustix::fs::readlinkat(at.dir(), at.name(), Vec::new());
        Ok(target.map_err(refusal)?.into_bytes())
    }

    async fn real_path(&mut self, path: &[u8]) -> Answer<Vec<u8>> {
        self.tree.real(path).map_err(refusal)
    }

    async fn posix_rename(&mut self, from: &[u8], to: &[u8]) -> Answer<()> {
        let (from, to) = self.resolve_two(from, to)?;
        rustix::fs::renameat(from.dir(), from.name(), to.dir(), to.name()).map_err(refusal)
    }

    async fn hard_link(&mut self, from: &[u8], to: &[u8]) -> Answer<()> {
        let (from, to) = self.resolve_two(from, to)?;
        link(&from, &to).map_err(refusal)
    }

    async fn set_lstat(&mut self, path: &[u8], attrs: FileAttrs) -> Answer<()> {
        attributes::set_link(&self.tree, path, &attrs).map_err(refusal)
    }

    async fn sync(&mut self, file: &mut File) -> Answer<()> {
        rustix::fs::fsync(file).map_err(refusal)
    }

    async fn copy_data(
        &mut self,
        file: &File,
        offset: u64,
        len: u64,
        to: &File,
        to_offset: u64,
    ) -> Answer<()> {
        copy::copy((file, offset), len, (to, to_offset)).map_err(refusal)
    }

    async fn stat_vfs(&mut self, path: &[u8]) -> Answer<StatVfs> {
        attributes::file_system(&self.tree, path).map_err(refusal)
    }

    async fn stat_vfs_open(&mut self, file: &mut File) -> Answer<StatVfs> {
        attributes::file_system_of(file).map_err(refusal)
    }

    async fn expand_path(&mut self, path: &[u8]) -> Answer<Vec<u8>> {
        self.expand(path).map_err(refusal)
    }

    async fn home_directory(&mut self, user: &[u8]) -> Answer<Vec<u8>> {
        self.home(user).map_err(refusal)
    }

    async fn owner_names(
        &mut self,
        users: OwnerIds<'_>,
        groups: OwnerIds<'_>,
    ) -> Answer<[Vec<String>; 2]> {
        let name = |name: Option<&str>| name.unwrap_or_default().to_owned();
        let cache = &mut self.names;
        let users = users.iter().map(|id| name(cache.user(id))).collect();
        let groups = groups.iter().map(|id| name(cache.group(id))).collect();
        Ok([users, groups])
    }
}

impl FileTree {
    /// Resolves two names that will be changed.
    fn resolve_two<'a>(
        &self,
        from: &'a [u8],
        to: &'a [u8],
    ) -> Answer<(NameInDirectory<'a>, NameInDirectory<'a>)> {
        let from = self.tree.at_to_change(from).map_err(refusal)?;
        let to = self.tree.at_to_change(to).map_err(refusal)?;
        Ok((from, to))
    }
}

fn open(tree: &Tree, path: &[u8], requested: OpenFlags, attrs: &FileAttrs) -> Result<File, Errno> {
    // Opening a pipe must not wait for its other end.
    let mut flags = OFlags::NONBLOCK;
    flags |= match (
        requested.contains(OpenFlags::READ),
        requested.contains(OpenFlags::WRITE),
    ) {
        (true, true) => OFlags::RDWR,
        (false, true) => OFlags::WRONLY,
        (_, false) => OFlags::RDONLY,
    };
    for (one, flag) in [
        (OpenFlags::APPEND, OFlags::APPEND),
        (OpenFlags::CREATE, OFlags::CREATE),
        (OpenFlags::TRUNCATE, OFlags::TRUNC),
        (OpenFlags::EXCLUSIVE, OFlags::EXCL),
    ] {
        flags.set(flag, requested.contains(one));
    }
    let file = tree.open(path, flags, attributes::new_mode(attrs, 0o666))?;
    Ok(File::from(file))
}

fn unlink(at: &NameInDirectory<'_>, flags: AtFlags) -> Result<(), Errno> {
    rustix::fs::unlinkat(at.dir(), at.name(), flags)
}

fn link(from: &NameInDirectory<'_>, to: &NameInDirectory<'_>) -> Result<(), Errno> {
    let (source, target) = (from.name(), to.name());
    rustix::fs::linkat(from.dir(), source, to.dir(), target, AtFlags::empty())
}

/// Renames a file unless the new name exists.
fn rename_new(from: &NameInDirectory<'_>, to: &NameInDirectory<'_>) -> Result<(), Errno> {
    let (source, target) = (from.name(), to.name());
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{RenameFlags, renameat_with};
        let flags = RenameFlags::NOREPLACE;
        match renameat_with(from.dir(), source, to.dir(), target, flags) {
            // Not every file system has it.
            Err(Errno::INVAL | Errno::NOSYS) => {}
            outcome => return outcome,
        }
    }
    let nofollow = AtFlags::SYMLINK_NOFOLLOW;
    let found = rustix::fs::statat(from.dir(), source, nofollow)?;
    if rustix::fs::FileType::from_raw_mode(found.st_mode).is_file() {
        link(from, to)?;
        return unlink(from, AtFlags::empty());
    }
    match rustix::fs::statat(to.dir(), target, nofollow) {
        Ok(_) => Err(Errno::EXIST),
        Err(Errno::NOENT) => rustix::fs::renameat(from.dir(), source, to.dir(), target),
        Err(why) => Err(why),
    }
}
