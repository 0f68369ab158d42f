//! A file to the server: many WRITEs in flight.

use std::collections::VecDeque;

use adit_wire::Time;

use super::client::{Client, RequestId};
use super::reply::Reply;
use super::status::{Refused, Status, TransferError};
use super::window::Window;
use crate::error::SshError;

/// Writes one open file from an offset on.
///
/// While it [`wants_data`](Upload::wants_data), [`Upload::write`] sends the next piece;
/// [`Upload::reply`] takes the replies.
#[derive(Debug)]
pub struct Upload {
    handle: Vec<u8>,
    chunk: u32,
    next: u64,
    flight: VecDeque<Chunk>,
    window: Window,
    ended: bool,
    /// The lowest offset that the server did not write.
    failed: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Chunk {
    id: RequestId,
    offset: u64,
    len: u32,
}

impl Upload {
    /// Writes the file of `handle` from `offset` on, in pieces of `chunk` octets (see
    /// [`Limits::write_chunk`](super::Limits::write_chunk)).
    #[must_use]
    pub fn new(handle: &[u8], offset: u64, chunk: u32) -> Self {
        let chunk = chunk.clamp(1, super::MAX_DATA);
        Self {
            handle: handle.to_vec(),
            chunk,
            next: offset,
            flight: VecDeque::new(),
            window: Window::new(chunk),
            ended: false,
            failed: None,
        }
    }

    /// Whether one more piece should be sent now.
    #[must_use]
    pub fn wants_data(&self) -> bool {
        !self.ended && self.failed.is_none() && self.flight.len() < self.window.size()
    }

    /// Appends one piece, which `fill` reads from the offset it is told into the message itself;
    /// it says how many octets there are, and none at the end of the file. Gives that number.
    ///
    /// # Errors
    /// Those of `fill` and of [`Client::request`]; the same piece may be tried again.
    pub fn write<T, E: From<SshError>>(
        &mut self,
        now: Time,
        client: &mut Client<T>,
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
        self.window.sent(now);
        self.flight.push_back(Chunk { id, offset, len });
        Ok(len)
    }

    /// Takes the reply to one of its requests.
    ///
    /// # Errors
    /// [`TransferError::Refused`] if a piece was not written; nothing more is sent then, and the
    /// replies on their way are to be given here as before. [`TransferError::Protocol`] for a
    /// reply that belongs to no piece.
    pub fn reply(
        &mut self,
        now: Time,
        id: RequestId,
        reply: &Reply<'_>,
    ) -> Result<(), TransferError> {
        let place = self.flight.iter().position(|chunk| chunk.id == id);
        let Some(Chunk { offset, len, .. }) =
            place.and_then(|place| self.flight.swap_remove_front(place))
        else {
            return Err(SshError::Malformed("SFTP reply to another transfer").into());
        };
        match reply {
            Reply::Status(reply) if reply.status == Status::Ok => {
                self.window.answered(now, len);
                Ok(())
            }
            Reply::Status(reply) => {
                self.failed = Some(self.failed.map_or(offset, |before| before.min(offset)));
                Err(Refused::from(*reply).into())
            }
            _ => Err(SshError::Malformed("SFTP reply to WRITE").into()),
        }
    }

    /// Requests in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.flight.len()
    }

    /// Whether the whole file is there.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.ended && self.failed.is_none() && self.flight.is_empty()
    }

    /// Everything before this offset was written: where a transfer that was cut goes on, and
    /// where the other copy is to be cut, since there may be gaps behind it.
    #[must_use]
    pub fn written_to(&self) -> u64 {
        let flight = self.flight.iter().map(|chunk| chunk.offset).min();
        let missing = flight
            .unwrap_or(u64::MAX)
            .min(self.failed.unwrap_or(u64::MAX));
        missing.min(self.next)
    }
}
