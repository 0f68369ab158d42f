//! UDP sockets that move packets in batches.
//!
//! Receiving takes what the kernel has: several datagrams per call (`recvmmsg`), each perhaps a
//! run of equal ones that the kernel has joined (`UDP_GRO`). Sending collects equal datagrams for
//! the same peer and hands them over as one (`UDP_SEGMENT`). Both fall back by themselves where
//! the system does not offer them; `ADIT_IO=portable` forces the fall-back.

use std::cell::RefCell;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, ready};

use adit_wire::unmap;
use quinn_udp::{RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use crate::packet::MAX_PAYLOAD;

/// Socket buffers asked for, in bytes; the system may give less.
const BUFFER: usize = 4 << 20;
/// Datagrams, or joined runs of them, that one call receives.
const BATCH: usize = 16;
/// As many where the last ones were long runs: what a call brings is looked at while it is in the
/// nearest cache but one, and the next call writes to the same places.
const FEW: usize = 2;
/// Bytes from which on a run is long.
const LONG: usize = RUN / 4;
/// Whether a call takes as many as there are, up to [`BATCH`] (`recvmmsg`). No socket here is
/// connected, so no error of an earlier datagram ends a call before its time.
const EMPTIES: bool = cfg!(target_os = "linux");
/// Room for one joined run.
const RUN: usize = 64 << 10;
/// Segments that one call may send.
const SEGMENTS: usize = 64;

/// A UDP socket that speaks IPv4 and, where it is bound to a v6 address, IPv6.
///
/// Addresses go in and come out unmapped: a dual-stack socket never shows `::ffff:a.b.c.d`.
#[derive(Debug)]
pub struct Udp {
    socket: UdpSocket,
    state: UdpSocketState,
    v6: bool,
    /// The last call brought long runs.
    long: AtomicBool,
    run: Mutex<Run>,
}

/// Equal datagrams for one peer that wait for the rest of their batch.
#[derive(Debug, Default)]
struct Run {
    bytes: Vec<u8>,
    to: Option<SocketAddr>,
    /// Size of each but the last, which may be shorter.
    segment: usize,
    count: usize,
}

/// Whether batches by the kernel are switched off.
#[must_use]
pub fn portable_io() -> bool {
    static PORTABLE: OnceLock<bool> = OnceLock::new();
    *PORTABLE.get_or_init(|| std::env::var_os("ADIT_IO").is_some_and(|v| v == "portable"))
}

impl Udp {
    /// Binds. A v6 wildcard also takes IPv4.
    pub fn bind(addr: SocketAddr) -> io::Result<Self> {
        Self::bound(open(addr)?, addr)
    }

    /// Binds one port by `count` sockets, among which the system spreads the peers: each peer
    /// always comes to the same one. Where it cannot, one socket is all there is.
    pub fn bind_shared(addr: SocketAddr, count: usize) -> io::Result<Vec<Self>> {
        let alone = Self::bind(addr)?;
        if count <= 1 || portable_io() || !cfg!(target_os = "linux") {
            return Ok(vec![alone]);
        }
        // Sharing is not asked for at once: a port that another program has must not be shared
        // with it by mistake.
        let addr = SocketAddr::new(addr.ip(), alone.socket.local_addr()?.port());
        drop(alone);
        let sharing = || {
            let socket = open(addr)?;
            #[cfg(target_os = "linux")]
            socket.set_reuse_port(true)?;
            Self::bound(socket, addr)
        };
        (0..count).map(|_| sharing()).collect()
    }

    /// Binds a socket of [`open`].
    pub(crate) fn bound(socket: Socket, addr: SocketAddr) -> io::Result<Self> {
        socket.bind(&addr.into())?;
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        let socket = UdpSocket::from_std(socket.into())?;
        Ok(Self {
            socket,
            state,
            v6: addr.is_ipv6(),
            long: AtomicBool::new(false),
            run: Mutex::default(),
        })
    }

    /// Binds an ephemeral port for both families, or for IPv4 alone where there is no IPv6.
    pub fn ephemeral() -> io::Result<Self> {
        Self::bind(SocketAddr::from(([0u16; 8], 0)))
            .or_else(|_| Self::bind(SocketAddr::from(([0u8; 4], 0))))
    }

    /// The address it is bound to.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        let addr = self.socket.local_addr()?;
        Ok(SocketAddr::new(unmap(addr.ip()), addr.port()))
    }

    /// The receive buffer the system gave, in bytes.
    #[must_use]
    pub fn recv_buffer(&self) -> usize {
        SockRef::from(&self.socket).recv_buffer_size().unwrap_or(0)
    }

    /// Waits until there is something to receive.
    pub async fn readable(&self) -> io::Result<()> {
        self.socket.readable().await
    }

    /// Receives a batch; gives each datagram with its sender to `each`. Holds no buffer in
    /// between. Errors that tell of an earlier datagram (ICMP) are passed over.
    pub fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        each: &mut dyn FnMut(&mut [u8], SocketAddr),
    ) -> Poll<io::Result<()>> {
        self.poll_recv_runs(cx, &mut |run, from| run.each(from, each))
    }

    /// As [`poll_recv`](Self::poll_recv), but gives runs of datagrams from one sender as they lie.
    pub fn poll_recv_runs(
        &self,
        cx: &mut Context<'_>,
        each: &mut dyn FnMut(Received<'_>, SocketAddr),
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.socket.poll_recv_ready(cx))?;
            match self.try_recv_runs(each) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done),
            }
        }
    }

    /// As [`poll_recv`](Self::poll_recv), without waiting.
    pub fn try_recv(&self, each: &mut dyn FnMut(&mut [u8], SocketAddr)) -> io::Result<()> {
        self.try_recv_runs(&mut |run, from| run.each(from, each))
    }

    fn try_recv_runs(&self, each: &mut dyn FnMut(Received<'_>, SocketAddr)) -> io::Result<()> {
        // `each` may come to receive on another socket; then there is no scratch for it.
        SCRATCH.with(|scratch| match scratch.try_borrow_mut() {
            Ok(mut scratch) => self.recv_into(&mut scratch, each),
            Err(_) => self.recv_into(&mut Scratch::default(), each),
        })
    }

    fn recv_into(
        &self,
        scratch: &mut Scratch,
        each: &mut dyn FnMut(Received<'_>, SocketAddr),
    ) -> io::Result<()> {
        let mut left = BATCH;
        while left > 0 {
            let long = self.long.load(Ordering::Relaxed);
            let room = if long { FEW.min(left) } else { BATCH };
            let count = match self.recv_some(scratch, room, each) {
                // What came before is no error.
                Err(_) if left < BATCH => break,
                received => received?,
            };
            if count < room || !long {
                break;
            }
            left -= count;
        }
        Ok(())
    }

    /// As many runs as there are, up to `room`; gives how many.
    fn recv_some(
        &self,
        scratch: &mut Scratch,
        room: usize,
        each: &mut dyn FnMut(Received<'_>, SocketAddr),
    ) -> io::Result<usize> {
        let mut meta = [RecvMeta::default(); BATCH];
        let count = loop {
            let mut slices = scratch.bytes.chunks_mut(RUN).map(IoSliceMut::new);
            let mut buffers: [IoSliceMut<'_>; BATCH] =
                std::array::from_fn(|_| slices.next().unwrap_or_else(|| IoSliceMut::new(&mut [])));
            let buffers = buffers.get_mut(..room).unwrap_or_default();
            let mut got = None;
            let received = self.socket.try_io(Interest::READABLE, || {
                let count = self
                    .state
                    .recv(UdpSockRef::from(&self.socket), buffers, &mut meta)?;
                got = Some(count);
                // Less than there was room for: the socket is empty, and need not be asked again.
                if EMPTIES && count < room {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                Ok(())
            });
            match (got, received) {
                (Some(count), _) => break count,
                (None, Err(e)) if !about_an_earlier_datagram(&e) => return Err(e),
                (None, _) => {}
            }
        };
        let mut bytes_of_all = 0;
        for (meta, run) in meta.iter().take(count).zip(scratch.bytes.chunks_mut(RUN)) {
            let from = SocketAddr::new(unmap(meta.addr.ip()), meta.addr.port());
            let bytes = run.get_mut(..meta.len).unwrap_or_default();
            let stride = meta.stride.max(1);
            bytes_of_all += bytes.len();
            each(Received { bytes, stride }, from);
        }
        let long = bytes_of_all > count * LONG;
        if long != self.long.load(Ordering::Relaxed) {
            self.long.store(long, Ordering::Relaxed);
        }
        Ok(count)
    }

    /// Sends now, or reports that the socket is full: a datagram does not wait.
    pub fn try_send(&self, bytes: &[u8], to: SocketAddr) -> io::Result<()> {
        self.queue(bytes, to)?;
        self.flush()
    }

    /// Takes a datagram for the next [`flush`](Self::flush), or sends what it does not fit to.
    pub fn queue(&self, bytes: &[u8], to: SocketAddr) -> io::Result<()> {
        if bytes.len() > MAX_PAYLOAD {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        let to = self.mapped(to);
        let mut run = self.run();
        if !run.takes(bytes, to, self.segments()) {
            self.send_run(&mut run)?;
        }
        run.push(bytes, to);
        Ok(())
    }

    /// Sends what was queued.
    pub fn flush(&self) -> io::Result<()> {
        self.send_run(&mut self.run())
    }

    fn run(&self) -> MutexGuard<'_, Run> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn segments(&self) -> usize {
        if portable_io() {
            1
        } else {
            self.state.max_gso_segments().min(SEGMENTS)
        }
    }

    fn send_run(&self, run: &mut Run) -> io::Result<()> {
        let Some(destination) = run.to.take() else {
            return Ok(());
        };
        let sent = self.send_segments(&run.bytes, run.segment, destination);
        run.count = 0;
        run.bytes.clear();
        if run.bytes.capacity() > 0 {
            // Nobody waits with a buffer in hand.
            SPARE.with_borrow_mut(|spare| {
                let bytes = std::mem::take(&mut run.bytes);
                if spare.capacity() < bytes.capacity() {
                    *spare = bytes;
                }
            });
        }
        sent
    }

    /// Sends datagrams of `segment` bytes each that lie one behind the other, the last of which may
    /// be shorter, from where they lie. What was [queued](Self::queue) is not waited for.
    pub fn send_all(&self, bytes: &[u8], segment: usize, to: SocketAddr) -> io::Result<()> {
        let to = self.mapped(to);
        let segment = segment.max(1);
        let most = self.segments().min(MAX_PAYLOAD / segment).max(1);
        bytes
            .chunks(most * segment)
            .try_for_each(|run| self.send_segments(run, segment, to))
    }

    /// The address as the socket's family has it.
    fn mapped(&self, to: SocketAddr) -> SocketAddr {
        match to {
            SocketAddr::V4(v4) if self.v6 => {
                SocketAddr::new(v4.ip().to_ipv6_mapped().into(), v4.port())
            }
            other => other,
        }
    }

    fn send_segments(
        &self,
        bytes: &[u8],
        segment: usize,
        destination: SocketAddr,
    ) -> io::Result<()> {
        let send = |contents: &[u8], segment_size: Option<usize>| {
            let transmit = Transmit {
                destination,
                ecn: None,
                contents,
                segment_size,
                src_ip: None,
            };
            match self
                .state
                .try_send(UdpSockRef::from(&self.socket), &transmit)
            {
                // An ICMP answer to an earlier datagram says nothing of this one.
                Err(e) if about_an_earlier_datagram(&e) => self
                    .state
                    .try_send(UdpSockRef::from(&self.socket), &transmit),
                sent => sent,
            }
        };
        if bytes.len() <= segment {
            return send(bytes, None);
        }
        match send(bytes, Some(segment)) {
            // The route does not segment: the state has noticed, from now on one by one.
            Err(e)
                if self.state.max_gso_segments() <= 1 && e.kind() != io::ErrorKind::WouldBlock =>
            {
                bytes
                    .chunks(segment.max(1))
                    .try_for_each(|one| send(one, None))
            }
            sent => sent,
        }
    }
}

/// Datagrams of one sender as the kernel gave them: one behind the other.
#[derive(Debug)]
pub struct Received<'a> {
    /// All of them; none is one of no bytes.
    pub bytes: &'a mut [u8],
    /// Bytes of each, at least 1; the last may be shorter.
    pub stride: usize,
}

impl Received<'_> {
    fn each(self, from: SocketAddr, each: &mut dyn FnMut(&mut [u8], SocketAddr)) {
        if self.bytes.is_empty() {
            each(self.bytes, from);
        } else {
            let datagrams = self.bytes.chunks_mut(self.stride);
            datagrams.for_each(|datagram| each(datagram, from));
        }
    }
}

impl Run {
    /// Whether a datagram may join: equal ones, the last one may be shorter.
    fn takes(&self, bytes: &[u8], to: SocketAddr, segments: usize) -> bool {
        match self.to {
            None => true,
            Some(peer) => {
                peer == to
                    && self.count < segments
                    && self.segment > 0
                    && !bytes.is_empty()
                    && bytes.len() <= self.segment
                    && self.bytes.len() == self.segment * self.count
                    && self.bytes.len() + bytes.len() <= MAX_PAYLOAD
            }
        }
    }

    fn push(&mut self, bytes: &[u8], to: SocketAddr) {
        if self.to.is_none() {
            self.segment = bytes.len();
            if self.bytes.capacity() == 0 {
                self.bytes = SPARE.with_borrow_mut(std::mem::take);
            }
        }
        self.to = Some(to);
        self.count += 1;
        self.bytes.extend_from_slice(bytes);
    }
}

/// Where a batch is received: one for all sockets of a thread.
struct Scratch {
    bytes: Vec<u8>,
}

impl Default for Scratch {
    fn default() -> Self {
        Self {
            bytes: vec![0; RUN * BATCH],
        }
    }
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
    /// The buffer of the last run that was sent.
    static SPARE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A socket for `addr` that is not bound yet. A v6 wildcard will also take IPv4.
pub(crate) fn open(addr: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(addr), Type::DGRAM, Some(Protocol::UDP))?;
    if addr.is_ipv6() {
        socket.set_only_v6(!addr.ip().is_unspecified())?;
    }
    // The system's maximum may be lower; then it gives that.
    let _ = socket.set_recv_buffer_size(BUFFER);
    let _ = socket.set_send_buffer_size(BUFFER);
    socket.set_nonblocking(true)?;
    Ok(socket)
}

pub(crate) fn about_an_earlier_datagram(e: &io::Error) -> bool {
    matches!(
        e.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_shared_port_is_ours_alone() {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let ours = Udp::bind_shared(any, 3).unwrap();
        let at = ours[0].local_addr().unwrap();
        assert!(ours.iter().all(|socket| socket.local_addr().unwrap() == at));
        let taken = Udp::bind_shared(at, 3).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
    }

    use std::future::poll_fn;

    async fn recv(socket: &Udp, want: usize) -> Vec<(Vec<u8>, SocketAddr)> {
        let mut got = Vec::new();
        while got.len() < want {
            poll_fn(|cx| socket.poll_recv(cx, &mut |bytes, from| got.push((bytes.to_vec(), from))))
                .await
                .unwrap();
        }
        got
    }

    #[tokio::test]
    async fn both_families_through_one_socket() {
        let out = Udp::ephemeral().unwrap();
        let here = Udp::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        for payload in [&b""[..], b"x", &[7; 9000]] {
            out.try_send(payload, here.local_addr().unwrap()).unwrap();
            let (got, from) = recv(&here, 1).await.remove(0);
            assert_eq!(got, payload);
            here.try_send(&got, from).unwrap();
            let (got, from) = recv(&out, 1).await.remove(0);
            assert_eq!((from, &*got), (here.local_addr().unwrap(), payload));
        }
    }

    #[tokio::test]
    async fn a_closed_port_does_not_break_the_socket() {
        let gone = Udp::bind("127.0.0.1:0".parse().unwrap())
            .unwrap()
            .local_addr()
            .unwrap();
        let out = Udp::ephemeral().unwrap();
        let here = Udp::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        for _ in 0..3 {
            out.try_send(b"lost", gone).unwrap();
        }
        out.try_send(b"found", here.local_addr().unwrap()).unwrap();
        assert_eq!(recv(&here, 1).await[0].0, b"found");
    }

    #[tokio::test]
    async fn runs_keep_order_borders_and_peers() {
        let out = Udp::ephemeral().unwrap();
        let a = Udp::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let b = Udp::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let (to_a, to_b) = (a.local_addr().unwrap(), b.local_addr().unwrap());
        let sizes = [
            100, 100, 100, 40, 100, 0, 100, 200, 200, 1400, 1400, 1400, 1, 0, 0, 7,
        ];
        let mut sent = Vec::new();
        for (i, size) in sizes.into_iter().cycle().take(400).enumerate() {
            let datagram = vec![i as u8; size];
            out.queue(&datagram, to_a).unwrap();
            sent.push(datagram);
            if i % 97 == 0 {
                out.queue(b"other", to_b).unwrap();
            }
        }
        out.flush().unwrap();
        let got: Vec<_> = recv(&a, sent.len())
            .await
            .into_iter()
            .map(|(bytes, _)| bytes)
            .collect();
        assert!(got == sent, "every datagram as it was, in order");
        assert_eq!(recv(&b, 5).await.len(), 5);
    }

    #[test]
    fn a_run_takes_equal_ones_and_one_shorter_last() {
        let (to, other) = ("1.2.3.4:5".parse().unwrap(), "1.2.3.4:6".parse().unwrap());
        let mut run = Run::default();
        assert!(run.takes(&[1; 9], to, 64));
        run.push(&[1; 9], to);
        assert!(run.takes(&[1; 9], to, 64) && !run.takes(&[1; 9], to, 1));
        assert!(!run.takes(&[1; 10], to, 64) && !run.takes(&[1; 9], other, 64));
        assert!(!run.takes(&[], to, 64), "an empty datagram is no segment");
        run.push(&[1; 4], to);
        assert!(!run.takes(&[1; 4], to, 64), "the shorter one was the last");
    }
}
