//! Receiving: several datagrams per call, each perhaps a run of equal ones that the kernel has joined.

use std::cell::RefCell;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};

use adit_wire::{held_mut, unmap};
use quinn_udp::RecvMeta;

use super::{Udp, about_an_earlier_datagram};

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

impl Udp {
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
            ready!(self.socket.poll_readable(cx))?;
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
        let mut datagrams = 0;
        while left > 0 {
            let long = self.long.load(Ordering::Relaxed);
            let room = if long { FEW.min(left) } else { BATCH };
            let count = match self.recv_some(scratch, room, each, &mut datagrams) {
                // What came before is no error.
                Err(_) if left < BATCH => break,
                received => received?,
            };
            if count < room || !long {
                break;
            }
            left -= count;
        }
        self.socket.looked(datagrams);
        Ok(())
    }

    /// As many runs as there are, up to `room`; gives how many, and counts their `datagrams`.
    fn recv_some(
        &self,
        scratch: &mut Scratch,
        room: usize,
        each: &mut dyn FnMut(Received<'_>, SocketAddr),
        datagrams: &mut usize,
    ) -> io::Result<usize> {
        let mut meta = [RecvMeta::default(); BATCH];
        let count = loop {
            let mut slices = scratch.bytes.chunks_mut(RUN).map(IoSliceMut::new);
            let mut buffers: [IoSliceMut<'_>; BATCH] =
                std::array::from_fn(|_| slices.next().unwrap_or_else(|| IoSliceMut::new(&mut [])));
            let buffers = held_mut(&mut buffers, ..room);
            let mut got = None;
            let received = self.socket.take(|| {
                let count = self
                    .state
                    .recv(self.socket.datagrams(), buffers, &mut meta)?;
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
            // The system says how many.
            let bytes = run.get_mut(..meta.len).unwrap_or_default();
            let stride = meta.stride.max(1);
            bytes_of_all += bytes.len();
            *datagrams += bytes.len().div_ceil(stride).max(1);
            each(Received { bytes, stride }, from);
        }
        let long = bytes_of_all > count * LONG;
        if long != self.long.load(Ordering::Relaxed) {
            self.long.store(long, Ordering::Relaxed);
        }
        Ok(count)
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
}
