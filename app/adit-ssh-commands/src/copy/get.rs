//! One file from the other machine.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use adit_ssh_proto::sftp::{Download, DownloadedChunk, FileAttrs, OpenFlags, RequestId, SftpReply};
use adit_wire::Time;

use super::local::apply_attributes;
use super::meter::ProgressLine;
use super::remote::Tag;
use super::{CopyError, CopyOptions, Remote, shown};

impl Remote {
    /// Copies a file of these attributes to `to`.
    pub(super) async fn get(
        &mut self,
        from: &[u8],
        attrs: &FileAttrs,
        to: &Path,
        how: &CopyOptions,
    ) -> Result<(), CopyError> {
        let file = open(to, attrs, how)?;
        let begin = match how.resume {
            true => file.metadata()?.len(),
            false => 0,
        };
        match attrs.size {
            Some(size) if begin > size => {
                return Err(CopyError::other("the copy is longer than the file already"));
            }
            Some(size) if begin == size && begin > 0 => {
                return Ok(apply_attributes(&file, attrs, how.preserve)?);
            }
            _ => {}
        }
        let handle = self
            .open_file(from, OpenFlags::READ, FileAttrs::default())
            .await?;
        let mut line = how.meter.start_file(shown(from), attrs.size, begin);
        let size = attrs.size.filter(|size| *size > 0);
        let chunk = self.client.limits().read_chunk();
        let mut copy = Partial {
            download: Download::new(&handle, begin, size, chunk),
            file,
            lost: u64::MAX,
            whole: false,
        };
        let received = self.receive(&mut copy, size, &mut line).await;
        if !received.as_ref().is_err_and(CopyError::is_fatal) {
            self.drop_handle(&handle)?;
        }
        received?;
        if let Some(end) = copy.download.end() {
            copy.file.set_len(end)?;
        }
        copy.whole = true;
        apply_attributes(&copy.file, attrs, how.preserve)?;
        line.finish();
        Ok(())
    }

    /// Receives until the end; what was asked for is awaited even if something went wrong.
    async fn receive(
        &mut self,
        copy: &mut Partial,
        size: Option<u64>,
        line: &mut ProgressLine<'_>,
    ) -> Result<(), CopyError> {
        let mut outcome = Ok(());
        loop {
            let whole = size.is_some_and(|size| copy.download.received_to() >= size);
            let over = whole || outcome.is_err() || copy.download.is_done();
            if over && copy.download.in_flight() == 0 {
                return outcome;
            }
            if !over {
                let now = self.now();
                let (client, out) = (&mut self.client, &mut self.out);
                copy.download
                    .send_requests(now, client, &Tag::Transfer, out)?;
            }
            let now = self.now();
            let mut got = 0;
            self.turn(&mut |tag, id, reply| {
                if tag != Tag::Transfer {
                    return Ok(());
                }
                match copy.take(now, id, reply) {
                    Ok(len) => got += len,
                    Err(fault) if fault.is_fatal() => return Err(fault),
                    Err(fault) if outcome.is_ok() => outcome = Err(fault),
                    Err(_) => {}
                }
                Ok(())
            })
            .await?;
            line.add_bytes(got).await;
        }
    }
}

/// A copy that is being made. If that ends early, whatever the reason, it is cut before its first
/// gap: who goes on with it takes all that is there for right.
#[derive(Debug)]
struct Partial {
    download: Download,
    file: File,
    /// The lowest offset that came and could not be written.
    lost: u64,
    whole: bool,
}

impl Partial {
    /// Writes what a reply brought; gives how much.
    fn take(
        &mut self,
        now: Time,
        id: RequestId,
        reply: &SftpReply<'_>,
    ) -> Result<usize, CopyError> {
        let DownloadedChunk::Data { offset, data } = self.download.handle_reply(now, id, reply)?
        else {
            return Ok(0);
        };
        let written = match self.lost {
            u64::MAX => self.file.write_all_at(data, offset),
            // The first failure was told.
            _ => return Ok(self.lose(offset)),
        };
        written.map(|()| data.len()).map_err(|why| {
            self.lose(offset);
            why.into()
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
            // No one is left to be told that even this failed.
            let _ = self
                .file
                .set_len(self.download.received_to().min(self.lost));
        }
    }
}

fn open(to: &Path, attrs: &FileAttrs, how: &CopyOptions) -> io::Result<File> {
    let mode = attrs.permissions.map_or(0o666, |mode| mode & 0o777 | 0o200);
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(!how.resume)
        .mode(mode)
        .open(to)
}
