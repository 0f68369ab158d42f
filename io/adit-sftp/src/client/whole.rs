//! Whole files in memory.

use adit_ssh_proto::sftp::OpenFlags;
use adit_wire::u64_from;

use super::SftpSession;
use crate::SftpError;

/// Size of the first read of a file of unknown length, in bytes.
const FIRST_READ: usize = 64 << 10;
/// Maximum size of one read, in bytes.
const MAX_READ: usize = 4 << 20;

impl SftpSession {
    /// Returns the content of a file of at most `limit` bytes.
    ///
    /// # Errors
    /// [`SftpError::LimitExceeded`] if the file is longer, the server refused it, or the session is over.
    pub async fn read(&self, path: impl AsRef<[u8]>, limit: usize) -> Result<Vec<u8>, SftpError> {
        let file = self.open_file(path, OpenFlags::READ).await?;
        let (mut data, mut len, mut step) = (Vec::new(), 0, FIRST_READ);
        loop {
            // One byte more than allowed shows that the file is longer.
            let end = limit.saturating_add(1).min(len + step);
            data.resize(end, 0);
            let room = data.get_mut(len..).unwrap_or_default();
            let wanted = room.len();
            let read = file.read_at(room, u64_from(len)).await?;
            len += read;
            if len > limit {
                return Err(SftpError::LimitExceeded {
                    what: "the length of the file",
                    limit,
                });
            }
            if read < wanted {
                data.truncate(len);
                return Ok(data);
            }
            step = (step * 2).min(MAX_READ);
        }
    }

    /// Creates a file with this content, or replaces the content of an existing one.
    ///
    /// # Errors
    /// The server refused it, perhaps after a part was written, or the session is over.
    pub async fn write(&self, path: impl AsRef<[u8]>, data: &[u8]) -> Result<(), SftpError> {
        let flags = OpenFlags::WRITE
            .union(OpenFlags::CREATE)
            .union(OpenFlags::TRUNCATE);
        let file = self.open_file(path, flags).await?;
        file.write_all_at(data, 0).await?;
        file.close().await
    }
}
