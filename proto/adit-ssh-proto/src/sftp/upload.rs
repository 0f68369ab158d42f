//! Upload of a file: many WRITEs in flight.

use std::collections::VecDeque;

use adit_wire::Time;

use super::client::{RequestId, SftpClient};
use super::reply::SftpReply;
use super::status::{SftpRefused, SftpStatus, TransferError};
use super::transfer_window::TransferWindow;
use crate::error::SshError;

/// Writes an open file from an offset on.
///
/// While [`wants_data`](Upload::wants_data) is true, [`Upload::send_chunk`] sends the next chunk;
/// [`Upload::handle_reply`] handles the replies.
#[derive(Debug)]
pub struct Upload {
    handle: Vec<u8>,
    chunk: u32,
    next: u64,
    in_flight_chunks: VecDeque<WrittenChunk>,
    window: TransferWindow,
    ended: bool,
    /// Lowest offset that the server failed to write.
    failed: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
struct WrittenChunk {
    id: RequestId,
    offset: u64,
    len: u32,
}

impl Upload {
    /// Writes the file of `handle` from `offset` on, in chunks of `chunk` bytes (see
    /// [`Limits::write_chunk`](super::SftpLimits::write_chunk)).
    #[must_use]
    pub fn new(handle: &[u8], offset: u64, chunk: u32) -> Self {
        let chunk = chunk.clamp(1, super::MAX_DATA);
        Self {
            handle: handle.to_vec(),
            chunk,
            next: offset,
            in_flight_chunks: VecDeque::new(),
            window: TransferWindow::new(chunk),
            ended: false,
            failed: None,
        }
    }

    /// True if another chunk should be sent now.
    #[must_use]
    pub fn wants_data(&self) -> bool {
        !self.ended && self.failed.is_none() && self.in_flight_chunks.len() < self.window.size()
    }

    /// Appends one chunk. `fill` reads it from the passed offset directly into the message, and
    /// returns its length, 0 at the end of the file. Returns that length in bytes.
    ///
    /// # Errors
    /// The errors of `fill` and of [`SftpClient::send_request`]; the same chunk may be retried.
    pub fn send_chunk<T, E: From<SshError>>(
        &mut self,
        now: Time,
        client: &mut SftpClient<T>,
        tag: T,
        out: &mut Vec<u8>,
        fill: impl FnOnce(u64, &mut [u8]) -> Result<usize, E>,
    ) -> Result<u32, E> {
        let offset = self.next;
        let sent = client.write_with(&self.handle, offset, self.chunk, tag, out, |room| {
            fill(offset, room)
        })?;
        let Some((id, len)) = sent else {
            self.ended = true;
            return Ok(0);
        };
        self.next = offset.saturating_add(u64::from(len));
        self.window.on_sent(now);
        self.in_flight_chunks
            .push_back(WrittenChunk { id, offset, len });
        Ok(len)
    }

    /// Handles the reply to one of the transfer's requests.
    ///
    /// # Errors
    /// [`TransferError::Refused`] if a chunk was not written; nothing more is sent then, but pass
    /// the remaining replies to this function, too. [`TransferError::Protocol`] if the reply does
    /// not match a chunk.
    pub fn handle_reply(
        &mut self,
        now: Time,
        id: RequestId,
        reply: &SftpReply<'_>,
    ) -> Result<(), TransferError> {
        let place = self
            .in_flight_chunks
            .iter()
            .position(|chunk| chunk.id == id);
        let Some(WrittenChunk { offset, len, .. }) =
            place.and_then(|place| self.in_flight_chunks.swap_remove_front(place))
        else {
            return Err(SshError::Malformed("SFTP reply to another transfer").into());
        };
        match reply {
            SftpReply::Status(reply) if reply.status == SftpStatus::Ok => {
                self.window.on_answered(now, len);
                Ok(())
            }
            SftpReply::Status(reply) => {
                self.failed = Some(self.failed.map_or(offset, |before| before.min(offset)));
                Err(SftpRefused::from(*reply).into())
            }
            _ => Err(SshError::Malformed("SFTP reply to WRITE").into()),
        }
    }

    /// Returns the number of requests in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.in_flight_chunks.len()
    }

    /// True if the whole file was written.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.ended && self.failed.is_none() && self.in_flight_chunks.is_empty()
    }

    /// Returns the offset before which everything was written. An interrupted transfer can resume
    /// there; truncate the remote copy there, since it may have gaps after it.
    #[must_use]
    pub fn written_to(&self) -> u64 {
        let flight = self.in_flight_chunks.iter().map(|chunk| chunk.offset).min();
        let missing = flight
            .unwrap_or(u64::MAX)
            .min(self.failed.unwrap_or(u64::MAX));
        missing.min(self.next)
    }
}
