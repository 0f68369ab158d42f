//! One file to the other machine.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use adit_ssh_proto::sftp::{FileAttrs, FileType, OpenFlags, SftpRequest, Upload};
use adit_wire::usize_from;

use super::files::done;
use super::local::attrs_of;
use super::meter::ProgressLine;
use super::remote::Tag;
use super::{CopyError, CopyOptions, Remote, path_bytes, shown};

/// So much is made ready to be sent before it is looked whether replies came, bytes.
const READY: usize = 512 << 10;

impl Remote {
    /// Copies the file `from` to `to`.
    pub(super) async fn put(
        &mut self,
        from: &Path,
        to: &[u8],
        how: &CopyOptions,
    ) -> Result<(), CopyError> {
        let file = File::open(from)?;
        let attrs = attrs_of(&file.metadata()?);
        if attrs.file_kind() == Some(FileType::Folder) {
            return Err(CopyError::other("is a folder"));
        }
        let size = attrs.size.unwrap_or(0);
        let begin = match how.resume {
            true => self.length(to).await?,
            false => 0,
        };
        if begin > size {
            return Err(CopyError::other("the copy is longer than the file already"));
        }
        let handle = self.open_copy(to, &attrs, how, begin).await?;
        let mut line = how
            .meter
            .start_file(shown(path_bytes(from)), Some(size), begin);
        let mut upload = Upload::new(&handle, begin, self.client.limits().write_chunk());
        let given = self.give(&mut upload, &file, &mut line).await;
        match given {
            Ok(()) => {
                self.finish(&handle, how.preserve.then_some(&attrs)).await?;
                line.finish();
                Ok(())
            }
            Err(fault) if fault.is_fatal() => Err(fault),
            Err(fault) => {
                // Behind a piece that was refused others may lie. The first fault is the one to
                // be told.
                let cut = FileAttrs {
                    size: Some(upload.written_to()),
                    ..FileAttrs::default()
                };
                match self.finish(&handle, Some(&cut)).await {
                    Err(end) if end.is_fatal() => Err(end),
                    _ => Err(fault),
                }
            }
        }
    }

    /// Opens the copy of a file to be written from `begin` on.
    pub(super) async fn open_copy(
        &mut self,
        to: &[u8],
        attrs: &FileAttrs,
        how: &CopyOptions,
        begin: u64,
    ) -> Result<Vec<u8>, CopyError> {
        let mut flags = OpenFlags::WRITE.union(OpenFlags::CREATE);
        if begin == 0 {
            flags = flags.union(OpenFlags::TRUNCATE);
        }
        let kept = if how.preserve { 0o7777 } else { 0o777 };
        let new = FileAttrs {
            permissions: attrs.permissions.map(|mode| mode & kept),
            ..FileAttrs::default()
        };
        self.open_file(to, flags, new).await
    }

    /// The length of a copy that may be there already.
    pub(super) async fn length(&mut self, path: &[u8]) -> Result<u64, CopyError> {
        match self.stat(path).await {
            Ok(attrs) => Ok(attrs.size.unwrap_or(0)),
            Err(fault) if fault.is_missing() => Ok(0),
            Err(fault) => Err(fault),
        }
    }

    /// Changes the attributes of an open file, if any, and closes it: in one round trip.
    pub(super) async fn finish(
        &mut self,
        handle: &[u8],
        attrs: Option<&FileAttrs>,
    ) -> Result<(), CopyError> {
        let changed = match attrs {
            Some(attrs) => Some(self.send(&SftpRequest::Fsetstat {
                handle,
                attrs: FileAttrs {
                    permissions: attrs.permissions.map(|mode| mode & 0o7777),
                    owner: None,
                    // A length is only for a copy that is to be cut.
                    size: attrs.size.filter(|_| attrs.permissions.is_none()),
                    times: attrs.times,
                },
            })?),
            None => None,
        };
        let closed = self.send(&SftpRequest::Close { handle })?;
        let (mut outcome, mut over) = (Ok(()), false);
        while !over {
            self.turn(&mut |_, id, reply| {
                if (Some(id) == changed || id == closed) && outcome.is_ok() {
                    outcome = done(reply);
                }
                over |= id == closed;
                Ok(())
            })
            .await?;
        }
        outcome
    }

    /// Sends the file to its end; what was sent is awaited even if something went wrong.
    async fn give(
        &mut self,
        upload: &mut Upload,
        file: &File,
        line: &mut ProgressLine<'_>,
    ) -> Result<(), CopyError> {
        let mut outcome = Ok(());
        loop {
            let (mut given, mut over) = (0, outcome.is_err() || upload.is_done());
            while !over && upload.wants_data() && self.out.len() < READY {
                let now = self.now();
                let fill =
                    |offset, room: &mut [u8]| Ok::<_, CopyError>(file.read_at(room, offset)?);
                let piece =
                    upload.send_chunk(now, &mut self.client, Tag::Transfer, &mut self.out, fill);
                match piece {
                    Ok(0) => break,
                    Ok(len) => given += usize_from(len),
                    Err(fault) if fault.is_fatal() => return Err(fault),
                    Err(fault) => {
                        outcome = Err(fault);
                        over = true;
                    }
                }
            }
            over |= upload.is_done();
            if over && upload.in_flight() == 0 {
                return outcome;
            }
            let now = self.now();
            self.turn(&mut |tag, id, reply| {
                if tag == Tag::Transfer
                    && let Err(why) = upload.handle_reply(now, id, reply)
                {
                    match CopyError::from(why) {
                        end if end.is_fatal() => return Err(end),
                        fault if outcome.is_ok() => outcome = Err(fault),
                        _ => {}
                    }
                }
                Ok(())
            })
            .await?;
            line.add_bytes(given).await;
        }
    }
}
