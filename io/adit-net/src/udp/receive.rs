//! Batched receiving: several datagrams per call, each perhaps a run of equal ones that the kernel has
//! joined.

use std::cell::RefCell;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};

use adit_wire::{held_mut, unmap};
use quinn_udp::RecvMeta;

use super::{Udp, about_an_earlier_datagram};

/// Maximum number of datagrams, or joined runs of them, per call.
const BATCH: usize = 16;
/// The same if the last ones were long runs: the datagrams of a call are then processed while they are in
/// the second-level cache, and the next call writes to the same memory.
const FEW: usize = 2;
/// Minimum size of a long run, in bytes.
const LONG: usize = RUN / 4;
/// True if a call receives all available datagrams, up to [`BATCH`] (`recvmmsg`). No socket here is
/// connected, so no error of an earlier datagram ends a call early.
const EMPTIES: bool = cfg!(target_os = "linux");
/// Space for one joined run, in bytes.
const RUN: usize = 64 << 10;

/// A run of datagrams from one sender, consecutive in memory.
#[derive(Debug)]
pub struct Received<'a> {
    /// All datagrams; none of them is empty.
    pub bytes: &'a mut [u8],
    /// Size of each datagram, at least 1; the last may be shorter.
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
    /// Waits until there may be something to receive.
    pub async fn readable(&self) -> io::Result<()> {
        self.socket.readable().await
    }

    /// Receives a batch and passes each datagram with its sender to `each`. Holds no buffer in between.
    /// Errors about earlier datagrams (ICMP) are ignored.
    pub fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        each: &mut dyn FnMut(&mut [u8], SocketAddr),
    ) -> Poll<io::Result<()>> {
        self.poll_recv_runs(cx, &mut |run, from| run.each(from, each))
    }

    /// Like [`poll_recv`](Self::poll_recv), but passes on runs of datagrams from one sender undivided.
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

    /// Like [`poll_recv`](Self::poll_recv), without waiting.
    pub fn try_recv(&self, each: &mut dyn FnMut(&mut [u8], SocketAddr)) -> io::Result<()> {
        self.try_recv_runs(&mut |run, from| run.each(from, each))
    }

    fn try_recv_runs(&self, each: &mut dyn FnMut(Received<'_>, SocketAddr)) -> io::Result<()> {
        // If `each` receives on another socket, the shared buffer is in use.
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
                // The runs received before are valid all the same.
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

    /// Receives the available runs, up to `room`; returns their number and adds up their `datagrams`.
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
                // Fewer runs than there was room for: the socket is empty, and another call is not needed.
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
            // The system reports the length.
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

/// The receive buffer of a thread, shared by all its sockets.
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
