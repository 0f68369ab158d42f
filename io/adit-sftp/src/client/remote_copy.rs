//! Copies of files from one server to another, through this machine.
//!
//! Received bytes are buffered until they are sent, at most [`MAX_BUFFERED`]: the slower of the two
//! servers limits the rate of both.

use std::collections::BTreeMap;

use adit_ssh_proto::sftp::{Download, DownloadedChunk, FileAttrs, OpenFlags, SftpReply, Upload};
use adit_wire::{subslice_mut, u64_from, usize_from};

use super::connection::{ConnectionState, Operation};
use super::transfer::{cut, keep_first, kept};
use super::{File, SftpSession, TransferOptions};
use crate::SftpError;

/// Nothing more is requested while this number of bytes is buffered.
const MAX_BUFFERED: usize = 16 << 20;

impl SftpSession {
    /// Starts to copy the file `from` of this server to the file `to` of another one, in steps.
    ///
    /// # Errors
    /// One of the servers refused it, or one of the sessions is over.
    pub async fn start_copy(
        &self,
        from: impl AsRef<[u8]>,
        target: &Self,
        to: impl AsRef<[u8]>,
        options: &TransferOptions,
    ) -> Result<RemoteCopy, SftpError> {
        let (from, to) = (from.as_ref(), to.as_ref());
        let attrs = match options.attrs {
            Some(attrs) => attrs,
            None => self.stat(from).await?,
        };
        let start = target.resume_offset(to, &attrs, options).await?;
        let source = self.open_file(from, OpenFlags::READ).await?;
        let copy = target.open_copy(to, &attrs, options, start).await?;
        let size = attrs.size.filter(|size| *size > 0);
        let (read, write) = (self.limits().read_chunk(), target.limits().write_chunk());
        Ok(RemoteCopy {
            receiving: Operation::new(&self.connection),
            sending: Operation::new(&target.connection),
            download: Download::new(source.handle(), start, size, read),
            upload: Upload::new(copy.handle(), start, write),
            buffer: ReorderBuffer {
                next: start,
                ..ReorderBuffer::default()
            },
            _source: source,
            copy,
            attrs,
            start,
            preserve: options.preserve,
            outcome: Ok(()),
            complete: false,
        })
    }
}

/// Received bytes that were not sent yet.
#[derive(Debug, Default)]
struct ReorderBuffer {
    chunks: BTreeMap<u64, Vec<u8>>,
    len: usize,
    /// Everything before this offset was sent.
    next: u64,
}

impl ReorderBuffer {
    fn add(&mut self, offset: u64, data: &[u8]) {
        self.len += data.len();
        self.chunks.insert(offset, data.to_vec());
    }

    /// True if the next bytes are here.
    fn is_ready(&self) -> bool {
        self.chunks.contains_key(&self.next)
    }

    /// Moves the next bytes into `room`; returns their number.
    fn take(&mut self, room: &mut [u8]) -> usize {
        let mut filled = 0;
        while let Some(chunk) = self.chunks.remove(&self.next) {
            let free = subslice_mut(room, filled..);
            let (now, later) = chunk.split_at(chunk.len().min(free.len()));
            if let Some(place) = free.get_mut(..now.len()) {
                place.copy_from_slice(now);
            }
            filled += now.len();
            self.len -= now.len();
            self.next += u64_from(now.len());
            if !later.is_empty() {
                self.chunks.insert(self.next, later.to_vec());
                break;
            }
        }
        filled
    }
}

/// A copy of a file of one server to another server, in progress.
#[derive(Debug)]
pub struct RemoteCopy {
    receiving: Operation,
    sending: Operation,
    download: Download,
    upload: Upload,
    buffer: ReorderBuffer,
    /// Closed with the copy.
    _source: File,
    copy: File,
    attrs: FileAttrs,
    start: u64,
    preserve: bool,
    outcome: Result<(), SftpError>,
    complete: bool,
}

impl RemoteCopy {
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

    /// Moves bytes. Returns the number of bytes sent, and `None` when the copy is complete and closed.
    ///
    /// # Errors
    /// One of the servers refused it, after which the copy is truncated before its first gap, or one of
    /// the sessions is over.
    pub async fn advance(&mut self) -> Result<Option<usize>, SftpError> {
        if self.complete {
            return Ok(None);
        }
        let mut sent = 0;
        if self.outcome.is_ok() {
            match self.request_and_send() {
                Ok(len) => sent = len,
                Err(why) if why.is_fatal() => return Err(why),
                Err(why) => self.outcome = Err(why),
            }
        }
        let over = self.outcome.is_err() || self.upload.is_done();
        if over && self.download.in_flight() == 0 && self.upload.in_flight() == 0 {
            self.complete = true;
            return self.finish().await.map(|()| None);
        }
        self.receive().await?;
        Ok(Some(sent))
    }

    async fn receive(&mut self) -> Result<(), SftpError> {
        let (here, there) = (self.receiving.lock().now(), self.sending.lock().now());
        let (mut read, mut written) = (Ok(()), Ok(()));
        let Self {
            download,
            upload,
            buffer,
            receiving,
            sending,
            ..
        } = self;
        let mut on_read = |id, reply: &SftpReply<'_>| {
            match download.handle_reply(here, id, reply) {
                Ok(DownloadedChunk::Data { offset, data }) => buffer.add(offset, data),
                Ok(DownloadedChunk::Nothing) => {}
                Err(why) => keep_first(&mut read, why)?,
            }
            Ok(())
        };
        let mut on_written = |id, reply: &SftpReply<'_>| match upload.handle_reply(there, id, reply)
        {
            Ok(()) => Ok(()),
            Err(why) => keep_first(&mut written, why),
        };
        // The one that is not ready loses nothing: replies are taken without waiting.
        let turned = tokio::select! {
            turned = receiving.turn(&mut on_read) => turned,
            turned = sending.turn(&mut on_written) => turned,
        };
        let outcome = std::mem::replace(&mut self.outcome, Ok(()));
        self.outcome = outcome.and(read).and(written);
        turned
    }

    /// Requests more, and sends what is here; returns the number of bytes sent.
    fn request_and_send(&mut self) -> Result<usize, SftpError> {
        if self.buffer.len < MAX_BUFFERED && !self.download.is_done() {
            let tag = self.receiving.tag();
            let mut state = self.receiving.lock();
            let now = state.now();
            if state.has_room(tag) {
                let ConnectionState { client, out, .. } = &mut *state;
                self.download.send_requests(now, client, &tag, out)?;
            }
        }
        let tag = self.sending.tag();
        let mut state = self.sending.lock();
        let now = state.now();
        let mut sent = 0;
        while self.upload.wants_data()
            && (self.buffer.is_ready() || self.download.is_done())
            && state.has_room(tag)
        {
            let ConnectionState { client, out, .. } = &mut *state;
            let buffer = &mut self.buffer;
            let fill = |_, room: &mut [u8]| Ok::<_, SftpError>(buffer.take(room));
            match self.upload.send_chunk(now, client, tag, out, fill)? {
                0 => break,
                len => sent += usize_from(len),
            }
        }
        Ok(sent)
    }

    async fn finish(&mut self) -> Result<(), SftpError> {
        match std::mem::replace(&mut self.outcome, Ok(())) {
            Ok(()) => {
                let attrs = self.preserve.then(|| kept(&self.attrs));
                self.copy.finish(attrs).await
            }
            Err(why) => match self.copy.finish(Some(cut(self.upload.written_to()))).await {
                Err(end) if end.is_fatal() => Err(end),
                _ => Err(why),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_in_any_order_leave_in_order() {
        let mut buffer = ReorderBuffer::default();
        let mut room = [0; 4];
        buffer.add(3, b"defg");
        assert!(!buffer.is_ready());
        assert_eq!(buffer.take(&mut room), 0);
        buffer.add(0, b"abc");
        assert!(buffer.is_ready());
        assert_eq!((buffer.take(&mut room), room), (4, *b"abcd"));
        assert_eq!((buffer.take(&mut room), buffer.len), (3, 0));
        assert_eq!(room, *b"efgd");
        assert!(!buffer.is_ready() && buffer.next == 7);
    }
}
