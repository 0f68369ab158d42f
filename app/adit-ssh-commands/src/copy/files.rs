//! Single operations on the files of the other machine.

use adit_ssh_proto::sftp::{
    ExtendedRequest, Extension, FileAttrs, FileType, OpenFlags, SftpRefused, SftpReply,
    SftpRequest, SftpStatus, StatVfs,
};

use super::names::is_entry;
use super::{CopyError, Remote};

/// Entries of a folder at most.
const MOST_ENTRIES: usize = 4 << 20;

/// A folder's entry.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// Its name.
    pub(crate) name: Vec<u8>,
    /// The server's line of `ls -l`.
    pub(crate) line: Vec<u8>,
    /// Its attributes, of itself if it is a symbolic link.
    pub(crate) attrs: FileAttrs,
}

fn wrong() -> CopyError {
    CopyError::Protocol(adit_ssh_proto::SshError::Malformed("kind of an SFTP reply"))
}

/// The status of a reply that should have been another one.
fn refused(reply: &SftpReply<'_>) -> CopyError {
    match reply {
        SftpReply::Status(reply) => SftpRefused::from(*reply).into(),
        _ => wrong(),
    }
}

/// A reply that says that it was done.
pub(super) fn done(reply: &SftpReply<'_>) -> Result<(), CopyError> {
    match reply {
        SftpReply::Status(reply) if reply.status == SftpStatus::Ok => Ok(()),
        other => Err(refused(other)),
    }
}

fn attrs(reply: &SftpReply<'_>) -> Result<FileAttrs, CopyError> {
    match reply {
        SftpReply::Attrs(attrs) => Ok(*attrs),
        other => Err(refused(other)),
    }
}

fn handle(reply: &SftpReply<'_>) -> Result<Vec<u8>, CopyError> {
    match reply {
        SftpReply::Handle(handle) => Ok(handle.to_vec()),
        other => Err(refused(other)),
    }
}

fn one_name(reply: &SftpReply<'_>) -> Result<Vec<u8>, CopyError> {
    match reply {
        SftpReply::Names(names) => names
            .iter()
            .next()
            .map(|name| name.name.to_vec())
            .ok_or_else(wrong),
        other => Err(refused(other)),
    }
}

impl Remote {
    /// Does what is answered with a status alone.
    pub(crate) async fn perform(&mut self, request: &SftpRequest<'_>) -> Result<(), CopyError> {
        self.ask(request, done).await
    }

    /// The attributes of a path.
    pub(crate) async fn stat(&mut self, path: &[u8]) -> Result<FileAttrs, CopyError> {
        self.ask(&SftpRequest::Stat { path }, attrs).await
    }

    /// The attributes of a path, of itself if it is a symbolic link.
    pub(crate) async fn lstat(&mut self, path: &[u8]) -> Result<FileAttrs, CopyError> {
        self.ask(&SftpRequest::Lstat { path }, attrs).await
    }

    /// Whether it leads to a folder.
    pub(crate) async fn is_folder(&mut self, path: &[u8]) -> Result<bool, CopyError> {
        match self.stat(path).await {
            Ok(attrs) => Ok(attrs.file_kind() == Some(FileType::Folder)),
            Err(fault) if fault.is_fatal() => Err(fault),
            Err(_) => Ok(false),
        }
    }

    /// The absolute path.
    pub(crate) async fn real(&mut self, path: &[u8]) -> Result<Vec<u8>, CopyError> {
        self.ask(&SftpRequest::Realpath { path }, one_name).await
    }

    /// Makes a folder that its owner can fill, unless it is there.
    pub(super) async fn make_folder(&mut self, path: &[u8], mode: u32) -> Result<(), CopyError> {
        let attrs = FileAttrs {
            permissions: Some(mode & 0o777 | 0o700),
            ..FileAttrs::default()
        };
        match self.perform(&SftpRequest::Mkdir { path, attrs }).await {
            Err(fault) if fault.is_fatal() || !self.is_folder(path).await? => Err(fault),
            _ => Ok(()),
        }
    }

    /// A path as it was typed, without `~` in front: relative paths begin at home anyway.
    pub(crate) async fn at_home(&mut self, path: &[u8]) -> Result<Vec<u8>, CopyError> {
        if !path.starts_with(b"~") {
            return Ok(path.to_vec());
        }
        if self.has(Extension::ExpandPath) {
            // The rest stays as it was typed, so that no server chooses the name of a copy.
            let end = path.iter().position(|byte| *byte == b'/');
            let (home, rest) = path.split_at(end.unwrap_or(path.len()));
            let request = SftpRequest::Extended(ExtendedRequest::ExpandPath { path: home });
            let mut path = self.ask(&request, one_name).await?;
            path.extend_from_slice(rest);
            return Ok(path);
        }
        match path.strip_prefix(b"~/") {
            Some(rest) => Ok(rest.to_vec()),
            None if path == b"~" => Ok(b".".to_vec()),
            None => Err(CopyError::other("the server knows no home of other users")),
        }
    }

    /// Opens a file; gives its handle.
    pub(crate) async fn open_file(
        &mut self,
        path: &[u8],
        flags: OpenFlags,
        attrs: FileAttrs,
    ) -> Result<Vec<u8>, CopyError> {
        let request = SftpRequest::Open { path, flags, attrs };
        self.ask(&request, handle).await
    }

    /// Closes without waiting for the answer, where it has no meaning.
    pub(crate) fn drop_handle(&mut self, handle: &[u8]) -> Result<(), CopyError> {
        self.send(&SftpRequest::Close { handle }).map(drop)
    }

    /// The entries of a folder, without itself and the one above, in no order.
    pub(crate) async fn entries(&mut self, path: &[u8]) -> Result<Vec<Entry>, CopyError> {
        let folder = self.ask(&SftpRequest::Opendir { path }, handle).await?;
        let mut all = Vec::new();
        let request = SftpRequest::Readdir {
            handle: folder.as_slice(),
        };
        let outcome = loop {
            let more = self.ask(&request, |reply| match reply {
                SftpReply::Names(names) => {
                    let entries = names.iter().filter(|name| is_entry(name.name));
                    all.extend(entries.map(|name| Entry {
                        name: name.name.to_vec(),
                        line: name.line.to_vec(),
                        attrs: name.attrs,
                    }));
                    Ok(!names.is_empty())
                }
                SftpReply::Status(reply) if reply.status == SftpStatus::Eof => Ok(false),
                other => Err(refused(other)),
            });
            match more.await {
                Ok(true) if all.len() < MOST_ENTRIES => {}
                Ok(true) => break Err(CopyError::other("the folder has too many entries")),
                Ok(false) => break Ok(all),
                Err(fault) => break Err(fault),
            }
        };
        self.drop_handle(&folder)?;
        outcome
    }

    /// The file system of a path.
    pub(crate) async fn file_system(&mut self, path: &[u8]) -> Result<StatVfs, CopyError> {
        if !self.has(Extension::StatVfs) {
            return Err(CopyError::other("the server does not tell"));
        }
        let request = SftpRequest::Extended(ExtendedRequest::StatVfs { path });
        self.ask(&request, |reply| match reply {
            SftpReply::Extended(data) => Ok(StatVfs::parse(data)?),
            other => Err(refused(other)),
        })
        .await
    }

    /// Renames; what has the new name is replaced, as far as the server can.
    pub(crate) async fn rename(&mut self, from: &[u8], to: &[u8]) -> Result<(), CopyError> {
        let request = match self.has(Extension::PosixRename) {
            true => SftpRequest::Extended(ExtendedRequest::PosixRename { from, to }),
            false => SftpRequest::Rename { from, to },
        };
        self.perform(&request).await
    }
}
