//! A transport with its underlying stream, for both the start of a session and its driver.

use std::future::poll_fn;
use std::io::{self, IoSlice, IoSliceMut};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use adit_net::system;
use adit_ssh_proto::auth::AuthPayload;
use adit_ssh_proto::packet::PayloadPosition;
use adit_ssh_proto::transport::{Event, OpenStep, Transport};
use adit_ssh_proto::{Disconnect, SshError};
use adit_stream::bulk::{BulkDetector, MAX_MARK_OPENED};
use adit_stream::{BoxStream, ShortRead, Stream};
use adit_wire::subslice;
use tokio::time::{Instant, timeout, timeout_at};

use super::computations::{AuthState, Computations};
use super::error::ConnectError;
use adit_stream::PooledBuffer;

/// Maximum capacity that an output buffer without traffic keeps, in bytes.
const MAX_KEPT: usize = 16 << 10;

/// Limit on unsent bytes in the kernel while several channels share a line. With the kernel's own limit
/// of up to 4 MiB, one echo in a hundred waits 2 to 4 ms longer beside bulk data. With 128 KiB echoes
/// wait no less than with this, and bulk data loses a tenth of its throughput.
const UNSENT_LIMIT: u32 = 512 << 10;

/// Maximum time for sending the last messages.
pub(super) const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// A transport and its underlying stream.
pub(super) struct TransportStream {
    stream: BoxStream,
    pub(super) transport: Transport,
    /// Bytes received from a bare socket.
    input: PooledBuffer,
    /// The receive rate of the bare socket, and the number of bytes received from it.
    bulk: BulkDetector,
    received: u64,
    /// True if several channels share the line.
    shared: bool,
    /// True if the underlying stream has ended.
    ended: bool,
    /// Number of bytes of the transport's output that were sent.
    sent: usize,
    /// The transport's computations on other threads.
    pub(super) computations: Computations,
}

/// Input for the layers above.
pub(super) enum Received {
    /// An event of the transport.
    Event(Event),
    /// A payload for the layer above.
    Payload(Vec<u8>),
}

/// A deadline for the peer, and the step that it is for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline {
    pub(super) until: Instant,
    pub(super) limit: Duration,
    pub(super) step: &'static str,
}

impl TransportStream {
    pub(super) fn new(stream: BoxStream, transport: Transport) -> Self {
        Self {
            stream,
            transport,
            input: PooledBuffer::default(),
            bulk: BulkDetector::default(),
            received: 0,
            shared: false,
            ended: false,
            sent: 0,
            computations: Computations::default(),
        }
    }

    /// Sets whether several channels share the line. If they do, one channel's data must not wait until
    /// another's bulk data is worth a wakeup, nor queue behind much of it.
    pub(super) fn set_shared(&mut self, shared: bool) {
        if shared == self.shared {
            return;
        }
        self.shared = shared;
        if let Some(socket) = self.stream.bare() {
            if shared {
                self.bulk.remove_mark(socket);
            }
            // Without the limit, messages wait longer; nothing else breaks.
            let _ = socket.set_unsent_limit(if shared { UNSENT_LIMIT } else { 0 });
        }
    }

    /// Registers the socket with the current runtime.
    pub(super) fn watch_from_here(&mut self) -> io::Result<()> {
        let Some(socket) = self.stream.bottom() else {
            return Ok(());
        };
        // The timer belongs to the other runtime.
        self.bulk.remove_mark(socket);
        socket.watch_from_current()
    }

    /// Returns true if several channels share the line.
    pub(super) const fn is_shared(&self) -> bool {
        self.shared
    }

    /// Makes at least `want` contiguous bytes readable; fewer mean the end of the stream.
    ///
    /// From a bare socket they are read directly into this line's buffer. Nearly every read leaves a
    /// partial packet behind, which would keep the socket's own buffer from growing and leave only its
    /// remainder for the next read.
    pub(super) fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        want: usize,
    ) -> Poll<io::Result<usize>> {
        let Some(socket) = self.stream.bare() else {
            return self.stream.poll_fill(cx, want);
        };
        while self.input.len() < want && !self.ended {
            let waiting = socket.buffered_len();
            if waiting > 0 {
                // An earlier reader has left bytes in the socket's buffer.
                self.input.reserve(waiting);
                if let Some(room) = self.input.spare_mut().get_mut(..waiting) {
                    room.copy_from_slice(socket.filled());
                }
                socket.consume(waiting);
                self.input.advance_end(waiting);
                continue;
            }
            if self.input.is_empty() {
                self.input.clear();
                if socket.poll_readable(cx)?.is_pending() {
                    if !self.shared
                        && self
                            .bulk
                            .poll_pause(cx, socket, self.received, MAX_MARK_OPENED)
                    {
                        continue;
                    }
                    // An idle connection holds no buffer.
                    self.input.release_if_empty();
                    return Poll::Pending;
                }
            }
            let room = want.max(self.input.class().bytes() / 2);
            self.input.reserve(room);
            let room = self.input.spare_mut();
            let offered = room.len();
            match socket.poll_read_into(cx, &mut [IoSliceMut::new(room)], ShortRead::Empty) {
                Poll::Ready(done) => {
                    let n = done?;
                    self.ended = n == 0;
                    self.received += n as u64;
                    self.input.advance_end(n);
                    self.input.adapt_class(n, offered);
                }
                Poll::Pending
                    if !self.shared
                        && self
                            .bulk
                            .poll_pause(cx, socket, self.received, MAX_MARK_OPENED) => {}
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(Ok(self.input.len()))
    }

    /// Opens the packet at the front.
    pub(super) fn open_next_packet(&mut self) -> Result<OpenStep, SshError> {
        let wire = if self.input.is_empty() {
            self.stream.filled()
        } else {
            self.input.bytes_mut()
        };
        self.transport.open_next(wire)
    }

    /// Runs the transport's computations until none is left.
    pub(super) fn poll_compute(
        &mut self,
        cx: &mut Context<'_>,
        whose: AuthState,
    ) -> Poll<Result<(), SshError>> {
        self.computations
            .poll_computations(cx, &mut self.transport, whose)
    }

    /// Returns the bytes of the payload that was opened last.
    pub(super) fn payload_bytes(&mut self, payload: &PayloadPosition) -> &[u8] {
        let wire = if self.input.is_empty() {
            self.stream.filled()
        } else {
            self.input.bytes()
        };
        self.transport.payload(wire, payload)
    }

    /// Skips the bytes that were opened.
    pub(super) fn consume(&mut self, n: usize) {
        if self.input.is_empty() {
            self.stream.consume(n);
        } else {
            self.input.advance_start(n);
        }
    }

    /// Returns the number of sealed bytes that are not sent yet.
    pub(super) fn unsent_bytes(&mut self) -> usize {
        self.transport.take_output().len() - self.sent
    }

    /// Sends the sealed bytes.
    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let out = self.transport.take_output();
            let rest = subslice(out, self.sent..);
            if rest.is_empty() {
                break;
            }
            let n = if let Some(socket) = self.stream.bare() {
                let n = ready!(socket.poll_write_from(cx, &[IoSlice::new(rest)]))?;
                if n == 0 {
                    return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                }
                n
            } else {
                if ready!(self.stream.poll_slot(cx, 1))? == 0 {
                    return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                }
                let slot = self.stream.slot();
                let n = rest.len().min(slot.len());
                if let (Some(slot), Some(rest)) = (slot.get_mut(..n), rest.get(..n)) {
                    slot.copy_from_slice(rest);
                }
                self.stream.commit(n)?;
                n
            };
            self.sent += n;
            if self.sent >= out.len() / 2 {
                // Moving only after half was sent moves no more bytes than were sent.
                let full = out.len();
                out.drain(..self.sent);
                self.sent = 0;
                if out.is_empty() && full < MAX_KEPT {
                    out.shrink_to(MAX_KEPT);
                }
            }
        }
        self.stream.poll_flush(cx)
    }

    /// Sends the sealed bytes before the deadline of `wait`.
    pub(super) async fn flush_until(&mut self, wait: Deadline) -> Result<(), ConnectError> {
        let done = timeout_at(wait.until, poll_fn(|cx| self.poll_flush(cx))).await;
        done.map_err(|_| wait.timeout_error())?
            .map_err(ConnectError::Io)
    }

    /// Returns the next event or payload, after it has sent all sealed bytes.
    pub(super) async fn next_input(&mut self, wait: Deadline) -> Result<Received, ConnectError> {
        loop {
            if let Some(event) = self.transport.poll_event() {
                return Ok(Received::Event(event));
            }
            let computed = poll_fn(|cx| self.poll_compute(cx, AuthState::Unauthenticated));
            let computed = timeout_at(wait.until, computed).await;
            computed.map_err(|_| wait.timeout_error())??;
            // A peer that has disconnected may have sent the reason, so read despite the error.
            let flushed = match self.flush_until(wait).await {
                Err(ConnectError::Io(why)) => Err(why),
                other => Ok(other?),
            };
            match self.open_next_packet() {
                Err(why) => return Err(why.into()),
                Ok(OpenStep::NeedMore { total }) => {
                    match (self.fill_until(total, wait).await, flushed) {
                        (Err(ConnectError::Ended(_) | ConnectError::Io(_)), Err(why)) => {
                            return Err(why.into());
                        }
                        (filled, _) => filled?,
                    }
                }
                Ok(OpenStep::Consumed { consumed }) => self.consume(consumed),
                Ok(OpenStep::Payload { consumed, payload }) => {
                    let bytes = self.payload_bytes(&payload).to_vec();
                    self.consume(consumed);
                    return Ok(Received::Payload(bytes));
                }
                Ok(OpenStep::Blocked) => {
                    return Err(SshError::Policy("the host key was not checked").into());
                }
            }
        }
    }

    async fn fill_until(&mut self, total: usize, wait: Deadline) -> Result<(), ConnectError> {
        loop {
            let now = system::monotonic_now();
            let due = self.transport.poll_timeout(now);
            let due = due.map(|due| Instant::now() + due.duration_since(now));
            let until = due.map_or(wait.until, |due| due.min(wait.until));
            match timeout_at(until, poll_fn(|cx| self.poll_fill(cx, total))).await {
                Ok(Ok(n)) if n < total => return Err(ConnectError::Ended(wait.step)),
                Ok(Ok(_)) => return Ok(()),
                Ok(Err(why)) => return Err(why.into()),
                Err(_) if Instant::now() >= wait.until => return Err(wait.timeout_error()),
                Err(_) => {
                    let done = self.transport.handle_timeout(system::monotonic_now());
                    self.flush_until(wait).await?;
                    done?;
                }
            }
        }
    }

    /// Ends the connection without a session and sends the reason to the peer, in a separate task.
    pub(super) fn send_disconnect(mut self, why: &ConnectError) {
        match why {
            ConnectError::Ssh(why) => {
                if let Some(reason) = why.disconnect() {
                    self.transport.disconnect(reason, &why.to_string());
                }
            }
            ConnectError::Auth { .. } => {
                let reason = Disconnect::NoMoreAuthMethods;
                self.transport
                    .disconnect(reason, "no authentication method is left to try");
            }
            _ => {}
        }
        tokio::spawn(timeout(
            CLOSE_TIMEOUT,
            poll_fn(move |cx| self.poll_disconnect(cx)),
        ));
    }

    /// Sends the sealed bytes and EOF, then reads until the peer closes: closing a socket with unread
    /// bytes resets the connection, and the peer may lose what was sent.
    pub(super) fn poll_disconnect(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let said = match ready!(self.poll_flush(cx)) {
            Ok(()) => ready!(self.stream.poll_finish(cx)),
            failed => failed,
        };
        if said.is_err() {
            return Poll::Ready(());
        }
        loop {
            match ready!(self.poll_fill(cx, 1)) {
                Ok(0) | Err(_) => return Poll::Ready(()),
                Ok(n) => self.consume(n),
            }
        }
    }

    /// Seals a message of the authentication layer.
    pub(super) fn send_auth_message(&mut self, message: &AuthPayload) -> Result<(), SshError> {
        if message.hide_length {
            let mut cover = Vec::new();
            message.put_length_cover(&mut cover);
            self.transport.send(&cover)?;
        }
        self.transport.send(message.payload.expose())
    }
}

impl Deadline {
    /// Creates a limit that starts now.
    pub(super) fn starting_now(limit: Duration, step: &'static str) -> Self {
        Self {
            until: Instant::now() + limit,
            limit,
            step,
        }
    }

    /// Returns the same deadline for another step.
    pub(super) const fn for_step(self, doing: &'static str) -> Self {
        Self {
            step: doing,
            ..self
        }
    }

    pub(super) const fn timeout_error(self) -> ConnectError {
        let Self {
            limit, step: doing, ..
        } = self;
        ConnectError::Timeout { limit, doing }
    }
}
