//! Channels as byte streams.

use std::fmt;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use adit_ssh_proto::connection::{ChannelId, DataKind};
use adit_stream::Stream;
use adit_stream::lane::RelayLane;
use adit_stream::pool::SizeClass;
use adit_wire::subslice;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::byte_queue::ByteQueue;
use super::shared_channel::{ChannelState, SharedChannel};
use adit_stream::PooledBuffer;

/// Minimum size of a write slot, in bytes. A smaller one is not worth a message: the buffer is sent
/// first.
const MIN_SLOT: usize = 4096;

/// A reference to a channel, which is closed when the last one is dropped.
#[derive(Clone)]
pub(super) struct ChannelHandle(Arc<ChannelGuard>);

struct ChannelGuard(Arc<SharedChannel>);

impl ChannelHandle {
    pub(super) fn new(pipe: Arc<SharedChannel>) -> Self {
        pipe.mail.add_handle();
        Self(Arc::new(ChannelGuard(pipe)))
    }

    pub(super) fn pipe(&self) -> &Arc<SharedChannel> {
        &self.0.0
    }
}

impl Drop for ChannelGuard {
    fn drop(&mut self) {
        self.0.update_state(ChannelState::release_handle);
        self.0.mail.remove_handle();
    }
}

impl fmt::Debug for ChannelHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.pipe().id)
    }
}

/// A channel as an [`adit_stream::Stream`], and as tokio's `AsyncRead` and `AsyncWrite`.
///
/// Each direction ends separately. Data that was flushed before a drop is still sent.
#[derive(Debug)]
pub struct Channel {
    reader: ChannelReader,
    writer: ChannelWriter,
}

/// The receiving half of a channel, or of its standard error.
#[derive(Debug)]
pub struct ChannelReader {
    handle: ChannelHandle,
    kind: DataKind,
    bytes: ByteQueue,
    ended: bool,
}

/// The sending half of a channel, or of its standard error.
#[derive(Debug)]
pub struct ChannelWriter {
    handle: ChannelHandle,
    kind: DataKind,
    bytes: PooledBuffer,
}

impl Channel {
    pub(super) fn new(handle: ChannelHandle) -> Self {
        Self {
            reader: ChannelReader::new(handle.clone(), DataKind::Stdout),
            writer: ChannelWriter::new(handle, DataKind::Stdout),
        }
    }

    /// Returns the channel number at this end, for logs.
    #[must_use]
    pub fn id(&self) -> ChannelId {
        self.reader.handle.pipe().id
    }

    /// Splits the channel into halves for two tasks. The channel closes when both are dropped.
    #[must_use]
    pub fn into_split(self) -> (ChannelReader, ChannelWriter) {
        (self.reader, self.writer)
    }
}

impl ChannelReader {
    pub(super) const fn new(handle: ChannelHandle, kind: DataKind) -> Self {
        Self {
            handle,
            kind,
            bytes: ByteQueue::new(),
            ended: false,
        }
    }

    /// Makes at least `want` contiguous bytes readable and returns the number of all readable bytes.
    /// Fewer than `want` mean the end of the stream.
    ///
    /// # Errors
    /// The session failed.
    pub fn poll_fill(&mut self, cx: &mut Context<'_>, want: usize) -> Poll<io::Result<usize>> {
        while self.bytes.len() < want && !self.ended {
            let pipe = self.handle.pipe();
            self.ended = ready!(pipe.poll_receive(cx, self.kind, &mut self.bytes))? == 0;
        }
        if want > 1 {
            self.bytes
                .make_contiguous(want, &self.handle.pipe().mail.spares);
        }
        Poll::Ready(Ok(self.bytes.len()))
    }

    /// Returns the first readable bytes, as one slice.
    pub fn filled(&mut self) -> &mut [u8] {
        self.bytes.front()
    }

    /// Fills `out` with the slices of the readable bytes in order and returns their number.
    pub fn runs<'a>(&'a self, out: &mut [IoSlice<'a>]) -> usize {
        self.bytes.fill_slices(out)
    }

    /// Marks `n` readable bytes as used.
    pub fn consume(&mut self, n: usize) {
        let n = n.min(self.bytes.len());
        let pipe = self.handle.pipe();
        self.bytes.consume(n, &pipe.mail.spares);
        pipe.report_consumed(n);
    }
}

impl Drop for ChannelReader {
    fn drop(&mut self) {
        let left = self.bytes.len();
        self.consume(left);
        self.handle.pipe().stop_reading(self.kind);
    }
}

impl ChannelWriter {
    pub(super) fn new(handle: ChannelHandle, kind: DataKind) -> Self {
        Self {
            handle,
            kind,
            bytes: PooledBuffer::default(),
        }
    }

    fn poll_queue_buffer(&mut self, cx: &Context<'_>) -> Poll<io::Result<()>> {
        if self.bytes.is_empty() {
            return Poll::Ready(Ok(()));
        }
        let class = self.bytes.class();
        ready!(
            self.handle
                .pipe()
                .poll_send_buffer(cx, self.kind, &mut self.bytes)
        )?;
        self.bytes = PooledBuffer::with_class(class);
        Poll::Ready(Ok(()))
    }

    fn poll_slot(&mut self, cx: &Context<'_>, min: usize) -> Poll<io::Result<usize>> {
        let min = min.max(MIN_SLOT);
        if !self.bytes.is_empty() && self.bytes.spare_mut().len() < min {
            self.bytes.adapt_class(1, 1);
            ready!(self.poll_queue_buffer(cx))?;
        }
        let class = self.bytes.class();
        if self.bytes.capacity() == 0 && class > SizeClass::SMALL {
            let spares = &self.handle.pipe().mail.spares;
            let room = min.max(class.bytes());
            self.bytes = spares.take_buffer(room).with_class_of(&self.bytes);
        }
        self.bytes.reserve(min);
        Poll::Ready(Ok(self.bytes.spare_mut().len()))
    }

    /// Reads once from `source`, directly into the buffer of bytes to be sealed, and passes them on.
    /// Returns the number of bytes read, 0 at the end of the source. Bytes that the channel has no
    /// space for are passed on before the next read.
    ///
    /// # Errors
    /// The source failed, the session failed, or the peer accepts no more data.
    pub fn poll_write_from(
        &mut self,
        cx: &mut Context<'_>,
        source: Pin<&mut impl AsyncRead>,
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_queue_buffer(cx))?;
        ready!(self.poll_slot(cx, 1))?;
        let room = self.bytes.spare_mut();
        let offered = room.len();
        let mut room = ReadBuf::new(room);
        if source.poll_read(cx, &mut room)?.is_pending() {
            // An idle connection holds no buffer.
            self.bytes.release_if_empty();
            return Poll::Pending;
        }
        let n = room.filled().len();
        self.bytes.advance_end(n);
        self.bytes.adapt_class(n, offered);
        if let Poll::Ready(done) = self.poll_queue_buffer(cx) {
            done?;
        }
        Poll::Ready(Ok(n))
    }

    fn poll_queue_all(&mut self, cx: &Context<'_>) -> Poll<io::Result<()>> {
        if self.bytes.is_empty() {
            self.bytes.release_if_empty();
        } else {
            self.bytes.adapt_class(self.bytes.len(), usize::MAX);
        }
        self.poll_queue_buffer(cx)
    }

    /// Ends the sending direction after the data written so far.
    fn poll_send_eof(&mut self, cx: &Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_queue_all(cx))?;
        self.handle
            .pipe()
            .update_state(|state| state.finish_writing(self.kind));
        Poll::Ready(Ok(()))
    }
}

impl Drop for ChannelWriter {
    fn drop(&mut self) {
        self.handle
            .pipe()
            .update_state(|state| state.finish_writing(self.kind));
    }
}

impl Stream for Channel {
    fn poll_fill(&mut self, cx: &mut Context<'_>, want: usize) -> Poll<io::Result<usize>> {
        self.reader.poll_fill(cx, want)
    }

    fn filled(&mut self) -> &mut [u8] {
        self.reader.filled()
    }

    fn runs<'a>(&'a mut self, out: &mut [IoSlice<'a>]) -> usize {
        self.reader.runs(out)
    }

    fn consume(&mut self, n: usize) {
        self.reader.consume(n);
    }

    fn poll_slot(&mut self, cx: &mut Context<'_>, min: usize) -> Poll<io::Result<usize>> {
        self.writer.poll_slot(cx, min)
    }

    fn slot(&mut self) -> &mut [u8] {
        self.writer.bytes.spare_mut()
    }

    fn commit(&mut self, n: usize) -> io::Result<()> {
        self.writer.bytes.advance_end(n);
        Ok(())
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.writer.poll_queue_all(cx)
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.writer.poll_send_eof(cx)
    }

    /// Closes the channel without an EOF, which adit peers see as a reset.
    fn abort(&mut self) {
        self.reader.handle.pipe().abort();
    }

    fn lane(&self) -> RelayLane {
        let lane = self.reader.handle.pipe().mail.lane();
        lane.map_or(RelayLane::ByLoad, RelayLane::Session)
    }
}

impl AsyncRead for ChannelReader {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let me = self.get_mut();
        if out.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        ready!(me.poll_fill(cx, 1))?;
        let mut copied = 0;
        while out.remaining() > 0 {
            let front = me.bytes.front();
            let n = front.len().min(out.remaining());
            if n == 0 {
                break;
            }
            out.put_slice(subslice(front, ..n));
            me.bytes.consume(n, &me.handle.pipe().mail.spares);
            copied += n;
        }
        me.handle.pipe().report_consumed(copied);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ChannelWriter {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let me = self.get_mut();
        ready!(me.poll_queue_buffer(cx))?;
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        me.handle.pipe().poll_send_copy(cx, me.kind, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_queue_all(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_send_eof(cx)
    }
}

impl AsyncRead for Channel {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().reader).poll_read(cx, out)
    }
}

impl AsyncWrite for Channel {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().writer).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().writer.poll_queue_all(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().writer.poll_send_eof(cx)
    }
}
