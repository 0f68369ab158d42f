//! Download of a file: many READs in flight, replies in any order, short reads completed.

use std::collections::VecDeque;

use adit_wire::Time;

use super::client::{RequestId, SftpClient};
use super::reply::SftpReply;
use super::request::SftpRequest;
use super::status::{SftpRefused, SftpStatus, TransferError};
use super::transfer_window::TransferWindow;
use crate::error::SshError;

/// Reads an open file from an offset to its end.
///
/// [`Download::send_requests`] sends as many requests as useful. [`Download::handle_reply`] handles the replies
/// and lends their data, to be written at the returned offset. When [`Download::is_done`], the file
/// has [`Download::end`] bytes: truncate a longer copy there, because the file became shorter
/// meanwhile.
#[derive(Debug)]
pub struct Download {
    handle: Vec<u8>,
    chunk: u32,
    /// Reported length of the file; only its end is expected there.
    size: Option<u64>,
    next: u64,
    end: Option<u64>,
    in_flight_chunks: VecDeque<ReadChunk>,
    /// Ranges missing from short reads.
    missing_ranges: Vec<(u64, u32)>,
    window: TransferWindow,
    failed: bool,
}

#[derive(Debug, Clone, Copy)]
struct ReadChunk {
    id: RequestId,
    offset: u64,
    len: u32,
}

/// Result of handling a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DownloadedChunk<'a> {
    /// Bytes of the file, to be written at their offset.
    Data {
        /// Offset in the file.
        offset: u64,
        /// The bytes.
        data: &'a [u8],
    },
    /// Nothing to write.
    Nothing,
}

impl Download {
    /// Reads the file of `handle` from `offset` on, in chunks of `chunk` bytes (see
    /// [`Limits::read_chunk`](super::SftpLimits::read_chunk)). `size` is its length, if known.
    #[must_use]
    pub fn new(handle: &[u8], offset: u64, size: Option<u64>, chunk: u32) -> Self {
        let chunk = chunk.clamp(1, super::MAX_DATA);
        Self {
            handle: handle.to_vec(),
            chunk,
            size,
            next: offset,
            end: None,
            in_flight_chunks: VecDeque::new(),
            missing_ranges: Vec::new(),
            window: TransferWindow::new(chunk),
            failed: false,
        }
    }

    /// Appends the requests that should be in flight now. Their replies come with `tag`.
    ///
    /// # Errors
    /// The errors of [`SftpClient::send_request`].
    pub fn send_requests<T: Clone>(
        &mut self,
        now: Time,
        client: &mut SftpClient<T>,
        tag: &T,
        out: &mut Vec<u8>,
    ) -> Result<(), SshError> {
        while self.in_flight_chunks.len() < self.window.size()
            && client.can_request()
            && let Some((offset, len)) = self.next_range()
        {
            let request = SftpRequest::Read {
                handle: self.handle.as_slice(),
                offset,
                len,
            };
            let id = client.send_request(&request, tag.clone(), out)?;
            self.window.on_sent(now);
            self.in_flight_chunks
                .push_back(ReadChunk { id, offset, len });
        }
        Ok(())
    }

    /// Returns the range to request next.
    fn next_range(&mut self) -> Option<(u64, u32)> {
        if self.failed {
            return None;
        }
        while let Some((offset, len)) = self.missing_ranges.pop() {
            if self.end.is_none_or(|end| offset < end) {
                return Some((offset, len));
            }
        }
        // After the reported length, there is most likely only the end, which is requested once.
        let past = self.size.is_some_and(|size| self.next >= size);
        if self.end.is_some() || (past && !self.in_flight_chunks.is_empty()) {
            return None;
        }
        let offset = self.next;
        self.next = offset.checked_add(u64::from(self.chunk))?;
        Some((offset, self.chunk))
    }

    /// Handles the reply to one of the transfer's requests.
    ///
    /// # Errors
    /// [`TransferError::Refused`] if reading failed; pass the remaining replies to this function,
    /// too: they return nothing. [`TransferError::Protocol`] if the server returned more than
    /// requested, or nothing at all.
    pub fn handle_reply<'a>(
        &mut self,
        now: Time,
        id: RequestId,
        reply: &SftpReply<'a>,
    ) -> Result<DownloadedChunk<'a>, TransferError> {
        let place = self
            .in_flight_chunks
            .iter()
            .position(|chunk| chunk.id == id);
        let Some(ReadChunk { offset, len, .. }) =
            place.and_then(|place| self.in_flight_chunks.swap_remove_front(place))
        else {
            return Err(SshError::Malformed("SFTP reply to another transfer").into());
        };
        let malformed = SshError::Malformed("SFTP DATA");
        match reply {
            _ if self.failed => {
                self.missing_ranges.push((offset, len));
                Ok(DownloadedChunk::Nothing)
            }
            SftpReply::Data(data) => {
                let got = u32::try_from(data.len())
                    .ok()
                    .filter(|got| (1..=len).contains(got))
                    .ok_or(malformed)?;
                self.window.on_answered(now, got);
                if got < len {
                    self.missing_ranges
                        .push((offset + u64::from(got), len - got));
                }
                let within = self.end.map_or(u64::MAX, |end| end.saturating_sub(offset));
                let within = usize::try_from(within).unwrap_or(usize::MAX);
                let data = data.get(..within).unwrap_or(data);
                Ok(match data {
                    [] => DownloadedChunk::Nothing,
                    _ => DownloadedChunk::Data { offset, data },
                })
            }
            SftpReply::Status(reply) if reply.status == SftpStatus::Eof => {
                self.window.on_answered(now, 0);
                self.end = Some(self.end.map_or(offset, |end| end.min(offset)));
                Ok(DownloadedChunk::Nothing)
            }
            SftpReply::Status(reply) => {
                self.failed = true;
                // It is not requested again, but counts as missing.
                self.missing_ranges.push((offset, len));
                Err(SftpRefused::from(*reply).into())
            }
            _ => Err(malformed.into()),
        }
    }

    /// Returns the number of requests in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.in_flight_chunks.len()
    }

    /// True if the whole file was received.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.end.is_some_and(|end| self.received_to() >= end)
    }

    /// Returns the length of the file, once its end was seen.
    #[must_use]
    pub const fn end(&self) -> Option<u64> {
        self.end
    }

    /// Returns the offset before which everything was received: an interrupted transfer can resume
    /// there.
    #[must_use]
    pub fn received_to(&self) -> u64 {
        let flight = self.in_flight_chunks.iter().map(|chunk| chunk.offset);
        let again = self.missing_ranges.iter().map(|(offset, _)| *offset);
        let missing = flight.chain(again).min().unwrap_or(u64::MAX);
        missing.min(self.next).min(self.end.unwrap_or(u64::MAX))
    }
}
