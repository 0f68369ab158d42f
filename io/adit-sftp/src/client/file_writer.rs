//! Sequential writing of a file, with requests in flight behind the writer.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use adit_ssh_proto::SshError;
use adit_ssh_proto::sftp::{
    RequestId, SftpRefused, SftpReply, SftpRequest, SftpStatus, TransferError, Upload,
};
use adit_wire::{subslice, subslice_mut, usize_from};
use tokio::io::AsyncWrite;

use super::File;
use super::connection::{ConnectionState, Operation};
use crate::SftpError;

/// A writer of a file from an offset on, for tokio's [`AsyncWrite`].
///
/// Each write is sent as one WRITE request, of at most the server's limit, and returns without waiting for
/// its reply: use a [`BufWriter`](tokio::io::BufWriter) for small pieces. Flushing waits until the server
/// has written everything; shutting down also closes the file and waits for the reply, in which some
/// servers report failed writes. The first refusal of a request is returned by all later calls.
///
/// Dropping the writer closes the file without waiting, as dropping a [`File`] does.
///
/// # Examples
///
/// ```no_run
/// use adit_sftp::SftpSession;
/// use adit_ssh_proto::sftp::OpenFlags;
/// use tokio::io::AsyncWriteExt;
///
/// # async fn example(sftp: SftpSession) -> Result<(), Box<dyn std::error::Error>> {
/// let flags = OpenFlags::WRITE.union(OpenFlags::CREATE).union(OpenFlags::TRUNCATE);
/// let mut writer = sftp.open_file("zeros", flags).await?.into_writer(0);
/// tokio::io::copy(&mut tokio::io::repeat(0).take(1 << 20), &mut writer).await?;
/// writer.shutdown().await?;
/// # Ok(())
/// # }
/// # use tokio::io::AsyncReadExt;
/// ```
#[derive(Debug)]
pub struct FileWriter {
    file: File,
    operation: Operation,
    upload: Upload,
    refused: Option<SftpRefused>,
    closing: Closing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Closing {
    Open,
    Requested(RequestId),
    Closed,
}

impl File {
    /// Turns the file into a writer from `offset` on, in bytes.
    #[must_use]
    pub fn into_writer(self, offset: u64) -> FileWriter {
        let operation = self.start_operation();
        let chunk = operation.lock().client.limits().write_chunk();
        FileWriter {
            operation,
            upload: Upload::new(self.handle(), offset, chunk),
            file: self,
            refused: None,
            closing: Closing::Open,
        }
    }
}

impl FileWriter {
    /// Appends a request with the first of `data`. Returns the number of bytes, `None` if as many requests
    /// are in flight as there may be.
    fn send(&mut self, data: &[u8]) -> Result<Option<usize>, SftpError> {
        let tag = self.operation.tag();
        let mut state = self.operation.lock();
        if !self.upload.wants_data() || !state.has_room(tag) {
            return Ok(None);
        }
        let now = state.now();
        let ConnectionState { client, out, .. } = &mut *state;
        let fill = |_, room: &mut [u8]| {
            let n = data.len().min(room.len());
            subslice_mut(room, ..n).copy_from_slice(subslice(data, ..n));
            Ok::<_, SftpError>(n)
        };
        let sent = self.upload.send_chunk(now, client, tag, out, fill)?;
        Ok(Some(usize_from(sent)))
    }

    fn poll_turn(&mut self, cx: &Context<'_>) -> Poll<Result<(), SftpError>> {
        let now = self.operation.lock().now();
        let Self {
            operation,
            upload,
            refused,
            closing,
            ..
        } = self;
        let mut take = |id, reply: &SftpReply<'_>| {
            if *closing == Closing::Requested(id) {
                *closing = Closing::Closed;
                match reply {
                    SftpReply::Status(reply) if reply.status == SftpStatus::Ok => {}
                    SftpReply::Status(reply) => {
                        refused.get_or_insert_with(|| (*reply).into());
                    }
                    // Not a success: writes that the server only now reports could be lost.
                    _ => return Err(SshError::Malformed("SFTP STATUS")),
                }
                return Ok(());
            }
            match upload.handle_reply(now, id, reply) {
                Ok(()) => Ok(()),
                Err(TransferError::Protocol(why)) => Err(why),
                Err(TransferError::Refused(why)) => {
                    refused.get_or_insert(why);
                    Ok(())
                }
            }
        };
        operation.poll_turn(cx, &mut take)
    }

    /// Waits for the replies to all requests.
    fn poll_replies(&mut self, cx: &Context<'_>) -> Poll<Result<(), SftpError>> {
        while self.upload.in_flight() > 0 {
            ready!(self.poll_turn(cx))?;
        }
        Poll::Ready(Ok(()))
    }

    fn outcome(&self) -> io::Result<()> {
        match &self.refused {
            Some(refused) => Err(SftpError::from(refused.clone()).into()),
            None => Ok(()),
        }
    }
}

impl AsyncWrite for FileWriter {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        if data.is_empty() {
            return Poll::Ready(Ok(0));
        }
        if this.closing != Closing::Open {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        loop {
            this.outcome()?;
            if let Some(n) = this.send(data)? {
                // Sends the request. A failure of the session is returned by the next turn, too.
                let _ = this.poll_turn(cx);
                return Poll::Ready(Ok(n));
            }
            ready!(this.poll_turn(cx))?;
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_replies(cx))?;
        Poll::Ready(self.outcome())
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        ready!(this.poll_replies(cx))?;
        while this.closing != Closing::Closed {
            if this.closing == Closing::Open {
                let tag = this.operation.tag();
                let mut state = this.operation.lock();
                if state.has_room(tag) {
                    let ConnectionState { client, out, .. } = &mut *state;
                    let handle = this.file.handle();
                    let request = SftpRequest::Close { handle };
                    let id = client.send_request(&request, tag, out);
                    this.closing = Closing::Requested(id.map_err(SftpError::from)?);
                    drop(state);
                    this.file.mark_closed();
                }
            }
            ready!(this.poll_turn(cx))?;
        }
        Poll::Ready(this.outcome())
    }
}
