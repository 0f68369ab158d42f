//! Directories.

use adit_ssh_proto::sftp::{FileAttrs, SftpReply, SftpRequest, SftpStatus};

use super::connection::Operation;
use super::reply::{handle, refused};
use super::{File, SftpSession};
use crate::{SftpError, is_entry_name};

/// Maximum number of entries of a directory.
const MAX_ENTRIES: usize = 4 << 20;

/// An entry of a directory.
#[derive(Debug, Clone)]
pub struct DirEntry {
    /// Its name, which is neither empty, `.` nor `..`, and contains neither a slash nor a NUL.
    pub name: Vec<u8>,
    /// The server's line in the format of `ls -l`.
    pub line: Vec<u8>,
    /// Its attributes, of the link itself if it is a symbolic link.
    pub attrs: FileAttrs,
}

impl SftpSession {
    /// Returns the entries of a directory without `.` and `..`, in no order. Names that would lead out of
    /// the directory are omitted, so that they are safe to join to a local path.
    ///
    /// # Errors
    /// The server refused it, the session is over, or the directory has more than 4 Mi entries.
    pub async fn read_dir(&self, path: impl AsRef<[u8]>) -> Result<Vec<DirEntry>, SftpError> {
        let path = path.as_ref();
        let operation = Operation::new(&self.connection);
        let handle = operation
            .ask(&SftpRequest::Opendir { path }, handle)
            .await?;
        // It closes the handle.
        let directory = File::new(&self.connection, handle);
        let request = SftpRequest::Readdir {
            handle: directory.handle(),
        };
        let mut all = Vec::new();
        loop {
            let more = operation.ask(&request, |reply| match reply {
                SftpReply::Names(names) => {
                    let entries = names.iter().filter(|name| is_entry_name(name.name));
                    all.extend(entries.map(|name| DirEntry {
                        name: name.name.to_vec(),
                        line: name.line.to_vec(),
                        attrs: name.attrs,
                    }));
                    Ok(!names.is_empty())
                }
                SftpReply::Status(reply) if reply.status == SftpStatus::Eof => Ok(false),
                other => Err(refused(other)),
            });
            if !more.await? {
                return Ok(all);
            }
            if all.len() >= MAX_ENTRIES {
                return Err(SftpError::LimitExceeded {
                    what: "the number of directory entries",
                    limit: MAX_ENTRIES,
                });
            }
        }
    }
}
