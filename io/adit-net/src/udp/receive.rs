//! Batched receiving: several datagrams per call, each perhaps a run of equal ones that the kernel has
//! joined.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};

use adit_wire::{subslice_mut, unmap_ipv4};
use quinn_udp::RecvMeta;

use super::{BatchUdpSocket, is_icmp_error};

/// Maximum number of datagrams, or joined runs of them, per call.
const BATCH: usize = 16;
/// The same if the last ones were long runs: the datagrams of a call are then processed while they are in
/// the second-level cache, and the next call writes to the same memory.
const LONG_RUN_BATCH: usize = 2;
/// Minimum size of a long run, in bytes.
const LONG_RUN_BYTES: usize = MAX_RUN_BYTES / 4;
/// True if a call receives all available datagrams, up to [`BATCH`] (`recvmmsg`). No socket here is
/// connected, so no error of an earlier datagram ends a call early.
const RECEIVES_ALL_AVAILABLE: bool = cfg!(target_os = "linux");
/// Space for one joined run, in bytes.
const MAX_RUN_BYTES: usize = 64 << 10;

/// A run of datagrams from one sender, consecutive in memory.
#[derive(Debug)]
pub struct ReceivedRun<'a> {
    /// All datagrams; none of them is empty.
    pub bytes: &'a mut [u8],
    /// Size of each datagram, at least 1; the last may be shorter.
    pub stride: usize,
}

impl ReceivedRun<'_> {
    fn for_each_datagram(self, from: SocketAddr, each: &mut dyn FnMut(&mut [u8], SocketAddr)) {
        if self.bytes.is_empty() {
            each(self.bytes, from);
        } else {
            let datagrams = self.bytes.chunks_mut(self.stride);
            datagrams.for_each(|datagram| each(datagram, from));
        }
    }
}

impl BatchUdpSocket {
    /// Waits until there may be something to receive.
    ///
    /// # Errors
    /// Errors of the system.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn readable(&self) -> io::Result<()> {
        poll_fn(|cx| self.poll_readable(cx)).await
    }

    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        #[cfg(target_os = "linux")]
        if let Some(link) = self.handover.link() {
            return link.poll_readable(cx);
        }
        self.socket.poll_readable(cx)
    }

    /// Receives a batch and passes each datagram with its sender to `each`. Holds no buffer in between.
    /// Errors about earlier datagrams (ICMP) are ignored.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        each: &mut dyn FnMut(&mut [u8], SocketAddr),
    ) -> Poll<io::Result<()>> {
        self.poll_recv_runs(cx, &mut |run, from| run.for_each_datagram(from, each))
    }

    /// Like [`poll_recv`](Self::poll_recv), but passes on runs of datagrams from one sender undivided.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn poll_recv_runs(
        &self,
        cx: &mut Context<'_>,
        each: &mut dyn FnMut(ReceivedRun<'_>, SocketAddr),
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.poll_readable(cx))?;
            match self.try_recv_runs(each) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done),
            }
        }
    }

    /// Like [`poll_recv`](Self::poll_recv), without waiting.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if nothing is available, and errors of the system.
    pub fn try_recv(&self, each: &mut dyn FnMut(&mut [u8], SocketAddr)) -> io::Result<()> {
        self.try_recv_runs(&mut |run, from| run.for_each_datagram(from, each))
    }

    fn try_recv_runs(&self, each: &mut dyn FnMut(ReceivedRun<'_>, SocketAddr)) -> io::Result<()> {
        // If `each` receives on another socket, the shared buffer is in use.
        SCRATCH.with(|scratch| match scratch.try_borrow_mut() {
            Ok(mut scratch) => self.recv_batches(&mut scratch, each),
            Err(_) => self.recv_batches(&mut ReceiveBuffer::default(), each),
        })
    }

    fn recv_batches(
        &self,
        scratch: &mut ReceiveBuffer,
        each: &mut dyn FnMut(ReceivedRun<'_>, SocketAddr),
    ) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        if let Some(link) = self.handover.link() {
            let (buffer, _) = scratch.bytes.split_at_mut(MAX_RUN_BYTES);
            let mut each = |bytes: &mut [u8], stride: usize, from| {
                if !self.handover.forward(bytes, stride, from) {
                    each(ReceivedRun { bytes, stride }, from);
                }
            };
            return link.try_recv_runs(buffer, &mut each).map_err(|why| {
                if why.kind() != io::ErrorKind::WouldBlock {
                    self.handover.resume();
                }
                io::ErrorKind::WouldBlock.into()
            });
        }
        let mut left = BATCH;
        let mut datagrams = 0;
        while left > 0 {
            let long = self.has_long_runs.load(Ordering::Relaxed);
            let room = if long {
                LONG_RUN_BATCH.min(left)
            } else {
                BATCH
            };
            let count = match self.recv_runs(scratch, room, each, &mut datagrams) {
                // The runs received before are valid all the same.
                Err(_) if left < BATCH => break,
                received => received?,
            };
            if count < room || !long {
                break;
            }
            left -= count;
        }
        self.socket.record_poll(datagrams);
        Ok(())
    }

    /// Receives the available runs, up to `room`; returns their number and adds up their `datagrams`.
    fn recv_runs(
        &self,
        scratch: &mut ReceiveBuffer,
        room: usize,
        each: &mut dyn FnMut(ReceivedRun<'_>, SocketAddr),
        datagrams: &mut usize,
    ) -> io::Result<usize> {
        let mut meta = [RecvMeta::default(); BATCH];
        let count = loop {
            let mut slices = scratch.bytes.chunks_mut(MAX_RUN_BYTES).map(IoSliceMut::new);
            let mut buffers: [IoSliceMut<'_>; BATCH] =
                std::array::from_fn(|_| slices.next().unwrap_or_else(|| IoSliceMut::new(&mut [])));
            let buffers = subslice_mut(&mut buffers, ..room);
            let mut got = None;
            let received = self.socket.try_recv_with(|| {
                let count = self
                    .state
                    .recv(self.socket.udp_socket_ref(), buffers, &mut meta)?;
                got = Some(count);
                // Fewer runs than there was room for: the socket is empty, and another call is not needed.
                if RECEIVES_ALL_AVAILABLE && count < room {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                Ok(())
            });
            match (got, received) {
                (Some(count), _) => break count,
                (None, Err(e)) if !is_icmp_error(&e) => return Err(e),
                (None, _) => {}
            }
        };
        let mut bytes_of_all = 0;
        for (meta, run) in meta
            .iter()
            .take(count)
            .zip(scratch.bytes.chunks_mut(MAX_RUN_BYTES))
        {
            let from = SocketAddr::new(unmap_ipv4(meta.addr.ip()), meta.addr.port());
            // The system reports the length.
            let bytes = run.get_mut(..meta.len).unwrap_or_default();
            let stride = meta.stride.max(1);
            bytes_of_all += bytes.len();
            *datagrams += bytes.len().div_ceil(stride).max(1);
            #[cfg(target_os = "linux")]
            if self.handover.forward(bytes, stride, from) {
                continue;
            }
            each(ReceivedRun { bytes, stride }, from);
        }
        let long = bytes_of_all > count * LONG_RUN_BYTES;
        if long != self.has_long_runs.load(Ordering::Relaxed) {
            self.has_long_runs.store(long, Ordering::Relaxed);
        }
        Ok(count)
    }
}

/// The receive buffer of a thread, shared by all its sockets.
struct ReceiveBuffer {
    bytes: Vec<u8>,
}

impl Default for ReceiveBuffer {
    fn default() -> Self {
        Self {
            bytes: vec![0; MAX_RUN_BYTES * BATCH],
        }
    }
}

thread_local! {
    static SCRATCH: RefCell<ReceiveBuffer> = RefCell::default();
}
