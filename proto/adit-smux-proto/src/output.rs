//! Output: control frames first, then data, one frame of each stream in turn.

use adit_wire::narrow_int;

use crate::{
    FRAME_HEADER, Session, StreamError, StreamId,
    event::EventKind,
    frame::{FrameCommand, FrameHeader, UPDATE_LEN},
    queue_pool::copy_front,
    session::writable_stream_mut,
    stream::{SendState, WriteWait},
};

/// Minimum size of the buffer for [`Session::poll_output`] to make progress, in bytes: a window
/// update.
pub const MIN_OUTPUT: usize = FRAME_HEADER + UPDATE_LEN;

impl Session {
    /// Writes frames to the front of `out` and returns their length; 0 if there is nothing to send,
    /// or if `out` has less than [`MIN_OUTPUT`] bytes.
    ///
    /// Only whole frames are written. The first data frame is shortened to fit.
    pub fn poll_output(&mut self, out: &mut [u8]) -> usize {
        let mut room = OutputBuffer { out, used: 0 };
        self.write_control_frames(&mut room);
        while self.control_queue.is_empty()
            && let Some(id) = self.send_queue.front().copied()
        {
            if !self.write_data_frame(id, &mut room) {
                break;
            }
            self.send_queue.pop_front();
            if let Some(stream) = self.streams.get_mut(&id) {
                stream.in_turn = false;
            }
            self.schedule_stream(id);
            self.notify_writable(id);
        }
        room.used
    }

    /// True if there is anything to send.
    #[must_use]
    pub fn wants_output(&self) -> bool {
        let control =
            self.keepalive_due || !self.refused.is_empty() || !self.control_queue.is_empty();
        control || !self.send_queue.is_empty()
    }

    /// Returns the number of bytes that [`seal_frame`](Self::seal_frame) would accept now. If 0,
    /// [`Event::Writable`](crate::Event::Writable) follows.
    ///
    /// It is 0 while the stream has queued bytes or its opening is not sent, and when the peer's
    /// window is used up.
    ///
    /// # Errors
    ///
    /// See [`StreamError`].
    pub fn direct_capacity(&mut self, id: StreamId) -> Result<usize, StreamError> {
        let version = self.config.version;
        let stream = writable_stream_mut(&mut self.streams, id)?;
        let free = stream.outbox.is_empty() && !stream.open_pending;
        let allowed = if free {
            stream.allowed_bytes(version)
        } else {
            0
        };
        if allowed == 0 {
            stream.write_wait = WriteWait::Direct;
        }
        Ok(allowed.min(usize::from(self.config.max_frame)))
    }

    /// Makes a data frame in place, which must be sent after all output before it. `frame` consists
    /// of [`FRAME_HEADER`] bytes, which are written, and at most [`direct_capacity`](Self::direct_capacity) bytes of
    /// data.
    ///
    /// # Errors
    ///
    /// [`StreamError::TooLong`] if there is no data or too much, or the error of
    /// [`direct_capacity`](Self::direct_capacity).
    pub fn seal_frame(&mut self, id: StreamId, frame: &mut [u8]) -> Result<(), StreamError> {
        let most = self.direct_capacity(id)?;
        let (header, data) = frame
            .split_first_chunk_mut::<FRAME_HEADER>()
            .filter(|(_, data)| (1..=most).contains(&data.len()))
            .ok_or(StreamError::TooLong)?;
        let len = u16::try_from(data.len()).map_err(|_| StreamError::TooLong)?;
        *header = FrameHeader::new(FrameCommand::Data, len, id).encode(self.config.version);
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.count_sent(data.len());
        }
        Ok(())
    }

    /// Reports to the application that it can continue to write, if it waits for that.
    pub(crate) fn notify_writable(&mut self, id: StreamId) {
        let version = self.config.version;
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        let granted = match stream.write_wait {
            WriteWait::None => false,
            // Not for each frame: a call is worth it for half of the queue.
            WriteWait::QueueSpace => stream.outbox.len() <= self.config.send_buffer / 2,
            WriteWait::Direct => {
                stream.outbox.is_empty()
                    && !stream.open_pending
                    && stream.allowed_bytes(version) > 0
            }
        };
        if granted && stream.sending == SendState::Open && !stream.failed {
            stream.write_wait = WriteWait::None;
            self.queue_event(id, EventKind::Writable);
        }
    }

    fn write_control_frames(&mut self, room: &mut OutputBuffer<'_>) {
        let version = self.config.version;
        let mut put = |command, id, body: &[u8]| {
            let len = narrow_int(body.len());
            room.push_frame(&FrameHeader::new(command, len, id).encode(version), body)
        };
        if self.keepalive_due && put(FrameCommand::KeepAlive, StreamId(0), &[]) {
            self.keepalive_due = false;
        }
        while let Some(id) = self.refused.front().copied() {
            if !put(FrameCommand::Finish, id, &[]) {
                return;
            }
            self.refused.pop_front();
        }
        while let Some(id) = self.control_queue.front().copied() {
            if let Some(stream) = self.streams.get_mut(&id) {
                if stream.open_pending {
                    if !put(FrameCommand::Open, id, &[]) {
                        return;
                    }
                    stream.open_pending = false;
                }
                if let Some(consumed) = stream.pending_update {
                    let [c0, c1, c2, c3] = consumed.to_le_bytes();
                    let [w0, w1, w2, w3] = self.config.stream_buffer.to_le_bytes();
                    if !put(FrameCommand::Update, id, &[c0, c1, c2, c3, w0, w1, w2, w3]) {
                        return;
                    }
                    stream.pending_update = None;
                }
                stream.in_control = false;
            }
            self.control_queue.pop_front();
            self.notify_writable(id);
        }
    }

    /// Writes a data frame, or the end, of a stream. Returns false if it does not fit.
    fn write_data_frame(&mut self, id: StreamId, room: &mut OutputBuffer<'_>) -> bool {
        let version = self.config.version;
        let Some(stream) = self.streams.get_mut(&id) else {
            return true;
        };
        if !stream.can_send(version) {
            return true;
        }
        if stream.outbox.is_empty() {
            if !room.push_frame(
                &FrameHeader::new(FrameCommand::Finish, 0, id).encode(version),
                &[],
            ) {
                return false;
            }
            stream.sending = SendState::Ended;
            if stream.closed {
                self.streams.remove(&id);
            }
            return true;
        }
        let most = stream
            .allowed_bytes(version)
            .min(self.config.max_frame.into());
        let Some(body) = room.reserve_body(stream.outbox.len().min(most)) else {
            return false;
        };
        let copied = copy_front(&stream.outbox, body);
        let len = narrow_int(copied);
        room.commit_frame(
            &FrameHeader::new(FrameCommand::Data, len, id).encode(version),
            copied,
        );
        stream.count_sent(copied);
        self.buffers.pop_bytes(&mut stream.outbox, copied);
        true
    }
}

/// The rest of the caller's buffer.
struct OutputBuffer<'a> {
    out: &'a mut [u8],
    used: usize,
}

impl OutputBuffer<'_> {
    /// Appends a frame. Returns false if it does not fit.
    fn push_frame(&mut self, header: &[u8; FRAME_HEADER], body: &[u8]) -> bool {
        let end = self.used + FRAME_HEADER + body.len();
        let Some(frame) = self.out.get_mut(self.used..end) else {
            return false;
        };
        let (head, data) = frame.split_at_mut(FRAME_HEADER);
        head.copy_from_slice(header);
        data.copy_from_slice(body);
        self.used = end;
        true
    }

    /// Returns the space for `wanted` bytes of data, or for fewer if this is the first frame.
    fn reserve_body(&mut self, wanted: usize) -> Option<&mut [u8]> {
        let first = self.used == 0;
        let rest = self.out.get_mut(self.used + FRAME_HEADER..)?;
        let len = rest.len().min(wanted);
        (len == wanted || (first && len > 0)).then(|| rest.get_mut(..len))?
    }

    /// Writes the header of a frame whose data is in place.
    fn commit_frame(&mut self, header: &[u8; FRAME_HEADER], len: usize) {
        if let Some(place) = self.out.get_mut(self.used..self.used + FRAME_HEADER) {
            place.copy_from_slice(header);
        }
        self.used += FRAME_HEADER + len;
    }
}
