//! Operations on paths.

use adit_ssh_proto::sftp::{
    ExtendedRequest, Extension, FileAttrs, FileType, OpenFlags, OwnerIds, OwnerNames, SftpReply,
    SftpRequest, StatVfs,
};

use super::connection::Operation;
use super::reply::{attrs, done, handle, one_name, refused, stat_vfs};
use super::{File, SftpSession};
use crate::SftpError;

impl SftpSession {
    /// Opens a file. A file that it creates gets the server's default permissions.
    ///
    /// # Errors
    /// The server refused it, or the session is over.
    pub async fn open_file(
        &self,
        path: impl AsRef<[u8]>,
        flags: OpenFlags,
    ) -> Result<File, SftpError> {
        self.open_file_with(path, flags, FileAttrs::default()).await
    }

    /// Opens a file, with the attributes of one that it creates. Servers use at most the permissions.
    ///
    /// # Errors
    /// The server refused it, or the session is over.
    pub async fn open_file_with(
        &self,
        path: impl AsRef<[u8]>,
        flags: OpenFlags,
        attrs: FileAttrs,
    ) -> Result<File, SftpError> {
        let path = path.as_ref();
        let request = SftpRequest::Open { path, flags, attrs };
        let operation = Operation::new(&self.connection);
        let handle = operation.ask(&request, handle).await?;
        Ok(File::new(operation.connection(), handle))
    }

    /// Returns the attributes of the file that a path leads to.
    ///
    /// # Errors
    /// The server refused it, or the session is over.
    pub async fn stat(&self, path: impl AsRef<[u8]>) -> Result<FileAttrs, SftpError> {
        let path = path.as_ref();
        self.ask(&SftpRequest::Stat { path }, attrs).await
    }

    /// Returns the attributes of a path without following a symbolic link.
    ///
    /// # Errors
    /// The server refused it, or the session is over.
    pub async fn lstat(&self, path: impl AsRef<[u8]>) -> Result<FileAttrs, SftpError> {
        let path = path.as_ref();
        self.ask(&SftpRequest::Lstat { path }, attrs).await
    }

    /// True if a path leads to a directory, false if the server refuses to say.
    ///
    /// # Errors
    /// The session is over.
    pub async fn is_dir(&self, path: impl AsRef<[u8]>) -> Result<bool, SftpError> {
        match self.stat(path).await {
            Ok(attrs) => Ok(attrs.file_kind() == Some(FileType::Folder)),
            Err(why) if why.is_fatal() => Err(why),
            Err(_) => Ok(false),
        }
    }

    /// Changes the attributes that are present.
    ///
    /// # Errors
    /// The server refused it, perhaps after a part of the changes, or the session is over.
    pub async fn set_stat(
        &self,
        path: impl AsRef<[u8]>,
        attrs: FileAttrs,
    ) -> Result<(), SftpError> {
        let path = path.as_ref();
        self.ask(&SftpRequest::Setstat { path, attrs }, done).await
    }

    /// Changes the attributes that are present without following a symbolic link
    /// (`lsetstat@openssh.com`).
    ///
    /// # Errors
    /// [`SftpError::Unsupported`], the server refused it, or the session is over.
    pub async fn set_lstat(
        &self,
        path: impl AsRef<[u8]>,
        attrs: FileAttrs,
    ) -> Result<(), SftpError> {
        self.require(Extension::LSetStat)?;
        let path = path.as_ref();
        let request = SftpRequest::Extended(ExtendedRequest::LSetStat { path, attrs });
        self.ask(&request, done).await
    }

    /// Creates a directory.
    ///
    /// # Errors
    /// The server refused it, or the session is over.
    pub async fn create_dir(
        &self,
        path: impl AsRef<[u8]>,
        attrs: FileAttrs,
    ) -> Result<(), SftpError> {
        let path = path.as_ref();
        self.ask(&SftpRequest::Mkdir { path, attrs }, done).await
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// The server refused it, or the session is over.
    pub async fn remove_dir(&self, path: impl AsRef<[u8]>) -> Result<(), SftpError> {
        let path = path.as_ref();
        self.ask(&SftpRequest::Rmdir { path }, done).await
    }

    /// Removes a file or a symbolic link.
    ///
    /// # Errors
    /// The server refused it, or the session is over.
    pub async fn remove_file(&self, path: impl AsRef<[u8]>) -> Result<(), SftpError> {
        let path = path.as_ref();
        self.ask(&SftpRequest::Remove { path }, done).await
    }

    /// Renames a file or directory, unless the new name exists.
    ///
    /// # Errors
    /// The server refused it, or the session is over.
    pub async fn rename(
        &self,
        from: impl AsRef<[u8]>,
        to: impl AsRef<[u8]>,
    ) -> Result<(), SftpError> {
        let (from, to) = (from.as_ref(), to.as_ref());
        self.ask(&SftpRequest::Rename { from, to }, done).await
    }

    /// Renames a file or directory; an existing file of the new name is replaced atomically
    /// (`posix-rename@openssh.com`).
    ///
    /// # Errors
    /// [`SftpError::Unsupported`], the server refused it, or the session is over.
    pub async fn posix_rename(
        &self,
        from: impl AsRef<[u8]>,
        to: impl AsRef<[u8]>,
    ) -> Result<(), SftpError> {
        self.require(Extension::PosixRename)?;
        let (from, to) = (from.as_ref(), to.as_ref());
        let request = SftpRequest::Extended(ExtendedRequest::PosixRename { from, to });
        self.ask(&request, done).await
    }

    /// Creates a symbolic link. Its target is stored unchanged. The fields are sent in the order that
    /// OpenSSH uses, which differs from the draft.
    ///
    /// # Errors
    /// The server refused it, or the session is over.
    pub async fn symlink(
        &self,
        target: impl AsRef<[u8]>,
        link: impl AsRef<[u8]>,
    ) -> Result<(), SftpError> {
        let (target, link) = (target.as_ref(), link.as_ref());
        self.ask(&SftpRequest::Symlink { target, link }, done).await
    }

    /// Creates a hard link (`hardlink@openssh.com`).
    ///
    /// # Errors
    /// [`SftpError::Unsupported`], the server refused it, or the session is over.
    pub async fn hard_link(
        &self,
        from: impl AsRef<[u8]>,
        to: impl AsRef<[u8]>,
    ) -> Result<(), SftpError> {
        self.require(Extension::HardLink)?;
        let (from, to) = (from.as_ref(), to.as_ref());
        let request = SftpRequest::Extended(ExtendedRequest::HardLink { from, to });
        self.ask(&request, done).await
    }

    /// Returns the target of a symbolic link.
    ///
    /// # Errors
    /// The server refused it, or the session is over.
    pub async fn read_link(&self, path: impl AsRef<[u8]>) -> Result<Vec<u8>, SftpError> {
        let path = path.as_ref();
        self.ask(&SftpRequest::Readlink { path }, one_name).await
    }

    /// Returns the absolute path without `.`, `..` and symbolic links. Many servers accept a path whose
    /// last name does not exist.
    ///
    /// # Errors
    /// The server refused it, or the session is over.
    pub async fn real_path(&self, path: impl AsRef<[u8]>) -> Result<Vec<u8>, SftpError> {
        let path = path.as_ref();
        self.ask(&SftpRequest::Realpath { path }, one_name).await
    }

    /// Returns the absolute path of one that starts with `~` (`expand-path@openssh.com`).
    ///
    /// # Errors
    /// [`SftpError::Unsupported`], the server refused it, or the session is over.
    pub async fn expand_path(&self, path: impl AsRef<[u8]>) -> Result<Vec<u8>, SftpError> {
        self.require(Extension::ExpandPath)?;
        let path = path.as_ref();
        let request = SftpRequest::Extended(ExtendedRequest::ExpandPath { path });
        self.ask(&request, one_name).await
    }

    /// Returns the home directory of a user (`home-directory`).
    ///
    /// # Errors
    /// [`SftpError::Unsupported`], the server refused it, or the session is over.
    pub async fn home_directory(&self, user: &str) -> Result<Vec<u8>, SftpError> {
        self.require(Extension::HomeDirectory)?;
        let user = user.as_bytes();
        let request = SftpRequest::Extended(ExtendedRequest::HomeDirectory { user });
        self.ask(&request, one_name).await
    }

    /// Returns the state of the file system of a path (`statvfs@openssh.com`).
    ///
    /// # Errors
    /// [`SftpError::Unsupported`], the server refused it, or the session is over.
    pub async fn stat_vfs(&self, path: impl AsRef<[u8]>) -> Result<StatVfs, SftpError> {
        self.require(Extension::StatVfs)?;
        let path = path.as_ref();
        let request = SftpRequest::Extended(ExtendedRequest::StatVfs { path });
        self.ask(&request, stat_vfs).await
    }

    /// Returns the names of users and of groups, in the order of their numbers; an unknown one is empty
    /// (`users-groups-by-id@openssh.com`).
    ///
    /// # Errors
    /// [`SftpError::Unsupported`], the server refused it, or the session is over.
    pub async fn owner_names(
        &self,
        users: &[u32],
        groups: &[u32],
    ) -> Result<[Vec<Vec<u8>>; 2], SftpError> {
        self.require(Extension::UsersGroupsById)?;
        let bytes =
            |ids: &[u32]| -> Vec<u8> { ids.iter().flat_map(|id| id.to_be_bytes()).collect() };
        let (users, groups) = (bytes(users), bytes(groups));
        let request = SftpRequest::Extended(ExtendedRequest::UsersGroupsById {
            users: OwnerIds::new(&users).unwrap_or_default(),
            groups: OwnerIds::new(&groups).unwrap_or_default(),
        });
        let list = |names: OwnerNames<'_>| names.iter().map(<[u8]>::to_vec).collect();
        self.ask(&request, |reply| match reply {
            SftpReply::Extended(data) => Ok(OwnerNames::parse_pair(data)?.map(list)),
            other => Err(refused(other)),
        })
        .await
    }
}
