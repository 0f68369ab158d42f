//! The interface between the protocol and the files that a server serves.

use std::future::{Future, ready};

use adit_ssh_proto::sftp::{ExtensionSet, FileAttrs, OpenFlags, OwnerIds, StatVfs};

use super::Refusal;
use super::entries::Entries;

/// Result of a handler's method.
pub type Answer<T> = Result<T, Refusal>;

/// The files that a server serves to one client.
///
/// The driver calls one method at a time, in the order of the requests, and answers each request with
/// what the method returns. Write the methods as `async fn`. Those with a default refuse as unsupported,
/// unless stated otherwise. Methods of extensions are only called if [`Handler::extensions`] has them.
///
/// Paths are bytes as the client sent them: relative ones start where the handler decides, and `..` and
/// symbolic links are for the handler to resolve. Everything that a client sends is untrusted.
pub trait Handler: Send {
    /// An open file. It is dropped when the session ends.
    type File: Send + Sync;
    /// An open directory. It is dropped when the session ends.
    type Directory: Send + Sync;

    /// Returns the extensions to announce; none by default. The driver adds the query of its limits if
    /// the set contains it.
    fn extensions(&self) -> ExtensionSet {
        ExtensionSet::default()
    }

    /// True if the driver shall refuse all requests that change something, without a call; false by
    /// default.
    fn is_read_only(&self) -> bool {
        false
    }

    /// Opens a file. `attrs` are for one that is created.
    fn open(
        &mut self,
        path: &[u8],
        flags: OpenFlags,
        attrs: FileAttrs,
    ) -> impl Future<Output = Answer<Self::File>> + Send;

    /// Reads at `offset` into `buffer` without waiting, and returns the number of bytes, 0 at the end;
    /// `None`, the default, means that [`Handler::read`] is to be called. The buffer is a part of the
    /// answer, which saves a copy.
    fn read_now(
        &mut self,
        file: &mut Self::File,
        offset: u64,
        buffer: &mut [u8],
    ) -> Option<Answer<usize>> {
        let _ = (file, offset, buffer);
        None
    }

    /// Reads at `offset` into `buffer` and returns the number of bytes, 0 at the end. Clients complete
    /// short reads.
    fn read(
        &mut self,
        file: &mut Self::File,
        offset: u64,
        buffer: &mut [u8],
    ) -> impl Future<Output = Answer<usize>> + Send;

    /// Writes all of `data` at `offset`.
    fn write(
        &mut self,
        file: &mut Self::File,
        offset: u64,
        data: &[u8],
    ) -> impl Future<Output = Answer<()>> + Send {
        let _ = (file, offset, data);
        ready(Err(Refusal::UNSUPPORTED))
    }

    /// Closes a file. By default, it is dropped.
    fn close(&mut self, file: Self::File) -> impl Future<Output = Answer<()>> + Send {
        drop(file);
        ready(Ok(()))
    }

    /// Returns the attributes of an open file.
    fn stat_open(
        &mut self,
        file: &mut Self::File,
    ) -> impl Future<Output = Answer<FileAttrs>> + Send;

    /// Changes attributes of an open file.
    fn set_stat_open(
        &mut self,
        file: &mut Self::File,
        attrs: FileAttrs,
    ) -> impl Future<Output = Answer<()>> + Send {
        let _ = (file, attrs);
        ready(Err(Refusal::UNSUPPORTED))
    }

    /// Returns the attributes of the file that a path leads to.
    fn stat(&mut self, path: &[u8]) -> impl Future<Output = Answer<FileAttrs>> + Send;

    /// Returns the attributes of a path without following a symbolic link. By default, there are no
    /// symbolic links.
    fn lstat(&mut self, path: &[u8]) -> impl Future<Output = Answer<FileAttrs>> + Send {
        self.stat(path)
    }

    /// Changes attributes of the file that a path leads to.
    fn set_stat(
        &mut self,
        path: &[u8],
        attrs: FileAttrs,
    ) -> impl Future<Output = Answer<()>> + Send {
        let _ = (path, attrs);
        ready(Err(Refusal::UNSUPPORTED))
    }

    /// Opens a directory.
    fn open_dir(&mut self, path: &[u8]) -> impl Future<Output = Answer<Self::Directory>> + Send;

    /// Adds the next entries of a directory to `entries`, until that is full; none mean the end.
    fn read_dir(
        &mut self,
        directory: &mut Self::Directory,
        entries: &mut Entries<'_>,
    ) -> impl Future<Output = Answer<()>> + Send;

    /// Returns the attributes of an open directory.
    fn stat_open_dir(
        &mut self,
        directory: &mut Self::Directory,
    ) -> impl Future<Output = Answer<FileAttrs>> + Send {
        let _ = directory;
        ready(Err(Refusal::UNSUPPORTED))
    }

    /// Changes attributes of an open directory.
    fn set_stat_open_dir(
        &mut self,
        directory: &mut Self::Directory,
        attrs: FileAttrs,
    ) -> impl Future<Output = Answer<()>> + Send {
        let _ = (directory, attrs);
        ready(Err(Refusal::UNSUPPORTED))
    }

    /// Removes a file or a symbolic link.
    fn remove_file(&mut self, path: &[u8]) -> impl Future<Output = Answer<()>> + Send {
        let _ = path;
        ready(Err(Refusal::UNSUPPORTED))
    }

    /// Creates a directory.
    fn create_dir(
        &mut self,
        path: &[u8],
        attrs: FileAttrs,
    ) -> impl Future<Output = Answer<()>> + Send {
        let _ = (path, attrs);
        ready(Err(Refusal::UNSUPPORTED))
    }

    /// Removes an empty directory.
    fn remove_dir(&mut self, path: &[u8]) -> impl Future<Output = Answer<()>> + Send {
        let _ = path;
        ready(Err(Refusal::UNSUPPORTED))
    }

    /// Renames a file or directory, unless the new name exists.
    fn rename(&mut self, from: &[u8], to: &[u8]) -> impl Future<Output = Answer<()>> + Send {
        let _ = (from, to);
        ready(Err(Refusal::UNSUPPORTED))
    }

    /// Creates a symbolic link.
    fn symlink(&mut self, target: &[u8], link: &[u8]) -> impl Future<Output = Answer<()>> + Send {
        let _ = (target, link);
        ready(Err(Refusal::UNSUPPORTED))
    }

    /// Returns the target of a symbolic link.
    fn read_link(&mut self, path: &[u8]) -> impl Future<Output = Answer<Vec<u8>>> + Send {
        let _ = path;
        ready(Err(Refusal::UNSUPPORTED))
    }

    /// Returns the absolute path without `.`, `..` and symbolic links. Clients ask for `.` to learn where
    /// they are, and for paths that they are about to create.
    fn real_path(&mut self, path: &[u8]) -> impl Future<Output = Answer<Vec<u8>>> + Send;

    /// Renames a file or directory, and replaces an existing file (`posix-rename@openssh.com`).
    fn posix_rename(&mut self, from: &[u8], to: &[u8]) -> impl Future<Output = Answer<()>> + Send {
        let _ = (from, to);
        ready(Err(Refusal::UNSUPPORTED))
    }

    /// Creates a hard link (`hardlink@openssh.com`).
    fn hard_link(&mut self, from: &[u8], to: &[u8]) -> impl Future<Output = Answer<()>> + Send {
        let _ = (from, to);
        ready(Err(Refusal::UNSUPPORTED))
    }

    /// Changes attributes without following a symbolic link (`lsetstat@openssh.com`).
    fn set_lstat(
        &mut self,
        path: &[u8],
        attrs: FileAttrs,
    ) -> impl Future<Output = Answer<()>> + Send {
        let _ = (path, attrs);
        ready(Err(Refusal::UNSUPPORTED))
    }

    /// Flushes written data to the disk (`fsync@openssh.com`).
    fn sync(&mut self, file: &mut Self::File) -> impl Future<Output = Answer<()>> + Send {
        let _ = file;
        ready(Err(Refusal::UNSUPPORTED))
    }

    /// Copies `len` bytes from `offset` of one file to `to_offset` of another; 0 means up to the end
    /// (`copy-data`).
    fn copy_data(
        &mut self,
        file: &Self::File,
        offset: u64,
        len: u64,
        to: &Self::File,
        to_offset: u64,
    ) -> impl Future<Output = Answer<()>> + Send {
        let _ = (file, offset, len, to, to_offset);
        ready(Err(Refusal::UNSUPPORTED))
    }

    /// Returns the state of the file system of a path (`statvfs@openssh.com`).
    fn stat_vfs(&mut self, path: &[u8]) -> impl Future<Output = Answer<StatVfs>> + Send {
        let _ = path;
        ready(Err(Refusal::UNSUPPORTED))
    }

    /// Returns the state of the file system of an open file (`fstatvfs@openssh.com`).
    fn stat_vfs_open(
        &mut self,
        file: &mut Self::File,
    ) -> impl Future<Output = Answer<StatVfs>> + Send {
        let _ = file;
        ready(Err(Refusal::UNSUPPORTED))
    }

    /// Returns the absolute path of one that starts with `~` (`expand-path@openssh.com`).
    fn expand_path(&mut self, path: &[u8]) -> impl Future<Output = Answer<Vec<u8>>> + Send {
        let _ = path;
        ready(Err(Refusal::UNSUPPORTED))
    }

    /// Returns the home directory of a user, of the client's own if the name is empty
    /// (`home-directory`).
    fn home_directory(&mut self, user: &[u8]) -> impl Future<Output = Answer<Vec<u8>>> + Send {
        let _ = user;
        ready(Err(Refusal::UNSUPPORTED))
    }

    /// Returns the names of users and of groups in the order of their numbers, empty ones for unknown
    /// numbers (`users-groups-by-id@openssh.com`).
    fn owner_names(
        &mut self,
        users: OwnerIds<'_>,
        groups: OwnerIds<'_>,
    ) -> impl Future<Output = Answer<[Vec<String>; 2]>> + Send {
        let _ = (users, groups);
        ready(Err(Refusal::UNSUPPORTED))
    }
}
