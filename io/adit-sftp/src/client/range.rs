//! A range of a file into memory: many READs in flight, short ones completed.

use adit_ssh_proto::SshError;
use adit_ssh_proto::sftp::{RequestId, SftpRefused, SftpReply, SftpRequest, SftpStatus};
use adit_wire::{narrow_int, u64_from, usize_from};

use super::connection::{ConnectionState, Operation, Tag};
use crate::SftpError;

/// Maximum number of requests in flight.
const MAX_IN_FLIGHT: usize = 64;

/// A part of the buffer: its start and its length.
type Part = (usize, usize);

pub(super) struct RangeRead<'a> {
    handle: &'a [u8],
    offset: u64,
    buffer: &'a mut [u8],
    /// Start of what was not requested yet.
    next: usize,
    /// Parts missing from short replies.
    missing: Vec<Part>,
    in_flight: Vec<(RequestId, Part)>,
    /// End of the file in the buffer, as far as it is known.
    end: usize,
    refused: Option<SftpRefused>,
}

impl<'a> RangeRead<'a> {
    pub(super) const fn new(handle: &'a [u8], offset: u64, buffer: &'a mut [u8]) -> Self {
        Self {
            handle,
            offset,
            next: 0,
            missing: Vec::new(),
            in_flight: Vec::new(),
            end: buffer.len(),
            refused: None,
            buffer,
        }
    }

    /// Reads it; returns the number of bytes before the end of the file.
    pub(super) async fn run(mut self, operation: &Operation) -> Result<usize, SftpError> {
        loop {
            let over = self.request(&mut operation.lock(), operation.tag())?;
            if over && self.in_flight.is_empty() {
                return match self.refused {
                    Some(refused) => Err(refused.into()),
                    None => Ok(self.end),
                };
            }
            let mut take = |id, reply: &SftpReply<'_>| self.take(id, reply);
            operation.turn(&mut take).await?;
        }
    }

    /// Appends requests; true if all are sent.
    fn request(&mut self, state: &mut ConnectionState, tag: Tag) -> Result<bool, SshError> {
        let chunk = usize_from(state.client.limits().read_chunk());
        while self.in_flight.len() < MAX_IN_FLIGHT && state.has_room(tag) {
            let Some((start, len)) = self.next_part(chunk) else {
                return Ok(true);
            };
            let request = SftpRequest::Read {
                handle: self.handle,
                offset: self.offset.saturating_add(u64_from(start)),
                len: narrow_int(len),
            };
            let id = state.client.send_request(&request, tag, &mut state.out)?;
            self.in_flight.push((id, (start, len)));
        }
        Ok(false)
    }

    fn next_part(&mut self, chunk: usize) -> Option<Part> {
        if self.refused.is_some() {
            return None;
        }
        while let Some(part) = self.missing.pop() {
            if part.0 < self.end {
                return Some(part);
            }
        }
        let start = self.next;
        let len = self.end.saturating_sub(start).min(chunk);
        self.next = start + len;
        (len > 0).then_some((start, len))
    }

    fn take(&mut self, id: RequestId, reply: &SftpReply<'_>) -> Result<(), SshError> {
        let place = self.in_flight.iter().position(|(other, _)| *other == id);
        let Some((_, (start, len))) = place.map(|place| self.in_flight.swap_remove(place)) else {
            return Err(SshError::Malformed("SFTP reply to another request"));
        };
        match reply {
            SftpReply::Data(data) if (1..=len).contains(&data.len()) => {
                let end = start + data.len();
                if let Some(part) = self.buffer.get_mut(start..end) {
                    part.copy_from_slice(data);
                }
                if data.len() < len {
                    self.missing.push((end, len - data.len()));
                }
            }
            SftpReply::Status(reply) if reply.status == SftpStatus::Eof => {
                self.end = self.end.min(start);
            }
            SftpReply::Status(reply) => {
                self.refused.get_or_insert_with(|| (*reply).into());
            }
            _ => return Err(SshError::Malformed("SFTP DATA")),
        }
        Ok(())
    }
}
