//! Uploads of single files.

use std::os::unix::fs::FileExt;
use std::path::Path;

use adit_ssh_proto::sftp::{FileAttrs, OpenFlags, Upload};

use super::connection::Operation;
use super::transfer::{UploadRun, cut, kept};
use super::{File, SftpSession, TransferOptions};
use crate::SftpError;
use crate::local::attrs_from_metadata;

impl SftpSession {
    /// Copies the local file `from` to the file `to` of the server, which is replaced. Returns the
    /// length of the file in bytes.
    ///
    /// Many requests are in flight, more on links with a longer round trip. See [`Put`] for what an
    /// interrupted copy leaves, and for the calls that block.
    ///
    /// # Errors
    /// The server refused it, the local file could not be read, or the session is over.
    pub async fn put(
        &self,
        from: impl AsRef<Path>,
        to: impl AsRef<[u8]>,
    ) -> Result<u64, SftpError> {
        let mut put = self.start_put(from, to, &TransferOptions::new()).await?;
        while put.advance().await?.is_some() {}
        Ok(put.offset())
    }

    /// Starts to copy the local file `from` to the file `to` of the server, in steps: to show progress,
    /// to limit the rate.
    ///
    /// # Errors
    /// The server refused it, the local file could not be opened, or the session is over.
    pub async fn start_put(
        &self,
        from: impl AsRef<Path>,
        to: impl AsRef<[u8]>,
        options: &TransferOptions,
    ) -> Result<Put, SftpError> {
        let (source, to) = (std::fs::File::open(from)?, to.as_ref());
        let metadata = source.metadata()?;
        let attrs = attrs_from_metadata(&metadata);
        if metadata.is_dir() {
            return Err(SftpError::NotRegular);
        }
        let start = self.resume_offset(to, &attrs, options).await?;
        let target = self.open_copy(to, &attrs, options, start).await?;
        let chunk = self.limits().write_chunk();
        let upload = Upload::new(target.handle(), start, chunk);
        Ok(Put {
            run: UploadRun::new(Operation::new(&self.connection), upload),
            source,
            target,
            attrs,
            start,
            preserve: options.preserve,
            complete: false,
        })
    }

    /// The length of a copy that exists already, if it is to be resumed.
    pub(super) async fn resume_offset(
        &self,
        to: &[u8],
        attrs: &FileAttrs,
        options: &TransferOptions,
    ) -> Result<u64, SftpError> {
        if !options.resume {
            return Ok(0);
        }
        let start = match self.stat(to).await {
            Ok(attrs) => attrs.size.unwrap_or(0),
            Err(why) if why.is_not_found() => 0,
            Err(why) => return Err(why),
        };
        match attrs.size {
            Some(size) if start > size => Err(SftpError::LongerCopy),
            _ => Ok(start),
        }
    }

    /// Opens the copy of a file, to be written from `start` on.
    pub(super) async fn open_copy(
        &self,
        to: &[u8],
        attrs: &FileAttrs,
        options: &TransferOptions,
        start: u64,
    ) -> Result<File, SftpError> {
        let mut flags = OpenFlags::WRITE.union(OpenFlags::CREATE);
        if start == 0 {
            flags = flags.union(OpenFlags::TRUNCATE);
        }
        let mask = if options.preserve { 0o7777 } else { 0o777 };
        let new = FileAttrs {
            permissions: attrs.permissions.map(|mode| mode & mask),
            ..FileAttrs::default()
        };
        self.open_file_with(to, flags, new).await
    }
}

/// A copy of a local file to a file of the server, in progress.
///
/// The local file is read by blocking calls of the polling thread, directly into the messages. If the
/// file is on a slow disk, drive the copy on a thread that may block.
///
/// A copy that fails is truncated on the server before its first gap, so that a later one can
/// [resume](TransferOptions::resume). One that is dropped is not: it may have gaps.
#[derive(Debug)]
pub struct Put {
    run: UploadRun,
    source: std::fs::File,
    target: File,
    attrs: FileAttrs,
    start: u64,
    preserve: bool,
    complete: bool,
}

impl Put {
    /// Returns the offset of the first byte that is copied, in bytes; 0 unless the copy is resumed.
    #[must_use]
    pub const fn start(&self) -> u64 {
        self.start
    }

    /// Returns the length of the file in bytes when it was opened.
    #[must_use]
    pub const fn size(&self) -> Option<u64> {
        self.attrs.size
    }

    /// Returns the offset before which the server has written everything, in bytes.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.run.written_to()
    }

    /// Sends data and handles replies that arrived. Returns the number of bytes sent, and `None` when
    /// the copy is complete and closed. Awaiting something else between two steps slows the transfer
    /// down.
    ///
    /// # Errors
    /// The server refused it, the local file could not be read, or the session is over.
    pub async fn advance(&mut self) -> Result<Option<usize>, SftpError> {
        if self.complete {
            return Ok(None);
        }
        let source = &self.source;
        let mut fill = |at, room: &mut [u8]| Ok(source.read_at(room, at)?);
        let outcome = self.run.advance(&mut fill).await;
        finish(
            outcome,
            &mut self.complete,
            &self.run,
            &mut self.target,
            || self.preserve.then(|| kept(&self.attrs)),
        )
        .await
    }
}

/// Completes a copy, or truncates one that failed.
pub(super) async fn finish(
    outcome: Result<Option<usize>, SftpError>,
    complete: &mut bool,
    run: &UploadRun,
    target: &mut File,
    attrs: impl FnOnce() -> Option<FileAttrs>,
) -> Result<Option<usize>, SftpError> {
    match outcome {
        Ok(None) => {
            *complete = true;
            target.finish(attrs()).await?;
            Ok(None)
        }
        // Data may be behind a chunk that was refused. The first failure is the one to report.
        Err(why) if !why.is_fatal() => {
            *complete = true;
            match target.finish(Some(cut(run.written_to()))).await {
                Err(end) if end.is_fatal() => Err(end),
                _ => Err(why),
            }
        }
        outcome => outcome,
    }
}
