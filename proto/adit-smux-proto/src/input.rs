//! Handling of received bytes.

use adit_wire::{ProtocolError, Time, subslice, usize_from};

use crate::{
    FRAME_HEADER, Session, StreamId,
    event::Happening,
    frame::{Command, Header, UPDATE},
    stream::Stream,
};

/// Maximum number of refused streams whose ends are not sent yet; above it no input is accepted.
const MAX_REFUSED: usize = 1024;

/// State of the parser.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Receiving {
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
        bytes: [u8; UPDATE],
        have: usize,
    },
}

impl Receiving {
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
        if let Some(why) = self.broken {
            return Err(why);
        }
        if !bytes.is_empty() {
            self.heard = now;
        }
        let mut rest = bytes;
        while !rest.is_empty() && (self.inside_frame() || self.wants_input()) {
            let used = self.piece(now, rest);
            let used = used.inspect_err(|why| self.broken = Some(*why))?;
            rest = subslice(rest, used..);
        }
        Ok(bytes.len() - rest.len())
    }

    /// True if the next frame would be accepted.
    #[must_use]
    pub fn wants_input(&self) -> bool {
        let buffer = usize_from(self.config.session_buffer);
        self.held < buffer
            && self.refused.len() < MAX_REFUSED
            && (self.config.backlog == 0 || self.waiting.len() < self.config.backlog)
    }

    const fn inside_frame(&self) -> bool {
        !matches!(self.receiving, Receiving::Header { have: 0, .. })
    }

    /// Handles a header, the data of a frame or an update, or the available part of it.
    fn piece(&mut self, now: Time, rest: &[u8]) -> Result<usize, ProtocolError> {
        match &mut self.receiving {
            Receiving::Header { bytes, have } => {
                let used = fill(bytes, have, rest);
                if *have == FRAME_HEADER {
                    let header = Header::parse(*bytes, self.config.version)?;
                    self.receiving = Receiving::START;
                    self.header(now, header)?;
                }
                Ok(used)
            }
            Receiving::Update {
                stream,
                bytes,
                have,
            } => {
                let used = fill(bytes, have, rest);
                if *have == UPDATE {
                    let (stream, [c0, c1, c2, c3, w0, w1, w2, w3]) = (*stream, *bytes);
                    let consumed = u32::from_le_bytes([c0, c1, c2, c3]);
                    let window = u32::from_le_bytes([w0, w1, w2, w3]);
                    self.receiving = Receiving::START;
                    self.update(now, stream, consumed, window)?;
                }
                Ok(used)
            }
            Receiving::Data { stream, left } => {
                let (stream, data) = (*stream, rest.get(..*left).unwrap_or(rest));
                *left -= data.len();
                if *left == 0 {
                    self.receiving = Receiving::START;
                }
                self.data(stream, data);
                Ok(data.len())
            }
        }
    }

    fn header(&mut self, now: Time, header: Header) -> Result<(), ProtocolError> {
        let stream = header.stream;
        match header.command {
            Command::Open => return self.opened(now, stream),
            Command::Finish => self.finished(stream),
            Command::Nothing => return self.budget.spend(now),
            Command::Data if header.len == 0 => return self.budget.spend(now),
            Command::Data => {
                let left = usize::from(header.len);
                self.receiving = Receiving::Data { stream, left };
            }
            Command::Update => {
                self.receiving = Receiving::Update {
                    stream,
                    bytes: [0; UPDATE],
                    have: 0,
                };
            }
        }
        Ok(())
    }

    fn opened(&mut self, now: Time, id: StreamId) -> Result<(), ProtocolError> {
        if self.streams.contains_key(&id) {
            return self.budget.spend(now);
        }
        if self.config.backlog == 0 || self.streams.len() >= self.config.max_streams {
            self.refused.push_back(id);
            return Ok(());
        }
        self.streams.insert(id, Stream::new());
        self.waiting.push_back(id);
        self.tell(id, Happening::Opened);
        Ok(())
    }

    fn finished(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(&id)
            && !stream.finished
        {
            stream.finished = true;
            self.tell(id, Happening::Finished);
        }
    }

    fn data(&mut self, id: StreamId, data: &[u8]) {
        // Data of a stream that was closed, or after its end, is dropped.
        if let Some(stream) = self.streams.get_mut(&id)
            && !stream.closed
            && !stream.finished
        {
            self.buffers.push(&mut stream.inbox, data);
            self.held += data.len();
            if !stream.told {
                stream.told = true;
                self.tell(id, Happening::Readable);
            }
        }
    }

    fn update(
        &mut self,
        now: Time,
        id: StreamId,
        consumed: u32,
        window: u32,
    ) -> Result<(), ProtocolError> {
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| !stream.failed) else {
            return Ok(());
        };
        if !stream.updated(consumed, window) {
            return self.budget.spend(now);
        }
        if stream.failed {
            let unsent = stream.outbox.len();
            self.buffers.pop(&mut stream.outbox, unsent);
            self.tell(id, Happening::Failed);
        }
        self.schedule(id);
        self.grant(id);
        Ok(())
    }
}

/// Copies the missing bytes to `bytes`, as far as `rest` has them. Returns their number.
fn fill<const N: usize>(bytes: &mut [u8; N], have: &mut usize, rest: &[u8]) -> usize {
    let used = rest.len().min(N - *have);
    if let (Some(to), Some(from)) = (bytes.get_mut(*have..*have + used), rest.get(..used)) {
        to.copy_from_slice(from);
    }
    *have += used;
    used
}
