//! Downloads of single files.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use adit_ssh_proto::sftp::{Download, DownloadedChunk, FileAttrs, OpenFlags, RequestId, SftpReply};
use adit_wire::Time;

use super::connection::{ConnectionState, Operation};
use super::transfer::keep_first;
use super::{File, SftpSession, TransferOptions};
use crate::SftpError;
use crate::local::apply_attrs;

impl SftpSession {
    /// Copies the file `from` of the server to the local file `to`, which is replaced. Returns the
    /// length of the file in bytes.
    ///
    /// Many requests are in flight, more on links with a longer round trip. See [`Get`] for what an
    /// interrupted copy leaves, and for the calls that block.
    ///
    /// # Errors
    /// The server refused it, the local file could not be written, or the session is over.
    pub async fn get(
        &self,
        from: impl AsRef<[u8]>,
        to: impl AsRef<Path>,
    ) -> Result<u64, SftpError> {
        let mut get = self.start_get(from, to, &TransferOptions::new()).await?;
        while get.advance().await?.is_some() {}
        Ok(get.offset())
    }

    /// Starts to copy the file `from` of the server to the local file `to`, in steps: to show progress,
    /// to limit the rate.
    ///
    /// # Errors
    /// The server refused it, the local file could not be opened, or the session is over.
    pub async fn start_get(
        &self,
        from: impl AsRef<[u8]>,
        to: impl AsRef<Path>,
        options: &TransferOptions,
    ) -> Result<Get, SftpError> {
        let from = from.as_ref();
        let attrs = match options.attrs {
            Some(attrs) => attrs,
            None => self.stat(from).await?,
        };
        let target = create(to.as_ref(), &attrs, options.resume)?;
        let start = match options.resume {
            true => target.metadata()?.len(),
            false => 0,
        };
        if attrs.size.is_some_and(|size| start > size) {
            return Err(SftpError::LongerCopy);
        }
        let complete = start > 0 && attrs.size == Some(start);
        let source = match complete {
            true => None,
            false => Some(self.open_file(from, OpenFlags::READ).await?),
        };
        // Files of `/proc` have a length of 0, and content.
        let size = attrs.size.filter(|size| *size > 0);
        let handle = source.as_ref().map_or(&[][..], File::handle);
        let chunk = self.limits().read_chunk();
        Ok(Get {
            operation: Operation::new(&self.connection),
            copy: Partial {
                download: Download::new(handle, start, size, chunk),
                file: target,
                lost: u64::MAX,
                whole: complete,
            },
            source,
            attrs,
            size,
            start,
            preserve: options.preserve,
            outcome: Ok(()),
        })
    }
}

/// A copy of a file of the server to a local file, in progress.
///
/// The local file is read and written by blocking calls of the polling thread, one for each reply:
/// usually memory copies into the system's cache. If the file is on a slow disk, drive the copy on a
/// thread that may block.
///
/// Bytes arrive in any order. A copy that is dropped before its end is truncated before its first gap, so
/// that a later one can [resume](TransferOptions::resume).
#[derive(Debug)]
pub struct Get {
    operation: Operation,
    copy: Partial,
    source: Option<File>,
    attrs: FileAttrs,
    size: Option<u64>,
    start: u64,
    preserve: bool,
    outcome: Result<(), SftpError>,
}

impl Get {
    /// Returns the offset of the first byte that is copied, in bytes; 0 unless the copy is resumed.
    #[must_use]
    pub const fn start(&self) -> u64 {
        self.start
    }

    /// Returns the length of the file in bytes, if the server reported it.
    #[must_use]
    pub const fn size(&self) -> Option<u64> {
        self.attrs.size
    }

    /// Returns the offset before which everything was copied, in bytes.
    #[must_use]
    pub fn offset(&self) -> u64 {
        match self.source {
            Some(_) => self.copy.download.received_to(),
            None => self.copy.download.end().unwrap_or(self.start),
        }
    }

    /// True if nothing is left to copy.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.copy.whole
    }

    /// Sends requests and writes what arrived. Returns the number of bytes written, and `None` when the
    /// copy is complete. Awaiting something else between two steps slows the transfer down.
    ///
    /// # Errors
    /// The server refused it, the local file could not be written, or the session is over.
    ///
    /// # Cancel safety
    /// This method is cancel safe: no byte is lost or written twice.
    pub async fn advance(&mut self) -> Result<Option<usize>, SftpError> {
        let received = self.copy.download.received_to();
        let over = self.outcome.is_err()
            || self.copy.whole
            || self.copy.download.is_done()
            || self.size.is_some_and(|size| received >= size);
        if over && self.copy.download.in_flight() == 0 {
            std::mem::replace(&mut self.outcome, Ok(()))?;
            self.complete()?;
            return Ok(None);
        }
        let now = self.request(!over)?;
        let (mut written, copy, outcome) = (0, &mut self.copy, &mut self.outcome);
        let mut take = |id, reply: &SftpReply<'_>| {
            match copy.take(now, id, reply) {
                Ok(len) => written += len,
                Err(TakeError::Transfer(why)) => keep_first(outcome, why)?,
                Err(TakeError::Local(why)) if outcome.is_ok() => *outcome = Err(why.into()),
                Err(TakeError::Local(_)) => {}
            }
            Ok(())
        };
        self.operation.turn(&mut take).await?;
        Ok(Some(written))
    }

    /// Appends requests, if `more` are wanted; returns the time.
    fn request(&mut self, more: bool) -> Result<Time, SftpError> {
        let tag = self.operation.tag();
        let mut state = self.operation.lock();
        let now = state.now();
        // The window of the transfer bounds what is prepared.
        if more && state.has_room(tag) {
            let ConnectionState { client, out, .. } = &mut *state;
            self.copy.download.send_requests(now, client, &tag, out)?;
        }
        Ok(now)
    }

    fn complete(&mut self) -> Result<(), SftpError> {
        // A file that became shorter meanwhile.
        if let Some(end) = self.copy.download.end() {
            self.copy.file.set_len(end)?;
        }
        self.copy.whole = true;
        if self.preserve {
            apply_attrs(&self.copy.file, &self.attrs)?;
        }
        Ok(())
    }
}

/// A copy that is being made. If that ends early, for any reason, it is truncated before its first gap:
/// a resumed copy takes all that is there for right.
#[derive(Debug)]
struct Partial {
    download: Download,
    file: std::fs::File,
    /// Lowest offset that was received and could not be written.
    lost: u64,
    whole: bool,
}

enum TakeError {
    Transfer(adit_ssh_proto::sftp::TransferError),
    Local(io::Error),
}

impl Partial {
    /// Writes what a reply brought; returns the number of bytes.
    fn take(
        &mut self,
        now: Time,
        id: RequestId,
        reply: &SftpReply<'_>,
    ) -> Result<usize, TakeError> {
        let taken = self.download.handle_reply(now, id, reply);
        let DownloadedChunk::Data { offset, data } = taken.map_err(TakeError::Transfer)? else {
            return Ok(0);
        };
        let written = match self.lost {
            u64::MAX => self.file.write_all_at(data, offset),
            // The first failure was reported.
            _ => return Ok(self.lose(offset)),
        };
        written.map(|()| data.len()).map_err(|why| {
            self.lose(offset);
            TakeError::Local(why)
        })
    }

    fn lose(&mut self, offset: u64) -> usize {
        self.lost = self.lost.min(offset);
        0
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.whole {
            // There is no one left to report a failure to.
            let _ = self
                .file
                .set_len(self.download.received_to().min(self.lost));
        }
    }
}

fn create(to: &Path, attrs: &FileAttrs, resume: bool) -> io::Result<std::fs::File> {
    let mode = attrs.permissions.map_or(0o666, |mode| mode & 0o777 | 0o200);
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(!resume)
        .mode(mode)
        .open(to)
}
