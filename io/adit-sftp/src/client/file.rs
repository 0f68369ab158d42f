//! Open files.

use std::sync::Arc;

use adit_ssh_proto::sftp::{
    ExtendedRequest, Extension, FileAttrs, SftpReply, SftpRequest, StatVfs, Upload,
};

use super::SftpSession;
use super::connection::{Connection, Operation};
use super::range::RangeRead;
use super::reply::{attrs, done, stat_vfs};
use super::transfer::UploadRun;
use crate::SftpError;

/// A file that is open on the server.
///
/// Reads and writes have their offset as an argument, and take `&self`: any number of them may be in
/// flight. Dropping the file closes it without waiting for the server's answer; the request is sent
/// immediately if the stream accepts it, or with the next operation of the session.
///
/// For tokio's `AsyncRead` and `AsyncWrite`, see [`into_reader`](Self::into_reader) and
/// [`into_writer`](Self::into_writer).
#[derive(Debug)]
pub struct File {
    session: SftpSession,
    handle: Vec<u8>,
    open: bool,
}

impl File {
    pub(super) fn new(connection: &Arc<Connection>, handle: Vec<u8>) -> Self {
        Self {
            session: SftpSession {
                connection: Arc::clone(connection),
            },
            handle,
            open: true,
        }
    }

    pub(super) fn handle(&self) -> &[u8] {
        &self.handle
    }

    pub(super) fn start_operation(&self) -> Operation {
        Operation::new(&self.session.connection)
    }

    /// Records that a request to close the file was sent.
    pub(super) const fn mark_closed(&mut self) {
        self.open = false;
    }

    /// Reads from `offset` on until `buffer` is full or the file ends, and returns the number of bytes
    /// read. A buffer that is larger than the server's limit is filled by many requests in flight.
    ///
    /// # Errors
    /// The server refused it, or the session is over. The content of `buffer` is unspecified then.
    pub async fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, SftpError> {
        let operation = self.start_operation();
        RangeRead::new(&self.handle, offset, buffer)
            .run(&operation)
            .await
    }

    /// Writes all of `data` from `offset` on. Data that is larger than the server's limit is written by
    /// many requests in flight.
    ///
    /// # Errors
    /// The server refused it, or the session is over. Any part of `data` may be written then.
    pub async fn write_all_at(&self, data: &[u8], offset: u64) -> Result<(), SftpError> {
        let operation = self.start_operation();
        let chunk = operation.lock().client.limits().write_chunk();
        let mut run = UploadRun::new(operation, Upload::new(&self.handle, offset, chunk));
        let mut fill = |at: u64, room: &mut [u8]| {
            let start = usize::try_from(at.saturating_sub(offset)).unwrap_or(usize::MAX);
            let rest = data.get(start..).unwrap_or_default();
            let n = rest.len().min(room.len());
            if let (Some(room), Some(rest)) = (room.get_mut(..n), rest.get(..n)) {
                room.copy_from_slice(rest);
            }
            Ok(n)
        };
        while run.advance(&mut fill).await?.is_some() {}
        Ok(())
    }

    /// Returns the attributes.
    ///
    /// # Errors
    /// The server refused it, or the session is over.
    pub async fn stat(&self) -> Result<FileAttrs, SftpError> {
        let handle = self.handle();
        let request = SftpRequest::Fstat { handle };
        self.session.ask(&request, attrs).await
    }

    /// Changes the attributes that are present; a size truncates or extends the file.
    ///
    /// # Errors
    /// The server refused it, perhaps after a part of the changes, or the session is over.
    pub async fn set_stat(&self, attrs: FileAttrs) -> Result<(), SftpError> {
        let handle = self.handle();
        let request = SftpRequest::Fsetstat { handle, attrs };
        self.session.ask(&request, done).await
    }

    /// Waits until the server has written the file to its disk (`fsync@openssh.com`).
    ///
    /// # Errors
    /// [`SftpError::Unsupported`], the server refused it, or the session is over.
    pub async fn sync_all(&self) -> Result<(), SftpError> {
        self.session.require(Extension::FSync)?;
        let handle = self.handle();
        let request = SftpRequest::Extended(ExtendedRequest::FSync { handle });
        self.session.ask(&request, done).await
    }

    /// Returns the state of the file's file system (`fstatvfs@openssh.com`).
    ///
    /// # Errors
    /// [`SftpError::Unsupported`], the server refused it, or the session is over.
    pub async fn stat_vfs(&self) -> Result<StatVfs, SftpError> {
        self.session.require(Extension::FStatVfs)?;
        let handle = self.handle();
        let request = SftpRequest::Extended(ExtendedRequest::FStatVfs { handle });
        self.session.ask(&request, stat_vfs).await
    }

    /// Copies `len` bytes from `offset` of this file to `to_offset` of another one of the same session,
    /// within the server; a `len` of 0 means up to the end (`copy-data`).
    ///
    /// # Errors
    /// [`SftpError::Unsupported`], the server refused it, or the session is over.
    pub async fn copy_to(
        &self,
        offset: u64,
        len: u64,
        to: &Self,
        to_offset: u64,
    ) -> Result<(), SftpError> {
        self.session.require(Extension::CopyData)?;
        let request = SftpRequest::Extended(ExtendedRequest::CopyData {
            from: self.handle(),
            from_offset: offset,
            len,
            to: to.handle(),
            to_offset,
        });
        self.session.ask(&request, done).await
    }

    /// Closes the file and waits for the answer, in which some servers report failed writes.
    ///
    /// # Errors
    /// The server reported a failure, or the session is over. The file is closed then, too.
    pub async fn close(mut self) -> Result<(), SftpError> {
        self.finish(None).await
    }

    /// Changes attributes, if any, and closes the file, in one round trip. Returns the first failure.
    pub(super) async fn finish(&mut self, attrs: Option<FileAttrs>) -> Result<(), SftpError> {
        let operation = self.start_operation();
        let handle = self.handle.as_slice();
        let changed = match attrs {
            Some(attrs) => {
                let request = SftpRequest::Fsetstat { handle, attrs };
                Some(operation.send(&request).await?)
            }
            None => None,
        };
        let closed = operation.send(&SftpRequest::Close { handle }).await?;
        self.open = false;
        let (mut outcome, mut over) = (Ok(()), false);
        while !over {
            let mut take = |id, reply: &SftpReply<'_>| {
                if (Some(id) == changed || id == closed) && outcome.is_ok() {
                    outcome = done(reply);
                }
                over |= id == closed;
                Ok(())
            };
            operation.turn(&mut take).await?;
        }
        outcome
    }
}

impl Drop for File {
    fn drop(&mut self) {
        if self.open {
            let handle = self.handle.as_slice();
            self.session
                .connection
                .send_unanswered(&SftpRequest::Close { handle });
        }
    }
}
