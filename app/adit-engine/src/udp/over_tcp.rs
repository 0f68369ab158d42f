//! UDP over TCP: datagrams as frames in a stream, client and server.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use adit_net::PacketBuf;
use adit_shadowsocks::uot::{self, Frame, Request, Version};
use adit_shadowsocksr::{ParsedDatagram, parse_datagram, put_datagram_head};
use adit_stream::{BoxStream, Stream, fill_to};
use adit_wire::{Target, subslice};

use super::DatagramPath;

/// Maximum size of frames that wait for the stream, in bytes. A batch that arrives before the stream is
/// open, or while it is full, is not lost.
const MAX_PENDING_BYTES: usize = 64 << 10;

/// Capacity in bytes that the frame buffer keeps when it is empty.
const KEPT_CAPACITY: usize = 4 << 10;

/// A stream that carries datagrams. Sending never waits: if too many frames wait already, it is lost.
pub struct UdpOverTcp(Mutex<UdpOverTcpState>);

/// The format of the frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FrameFormat {
    /// The format of sing-box, for Shadowsocks.
    SingBox,
    /// The format of ShadowsocksR: the request is a part of the stream's own header.
    ShadowsocksR,
}

struct UdpOverTcpState {
    io: BoxStream,
    form: FrameFormat,
    /// The only peer of a connected stream.
    connected: Option<Target>,
    /// True if a request has to precede the first datagram.
    owes_request: bool,
    /// Received bytes that came with the request for the stream.
    early: Vec<u8>,
    /// Frames to send, and the number of bytes already written to the stream.
    pending: Vec<u8>,
    taken: usize,
    /// The task that waits for datagrams, which also sends frames that had to wait.
    waiting: Option<Waker>,
}

impl UdpOverTcp {
    /// Creates the client's end, which sends the request with the first datagram.
    #[must_use]
    pub fn new_client(io: BoxStream) -> Self {
        Self::new(io, FrameFormat::SingBox, None, true, Vec::new())
    }

    /// Creates the client's end of a ShadowsocksR stream, whose header is pending.
    #[must_use]
    pub fn new_ssr_client(io: BoxStream) -> Self {
        Self::new(io, FrameFormat::ShadowsocksR, None, true, Vec::new())
    }

    /// Creates the server's end of a ShadowsocksR stream; `early` are bytes that came with the header.
    #[must_use]
    pub fn new_ssr_server(io: BoxStream, early: Vec<u8>) -> Self {
        Self::new(io, FrameFormat::ShadowsocksR, None, false, early)
    }

    /// Creates the server's end of a stream whose request was read; `early` are the bytes after it.
    #[must_use]
    pub fn new_server(io: BoxStream, connected: Option<Target>, early: Vec<u8>) -> Self {
        Self::new(io, FrameFormat::SingBox, connected, false, early)
    }

    fn new(
        io: BoxStream,
        form: FrameFormat,
        connected: Option<Target>,
        owes_request: bool,
        early: Vec<u8>,
    ) -> Self {
        Self(Mutex::new(UdpOverTcpState {
            io,
            form,
            connected,
            owes_request,
            early,
            pending: Vec::new(),
            taken: 0,
            waiting: None,
        }))
    }

    fn lock_state(&self) -> MutexGuard<'_, UdpOverTcpState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UdpOverTcpState {
    /// Writes as much of `rest` to the stream as it accepts.
    fn poll_write_pending(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.taken < self.pending.len() {
            let size = std::task::ready!(self.io.poll_slot(cx, 1))?;
            if size == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            let n = (self.pending.len() - self.taken).min(size);
            let bytes = self.pending.get(self.taken..self.taken + n);
            if let (Some(slot), Some(bytes)) = (self.io.slot().get_mut(..n), bytes) {
                slot.copy_from_slice(bytes);
            }
            self.io.commit(n)?;
            self.taken += n;
        }
        self.pending.clear();
        self.taken = 0;
        if self.pending.capacity() > KEPT_CAPACITY {
            self.pending = Vec::new();
        }
        Poll::Ready(Ok(()))
    }

    /// Sends the frames that had to wait.
    fn poll_send_pending(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        std::task::ready!(self.poll_write_pending(cx))?;
        if self.owes_request {
            // A pending header waits for the first datagram.
            return Poll::Ready(Ok(()));
        }
        self.io.poll_flush(cx)
    }

    /// Runs `work` without waiting. If it does not complete, the receiving task continues it.
    fn try_without_waiting(
        &mut self,
        work: impl FnOnce(&mut Self, &mut Context<'_>) -> Poll<io::Result<()>>,
    ) -> io::Result<()> {
        match work(self, &mut Context::from_waker(Waker::noop())) {
            Poll::Ready(done) => done,
            Poll::Pending => {
                if let Some(waiting) = self.waiting.take() {
                    waiting.wake();
                }
                Ok(())
            }
        }
    }

    /// Reads a frame, beginning with the bytes that arrived early.
    fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<(Option<Target>, FramePosition)>> {
        loop {
            let early = !self.early.is_empty();
            let bytes = if early {
                &mut self.early[..]
            } else {
                self.io.filled()
            };
            let have = bytes.len();
            let frame = match self.form {
                FrameFormat::SingBox => uot::parse_frame(bytes, self.connected.is_some()),
                FrameFormat::ShadowsocksR => parse_datagram(bytes).map(|datagram| match datagram {
                    ParsedDatagram::NeedMore { total } => Frame::NeedMore { total },
                    ParsedDatagram::Packet { peer, payload } => Frame::Packet { peer, payload },
                }),
            };
            match frame.map_err(io::Error::other)? {
                Frame::Packet { peer, payload } => {
                    return Poll::Ready(Ok((peer, FramePosition { early, payload })));
                }
                Frame::NeedMore { total } if early => {
                    let more = std::task::ready!(self.io.poll_fill(cx, 1))?;
                    if more == 0 {
                        return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
                    }
                    let n = more.min(total - have);
                    let filled = self.io.filled();
                    self.early.extend_from_slice(subslice(filled, ..n));
                    self.io.consume(n);
                }
                Frame::NeedMore { total } => {
                    if std::task::ready!(self.io.poll_fill(cx, total))? < total {
                        return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
                    }
                }
            }
        }
    }

    fn copy_datagram(&mut self, at: &FramePosition, packet: &mut PacketBuf) -> bool {
        let bytes = if at.early {
            &self.early[..]
        } else {
            self.io.filled()
        };
        let loaded = packet.copy_from(subslice(bytes, at.payload.clone()));
        if at.early {
            self.early.drain(..at.payload.end);
        } else {
            self.io.consume(at.payload.end);
        }
        loaded
    }
}

/// The position of a datagram in the buffer.
struct FramePosition {
    early: bool,
    payload: std::ops::Range<usize>,
}

impl DatagramPath for UdpOverTcp {
    fn send(&self, packet: &mut PacketBuf, to: &Target) -> io::Result<()> {
        let mut state = self.lock_state();
        if state.pending.len() > state.taken {
            let full =
                state.pending.len() - state.taken + packet.payload().len() > MAX_PENDING_BYTES;
            if full {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let taken = std::mem::take(&mut state.taken);
            state.pending.drain(..taken);
        }
        let UdpOverTcpState {
            connected,
            owes_request,
            pending: rest,
            form,
            ..
        } = &mut *state;
        if std::mem::take(owes_request) && *form == FrameFormat::SingBox {
            let request = Request {
                connected: false,
                target: to.clone(),
            };
            uot::put_request(&request, rest);
        }
        if connected.as_ref().is_some_and(|only| only != to) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let (peer, len) = (connected.is_none().then_some(to), packet.payload().len());
        match form {
            FrameFormat::SingBox => uot::put_head(peer, len, rest),
            FrameFormat::ShadowsocksR => put_datagram_head(to, len, rest),
        }
        .map_err(io::Error::other)?;
        rest.extend_from_slice(packet.payload());
        state.try_without_waiting(UdpOverTcpState::poll_write_pending)
    }

    fn flush(&self) -> io::Result<()> {
        self.lock_state()
            .try_without_waiting(UdpOverTcpState::poll_send_pending)
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        packet: &mut PacketBuf,
        each: &mut dyn FnMut(&mut PacketBuf, &Target),
    ) -> Poll<io::Result<()>> {
        let mut state = self.lock_state();
        if let Poll::Ready(Err(e)) = state.poll_send_pending(cx) {
            return Poll::Ready(Err(e));
        }
        match state.poll_frame(cx) {
            Poll::Ready(Ok((peer, at))) => {
                let peer = peer.or_else(|| state.connected.clone());
                let loaded = state.copy_datagram(&at, packet);
                drop(state);
                if let (true, Some(peer)) = (loaded, peer) {
                    each(packet, &peer);
                }
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(e)) => Poll::Ready(Err(e)),
            Poll::Pending => {
                state.waiting = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// Reads the request of a client of `version` and returns the server's end.
///
/// `early` are the bytes that came together with the request for the stream.
pub(crate) async fn accept_udp_over_tcp(
    mut io: BoxStream,
    mut early: Vec<u8>,
    version: Version,
) -> io::Result<(UdpOverTcp, Option<Target>)> {
    if version == Version::V1 {
        return Ok((UdpOverTcp::new_server(io, None, early), None));
    }
    loop {
        match uot::parse_request(&early).map_err(io::Error::other)? {
            Ok((request, len)) => {
                early.drain(..len);
                let connected = request.connected.then(|| request.target.clone());
                let end = UdpOverTcp::new_server(io, connected, early);
                return Ok((end, Some(request.target)));
            }
            Err(total) => {
                let n = fill_to(&mut io, 1).await?.min(total - early.len());
                if n == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                early.extend_from_slice(subslice(io.filled(), ..n));
                io.consume(n);
            }
        }
    }
}
