//! Handling of received bytes.

use adit_wire::{ProtocolError, Time, subslice, usize_from};

use crate::{
    FRAME_HEADER, Session, StreamId,
    event::EventKind,
    frame::{FrameCommand, FrameHeader, UPDATE_LEN},
    stream::StreamState,
};

/// Maximum number of refused streams whose ends are not sent yet; above it no input is accepted.
const MAX_REFUSED: usize = 1024;

/// State of the parser.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ReceiveState {
    /// In a header, of which `have` bytes were received.
    Header {
        bytes: [u8; FRAME_HEADER],
        have: usize,
    },
    /// In the data of a stream.
    Data { stream: StreamId, left: usize },
    /// In an update, of which `have` bytes were received.
    Update {
        stream: StreamId,
        bytes: [u8; UPDATE_LEN],
        have: usize,
    },
}

impl ReceiveState {
    pub(crate) const START: Self = Self::Header {
        bytes: [0; FRAME_HEADER],
        have: 0,
    };
}

impl Session {
    /// Handles received bytes, and returns the number of those handled.
    ///
    /// This is less than `bytes.len()` if the session's buffer is full or streams wait to be
    /// accepted: pass the rest again once [`wants_input`](Self::wants_input) returns true.
    ///
    /// # Errors
    ///
    /// The peer violated the protocol. The session and its connection cannot be used any more.
    pub fn handle_input(&mut self, now: Time, bytes: &[u8]) -> Result<usize, ProtocolError> {
        if let Some(why) = self.failure {
            return Err(why);
        }
        if !bytes.is_empty() {
            self.last_heard = now;
        }
        let mut rest = bytes;
        while !rest.is_empty() && (self.is_inside_frame() || self.wants_input()) {
            let used = self.handle_part(now, rest);
            let used = used.inspect_err(|why| self.failure = Some(*why))?;
            rest = subslice(rest, used..);
        }
        Ok(bytes.len() - rest.len())
    }

    /// True if the next frame would be accepted.
    #[must_use]
    pub fn wants_input(&self) -> bool {
        let buffer = usize_from(self.config.session_buffer);
        self.unread_bytes < buffer
            && self.refused.len() < MAX_REFUSED
            && (self.config.backlog == 0 || self.unaccepted.len() < self.config.backlog)
    }

    const fn is_inside_frame(&self) -> bool {
        !matches!(self.receiving, ReceiveState::Header { have: 0, .. })
    }

    /// Handles a header, the data of a frame or an update, or the available part of it.
    fn handle_part(&mut self, now: Time, rest: &[u8]) -> Result<usize, ProtocolError> {
        match &mut self.receiving {
            ReceiveState::Header { bytes, have } => {
                let used = fill_array(bytes, have, rest);
                if *have == FRAME_HEADER {
                    let header = FrameHeader::parse(*bytes, self.config.version)?;
                    self.receiving = ReceiveState::START;
                    self.handle_header(now, header)?;
                }
                Ok(used)
            }
            ReceiveState::Update {
                stream,
                bytes,
                have,
            } => {
                let used = fill_array(bytes, have, rest);
                if *have == UPDATE_LEN {
                    let (stream, [c0, c1, c2, c3, w0, w1, w2, w3]) = (*stream, *bytes);
                    let consumed = u32::from_le_bytes([c0, c1, c2, c3]);
                    let window = u32::from_le_bytes([w0, w1, w2, w3]);
                    self.receiving = ReceiveState::START;
                    self.handle_update(now, stream, consumed, window)?;
                }
                Ok(used)
            }
            ReceiveState::Data { stream, left } => {
                let (stream, data) = (*stream, rest.get(..*left).unwrap_or(rest));
                *left -= data.len();
                if *left == 0 {
                    self.receiving = ReceiveState::START;
                }
                self.handle_data(stream, data);
                Ok(data.len())
            }
        }
    }

    fn handle_header(&mut self, now: Time, header: FrameHeader) -> Result<(), ProtocolError> {
        let stream = header.stream;
        match header.command {
            FrameCommand::Open => return self.handle_open(now, stream),
            FrameCommand::Finish => self.handle_finish(stream),
            FrameCommand::KeepAlive => return self.budget.spend_frame(now),
            FrameCommand::Data if header.len == 0 => return self.budget.spend_frame(now),
            FrameCommand::Data => {
                let left = usize::from(header.len);
                self.receiving = ReceiveState::Data { stream, left };
            }
            FrameCommand::Update => {
                self.receiving = ReceiveState::Update {
                    stream,
                    bytes: [0; UPDATE_LEN],
                    have: 0,
                };
            }
        }
        Ok(())
    }

    fn handle_open(&mut self, now: Time, id: StreamId) -> Result<(), ProtocolError> {
        if self.streams.contains_key(&id) {
            return self.budget.spend_frame(now);
        }
        if self.config.backlog == 0 || self.streams.len() >= self.config.max_streams {
            self.refused.push_back(id);
            return Ok(());
        }
        self.streams.insert(id, StreamState::new());
        self.unaccepted.push_back(id);
        self.queue_event(id, EventKind::Opened);
        Ok(())
    }

    fn handle_finish(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(&id)
            && !stream.finished
        {
            stream.finished = true;
            self.queue_event(id, EventKind::Finished);
        }
    }

    fn handle_data(&mut self, id: StreamId, data: &[u8]) {
        // Data of a stream that was closed, or after its end, is dropped.
        if let Some(stream) = self.streams.get_mut(&id)
            && !stream.closed
            && !stream.finished
        {
            self.buffers.push_bytes(&mut stream.inbox, data);
            self.unread_bytes += data.len();
            if !stream.is_readable_reported {
                stream.is_readable_reported = true;
                self.queue_event(id, EventKind::Readable);
            }
        }
    }

    fn handle_update(
        &mut self,
        now: Time,
        id: StreamId,
        consumed: u32,
        window: u32,
    ) -> Result<(), ProtocolError> {
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| !stream.failed) else {
            return Ok(());
        };
        if !stream.apply_update(consumed, window) {
            return self.budget.spend_frame(now);
        }
        if stream.failed {
            let unsent = stream.outbox.len();
            self.buffers.pop_bytes(&mut stream.outbox, unsent);
            self.queue_event(id, EventKind::Failed);
        }
        self.schedule_stream(id);
        self.notify_writable(id);
        Ok(())
    }
}

/// Copies the missing bytes to `bytes`, as far as `rest` has them. Returns their number.
fn fill_array<const N: usize>(bytes: &mut [u8; N], have: &mut usize, rest: &[u8]) -> usize {
    let used = rest.len().min(N - *have);
    if let (Some(to), Some(from)) = (bytes.get_mut(*have..*have + used), rest.get(..used)) {
        to.copy_from_slice(from);
    }
    *have += used;
    used
}
