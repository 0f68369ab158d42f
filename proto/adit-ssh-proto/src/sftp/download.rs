//! Download of a file: many READs in flight, replies in any order, short reads completed.

use std::collections::VecDeque;

use adit_wire::Time;

use super::client::{Client, RequestId};
use super::reply::Reply;
use super::request::Request;
use super::status::{Refused, Status, TransferError};
use super::window::Window;
use crate::error::SshError;

/// Reads an open file from an offset to its end.
///
/// [`Download::request`] sends as many requests as useful. [`Download::reply`] handles the replies
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
    flight: VecDeque<Chunk>,
    /// Ranges missing from short reads.
    again: Vec<(u64, u32)>,
    window: Window,
    failed: bool,
}

#[derive(Debug, Clone, Copy)]
struct Chunk {
    id: RequestId,
    offset: u64,
    len: u32,
}

/// Result of handling a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
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
    /// [`Limits::read_chunk`](super::Limits::read_chunk)). `size` is its length, if known.
    #[must_use]
    pub fn new(handle: &[u8], offset: u64, size: Option<u64>, chunk: u32) -> Self {
        let chunk = chunk.clamp(1, super::MAX_DATA);
        Self {
            handle: handle.to_vec(),
            chunk,
            size,
            next: offset,
            end: None,
            flight: VecDeque::new(),
            again: Vec::new(),
            window: Window::new(chunk),
            failed: false,
        }
    }

    /// Appends the requests that should be in flight now. Their replies come with `tag`.
    ///
    /// # Errors
    /// The errors of [`Client::request`].
    pub fn request<T: Clone>(
        &mut self,
        now: Time,
        client: &mut Client<T>,
        tag: &T,
        out: &mut Vec<u8>,
    ) -> Result<(), SshError> {
        while self.flight.len() < self.window.size()
            && client.can_request()
            && let Some((offset, len)) = self.wanted()
        {
            let request = Request::Read {
                handle: self.handle.as_slice(),
                offset,
                len,
            };
            let id = client.request(&request, tag.clone(), out)?;
            self.window.sent(now);
            self.flight.push_back(Chunk { id, offset, len });
        }
        Ok(())
    }

    /// Returns the range to request next.
    fn wanted(&mut self) -> Option<(u64, u32)> {
        if self.failed {
            return None;
        }
        while let Some((offset, len)) = self.again.pop() {
            if self.end.is_none_or(|end| offset < end) {
                return Some((offset, len));
            }
        }
        // After the reported length, there is most likely only the end, which is requested once.
        let past = self.size.is_some_and(|size| self.next >= size);
        if self.end.is_some() || (past && !self.flight.is_empty()) {
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
    pub fn reply<'a>(
        &mut self,
        now: Time,
        id: RequestId,
        reply: &Reply<'a>,
    ) -> Result<Piece<'a>, TransferError> {
        let place = self.flight.iter().position(|chunk| chunk.id == id);
        let Some(Chunk { offset, len, .. }) =
            place.and_then(|place| self.flight.swap_remove_front(place))
        else {
            return Err(SshError::Malformed("SFTP reply to another transfer").into());
        };
        let malformed = SshError::Malformed("SFTP DATA");
        match reply {
            _ if self.failed => {
                self.again.push((offset, len));
                Ok(Piece::Nothing)
            }
            Reply::Data(data) => {
                let got = u32::try_from(data.len())
                    .ok()
                    .filter(|got| (1..=len).contains(got))
                    .ok_or(malformed)?;
                self.window.answered(now, got);
                if got < len {
                    self.again.push((offset + u64::from(got), len - got));
                }
                let within = self.end.map_or(u64::MAX, |end| end.saturating_sub(offset));
                let within = usize::try_from(within).unwrap_or(usize::MAX);
                let data = data.get(..within).unwrap_or(data);
                Ok(match data {
                    [] => Piece::Nothing,
                    _ => Piece::Data { offset, data },
                })
            }
            Reply::Status(reply) if reply.status == Status::Eof => {
                self.window.answered(now, 0);
                self.end = Some(self.end.map_or(offset, |end| end.min(offset)));
                Ok(Piece::Nothing)
            }
            Reply::Status(reply) => {
                self.failed = true;
                // It is not requested again, but counts as missing.
                self.again.push((offset, len));
                Err(Refused::from(*reply).into())
            }
            _ => Err(malformed.into()),
        }
    }

    /// Returns the number of requests in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.flight.len()
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
        let flight = self.flight.iter().map(|chunk| chunk.offset);
        let again = self.again.iter().map(|(offset, _)| *offset);
        let missing = flight.chain(again).min().unwrap_or(u64::MAX);
        missing.min(self.next).min(self.end.unwrap_or(u64::MAX))
    }
}
