//! A TCP socket with pooled buffers.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use adit_net::on_demand::OnDemandTcp;
use adit_net::splice::Pipe;
use adit_net::urgent;
use adit_wire::{subslice, subslice_mut};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

use crate::Stream;
use crate::pool::{PoolBuffer, SizeClass};

/// Minimum size of a slot, in bytes. A smaller one is not worth a record; the buffer is flushed
/// first.
const MIN_SLOT: usize = 4096;

/// A TCP socket as a [`Stream`].
///
/// Each direction takes a buffer when it has bytes and returns it when it is empty. The size
/// follows the traffic: it grows when reads or writes fill it and shrinks when they do not.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use adit_stream::{Stream, Tcp, fill_to, write_and_flush};
/// use tokio::net::{TcpListener, TcpStream};
///
/// let listener = TcpListener::bind("127.0.0.1:0").await?;
/// let mut near = Tcp::new(TcpStream::connect(listener.local_addr()?).await?);
/// let mut far = Tcp::new(listener.accept().await?.0);
///
/// write_and_flush(&mut near, b"hello").await?;
/// assert_eq!(fill_to(&mut far, 5).await?, 5);
/// assert_eq!(far.filled(), b"hello");
/// far.consume(5);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Tcp {
    socket: WatchedSocket,
    rx: SocketBuffer,
    tx: SocketBuffer,
    ended: bool,
    /// A task has waited for received bytes, and none were taken since.
    waited_in_vain: bool,
}

/// The meaning of a read that returns less than the space offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShortRead {
    /// The socket is empty until it is readable again. For records, which do not use urgent data.
    Empty,
    /// As [`Empty`](Self::Empty), unless urgent data stopped the read. For arbitrary applications.
    Ask,
}

/// The socket, by how the runtime watches it.
#[derive(Debug)]
enum WatchedSocket {
    /// Always, for both directions.
    Watched(TcpStream),
    /// Only for received bytes, while a task waits for them.
    Asked(OnDemandTcp),
    /// Registering it with the runtime failed.
    Lost,
}

/// A buffer with bytes in `start..end`.
#[derive(Debug, Default)]
struct SocketBuffer {
    buf: PoolBuffer,
    start: usize,
    end: usize,
    hint: SizeClass,
}

impl SocketBuffer {
    fn len(&self) -> usize {
        self.end - self.start
    }

    fn bytes(&mut self) -> &mut [u8] {
        subslice_mut(&mut self.buf, self.start..self.end)
    }

    fn spare_mut(&mut self) -> &mut [u8] {
        subslice_mut(&mut self.buf, self.end..)
    }

    fn advance(&mut self, n: usize) {
        self.start = (self.start + n).min(self.end);
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Returns the buffer to the pool if it is empty.
    fn release_if_empty(&mut self) {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            self.buf.release();
        }
    }

    /// Makes space for `total` bytes counted from `start`.
    fn reserve_total(&mut self, total: usize) {
        if self.buf.len() - self.start >= total && !self.buf.is_none() {
            return;
        }
        if self.buf.len() >= total && !self.buf.is_none() {
            self.buf.copy_within(self.start..self.end, 0);
        } else {
            let mut larger = PoolBuffer::take(self.hint, total);
            let old = subslice(&self.buf, self.start..self.end);
            if let Some(front) = larger.get_mut(..old.len()) {
                front.copy_from_slice(old);
            }
            self.buf = larger;
        }
        (self.start, self.end) = (0, self.len());
    }

    /// Adapts the buffer size to a transfer of `n` bytes where `offered` were possible.
    fn adapt_class(&mut self, n: usize, offered: usize) {
        if n == offered {
            self.hint = self.hint.next_larger();
        } else if n < self.hint.next_smaller().bytes() / 2 {
            self.hint = self.hint.next_smaller();
        }
    }
}

impl WatchedSocket {
    /// Reads for handshakes and records, which do not use urgent data: after a short read the
    /// socket is taken as empty until it is readable again.
    fn poll_read(&mut self, cx: &mut Context<'_>, out: &mut [u8]) -> Poll<io::Result<usize>> {
        match self {
            Self::Watched(socket) => {
                let mut out = ReadBuf::new(out);
                ready!(Pin::new(socket).poll_read(cx, &mut out))?;
                Poll::Ready(Ok(out.filled().len()))
            }
            Self::Asked(asked) => asked.poll_read_with(cx, |mut socket| socket.read(out)),
            Self::Lost => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }

    /// Writes to a socket that is always watched.
    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Self::Watched(socket) => Pin::new(socket).poll_write(cx, bytes),
            Self::Asked(_) | Self::Lost => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }
}

impl Tcp {
    /// Wraps a connected socket.
    #[must_use]
    pub fn new(socket: TcpStream) -> Self {
        Self {
            socket: WatchedSocket::Watched(socket),
            rx: SocketBuffer::default(),
            tx: SocketBuffer::default(),
            ended: false,
            waited_in_vain: false,
        }
    }

    /// Returns the socket, watched always from now on.
    ///
    /// # Errors
    ///
    /// The socket cannot be registered with the runtime, or was lost by an earlier failure.
    pub fn socket(&mut self) -> io::Result<&mut TcpStream> {
        if let WatchedSocket::Asked(_) = &self.socket
            && let WatchedSocket::Asked(asked) =
                std::mem::replace(&mut self.socket, WatchedSocket::Lost)
        {
            self.socket = WatchedSocket::Watched(asked.into_registered()?);
        }
        match &mut self.socket {
            WatchedSocket::Watched(socket) => Ok(socket),
            WatchedSocket::Asked(_) | WatchedSocket::Lost => {
                Err(io::ErrorKind::NotConnected.into())
            }
        }
    }

    /// Returns the socket. Bytes that were received and not consumed, or committed and not sent, are
    /// lost; [`buffered_len`](Self::buffered_len) and [`unsent_len`](Self::unsent_len) return their
    /// numbers.
    ///
    /// # Errors
    ///
    /// The socket cannot be registered with the runtime, or was lost by an earlier failure.
    pub fn into_inner(self) -> io::Result<TcpStream> {
        match self.socket {
            WatchedSocket::Watched(socket) => Ok(socket),
            WatchedSocket::Asked(asked) => asked.into_registered(),
            WatchedSocket::Lost => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Like [`socket`](Self::socket), for a task that is about to wait for it. A task that already
    /// waits is woken to poll again.
    fn watch_and_wake(&mut self, cx: &Context<'_>) -> io::Result<&mut TcpStream> {
        if let WatchedSocket::Asked(_) = &self.socket {
            cx.waker().wake_by_ref();
        }
        self.socket()
    }

    /// Has the socket watched for received bytes only while a task waits for them, until a task
    /// waits for another event. Wakes the task, since it has to poll again. For the source of a
    /// fast flow.
    ///
    /// # Errors
    ///
    /// The socket cannot be registered with the runtime.
    pub fn watch_on_demand(&mut self, cx: &Context<'_>) -> io::Result<()> {
        if let WatchedSocket::Watched(_) = &self.socket
            && OnDemandTcp::is_supported()
            && let WatchedSocket::Watched(socket) =
                std::mem::replace(&mut self.socket, WatchedSocket::Lost)
        {
            self.socket = WatchedSocket::Asked(OnDemandTcp::new(socket)?);
            cx.waker().wake_by_ref();
        }
        Ok(())
    }

    /// Has the current runtime watch the socket. Tasks that waited for it have to poll again.
    ///
    /// # Errors
    ///
    /// The socket cannot be registered with the runtime.
    pub fn watch_from_current(&mut self) -> io::Result<()> {
        self.socket = match std::mem::replace(&mut self.socket, WatchedSocket::Lost) {
            WatchedSocket::Watched(socket) => {
                WatchedSocket::Watched(TcpStream::from_std(socket.into_std()?)?)
            }
            WatchedSocket::Asked(asked) => WatchedSocket::Watched(asked.into_registered()?),
            WatchedSocket::Lost => WatchedSocket::Lost,
        };
        Ok(())
    }

    /// Returns the number of bytes received and not consumed.
    #[must_use]
    pub fn buffered_len(&self) -> usize {
        self.rx.len()
    }

    /// Returns the number of bytes committed and not sent.
    #[must_use]
    pub fn unsent_len(&self) -> usize {
        self.tx.len()
    }

    /// Waits until a read would return bytes or the end. Takes no buffer.
    pub fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.rx.len() > 0 || self.ended {
            return Poll::Ready(Ok(()));
        }
        let ready = match &mut self.socket {
            WatchedSocket::Asked(asked) => asked.poll_requested(cx),
            _ => self.watch_and_wake(cx)?.poll_read_ready(cx),
        };
        self.waited_in_vain |= ready.is_pending();
        ready
    }

    /// Reads straight into the caller's memory, past the receive buffer, which has to be empty.
    /// Returns 0 at the end.
    pub fn poll_read_into(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut [IoSliceMut<'_>],
        short: ShortRead,
    ) -> Poll<io::Result<usize>> {
        if self.ended {
            return Poll::Ready(Ok(0));
        }
        if let WatchedSocket::Asked(asked) = &mut self.socket {
            let take = |socket: &_| adit_net::tcp::read_vectored(socket, out);
            let n = ready!(asked.poll_read_with(cx, take))?;
            self.ended = n == 0;
            return Poll::Ready(Ok(n));
        }
        let offered: usize = out.iter().map(|slice| slice.len()).sum();
        let socket = &*self.watch_and_wake(cx)?;
        let take = || adit_net::tcp::read_vectored(socket, out);
        let n = ready!(poll_read_with(cx, socket, offered, short, take))?;
        self.ended = n == 0;
        Poll::Ready(Ok(n))
    }

    /// Writes straight from the caller's memory, after the bytes that are still unsent.
    pub fn poll_write_from(
        &mut self,
        cx: &mut Context<'_>,
        runs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_flush(cx))?;
        if let WatchedSocket::Asked(asked) = &self.socket {
            match asked.socket().write_vectored(runs) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done),
            }
        }
        let socket = Pin::new(self.watch_and_wake(cx)?);
        match runs {
            [one] => socket.poll_write(cx, one),
            many => socket.poll_write_vectored(cx, many),
        }
    }

    /// Moves received bytes into an empty pipe, past the receive buffer, which has to be empty.
    /// Returns 0 at the end. After [`InvalidInput`](io::ErrorKind::InvalidInput) use reads instead.
    pub fn poll_fill_pipe(
        &mut self,
        cx: &mut Context<'_>,
        pipe: &mut Pipe,
    ) -> Poll<io::Result<usize>> {
        if self.ended {
            return Poll::Ready(Ok(0));
        }
        if let WatchedSocket::Asked(asked) = &mut self.socket {
            // The event is raised once for each wait: once more without a byte means urgent data.
            let told = std::mem::take(&mut self.waited_in_vain);
            let taken = asked.poll_read_with(cx, |socket| match told {
                true => pipe.fill_or_copy(socket),
                false => pipe.fill_from(socket),
            });
            self.waited_in_vain = taken.is_pending();
            let n = ready!(taken)?;
            self.ended = n == 0;
            return Poll::Ready(Ok(n));
        }
        let socket = &*self.watch_and_wake(cx)?;
        let room = pipe.page_capacity();
        let take = || pipe.fill_or_copy(socket);
        let n = ready!(poll_read_with(cx, socket, room, ShortRead::Ask, take))?;
        self.ended = n == 0;
        Poll::Ready(Ok(n))
    }

    /// Makes this socket readable only with `mark` bytes; 1 restores the default. The caller of a
    /// greater mark has to look for a flow that stays below it.
    ///
    /// # Errors
    ///
    /// The system refuses the option, or the socket was lost by an earlier failure.
    pub fn set_receive_mark(&mut self, mark: u32) -> io::Result<()> {
        match &self.socket {
            WatchedSocket::Watched(socket) => adit_net::watermark::set_receive_mark(socket, mark),
            WatchedSocket::Asked(asked) => {
                adit_net::watermark::set_receive_mark(asked.socket(), mark)
            }
            WatchedSocket::Lost => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Limits the number of bytes that wait in the system to be sent; 0 is the system's own limit.
    /// See `adit_net::lowat::set_unsent_limit`.
    ///
    /// # Errors
    ///
    /// The system refuses the option, or the socket was lost by an earlier failure.
    pub fn set_unsent_limit(&mut self, bytes: u32) -> io::Result<()> {
        match &self.socket {
            WatchedSocket::Watched(socket) => adit_net::watermark::set_unsent_limit(socket, bytes),
            WatchedSocket::Asked(asked) => {
                adit_net::watermark::set_unsent_limit(asked.socket(), bytes)
            }
            WatchedSocket::Lost => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Writes the bytes of a pipe to the socket. There must be no unsent bytes.
    pub fn poll_drain_pipe(
        &mut self,
        cx: &mut Context<'_>,
        pipe: &mut Pipe,
    ) -> Poll<io::Result<usize>> {
        if let WatchedSocket::Asked(asked) = &self.socket {
            match pipe.drain_to(asked.socket()) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done),
            }
        }
        let socket = &*self.watch_and_wake(cx)?;
        loop {
            ready!(socket.poll_write_ready(cx))?;
            match socket.try_io(Interest::WRITABLE, || pipe.drain_to(socket)) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done),
            }
        }
    }
}

/// Reads received bytes with `take`. If that returns less than `room` bytes the socket is empty and
/// need not be read again, unless urgent data stopped the read; `short` says if it may have.
fn poll_read_with(
    cx: &mut Context<'_>,
    socket: &TcpStream,
    room: usize,
    short: ShortRead,
    mut take: impl FnMut() -> io::Result<usize>,
) -> Poll<io::Result<usize>> {
    loop {
        ready!(socket.poll_read_ready(cx))?;
        let mut got = None;
        let done = socket.try_io(Interest::READABLE, || {
            let n = *got.insert(take()?);
            if n < room && (n == 0 || short == ShortRead::Empty || !urgent::is_urgent_next(socket))
            {
                // Clears the readiness, but not that of the end.
                return Err(io::ErrorKind::WouldBlock.into());
            }
            Ok(())
        });
        match (got, done) {
            (Some(n), _) => return Poll::Ready(Ok(n)),
            (None, Err(e)) if e.kind() != io::ErrorKind::WouldBlock => return Poll::Ready(Err(e)),
            _ => {}
        }
    }
}

impl Stream for Tcp {
    fn poll_fill(&mut self, cx: &mut Context<'_>, want: usize) -> Poll<io::Result<usize>> {
        while self.rx.len() < want && !self.ended {
            if self.rx.buf.is_none() {
                ready!(match &mut self.socket {
                    WatchedSocket::Asked(asked) => asked.poll_requested(cx),
                    _ => self.watch_and_wake(cx)?.poll_read_ready(cx),
                })?;
            }
            // The first read takes the size that the last ones suggest; `want` does not limit it.
            self.rx.reserve_total(want);
            let space = self.rx.spare_mut();
            let offered = space.len();
            match self.socket.poll_read(cx, space) {
                Poll::Ready(Ok(n)) => {
                    self.ended = n == 0;
                    self.rx.end += n;
                    self.rx.adapt_class(n, offered);
                }
                Poll::Ready(Err(e)) => return Poll::Ready(Err(e)),
                Poll::Pending => {
                    self.rx.release_if_empty();
                    return Poll::Pending;
                }
            }
        }
        if self.ended {
            self.rx.release_if_empty();
        }
        Poll::Ready(Ok(self.rx.len()))
    }

    fn filled(&mut self) -> &mut [u8] {
        self.rx.bytes()
    }

    fn runs<'a>(&'a mut self, out: &mut [IoSlice<'a>]) -> usize {
        match out.first_mut() {
            Some(first) if self.rx.len() > 0 => {
                *first = IoSlice::new(self.rx.bytes());
                1
            }
            _ => 0,
        }
    }

    fn consume(&mut self, n: usize) {
        self.rx.advance(n);
        self.rx.release_if_empty();
    }

    fn poll_slot(&mut self, cx: &mut Context<'_>, min: usize) -> Poll<io::Result<usize>> {
        let min = min.max(MIN_SLOT);
        if self.tx.len() > 0 && self.tx.spare_mut().len() < min {
            self.tx.hint = self.tx.hint.next_larger();
            ready!(self.poll_flush(cx))?;
        }
        let have = self.tx.len();
        self.tx.reserve_total(have + min);
        Poll::Ready(Ok(self.tx.spare_mut().len()))
    }

    fn slot(&mut self) -> &mut [u8] {
        self.tx.spare_mut()
    }

    fn commit(&mut self, n: usize) -> io::Result<()> {
        self.tx.end = (self.tx.end + n).min(self.tx.buf.len());
        Ok(())
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.tx.len() > 0 && self.tx.end < self.tx.hint.next_smaller().bytes() / 2 {
            self.tx.hint = self.tx.hint.next_smaller();
        }
        while self.tx.len() > 0 {
            let asked = match &self.socket {
                WatchedSocket::Asked(asked) => asked.socket().write(self.tx.bytes()),
                _ => Err(io::ErrorKind::WouldBlock.into()),
            };
            let n = match asked {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    self.watch_and_wake(cx)?;
                    ready!(self.socket.poll_write(cx, self.tx.bytes()))?
                }
                done => done?,
            };
            if n == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.tx.advance(n);
        }
        self.tx.release_if_empty();
        Poll::Ready(Ok(()))
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_flush(cx))?;
        Pin::new(self.watch_and_wake(cx)?).poll_shutdown(cx)
    }

    fn abort(&mut self) {
        if let Ok(socket) = self.socket() {
            adit_net::tcp::reset_on_close(socket);
        }
    }

    fn bare(&mut self) -> Option<&mut Tcp> {
        Some(self)
    }
}
