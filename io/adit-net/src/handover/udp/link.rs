//! The end of the previous process.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use adit_wire::subslice;
use rustix::io::{Errno, readv};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, send, socketpair};
use socket2::SockRef;
use tokio::io::Interest;
use tokio::net::UnixStream;

use crate::handover::sources::{RunHeader, encode_sources};

/// Maximum number of runs received per call.
const BATCH: usize = 16;
/// Requested size of the buffer of forwarded datagrams, in bytes.
const BUFFER: usize = 4 << 20;
/// Maximum number of addresses in one message.
const RELEASES: usize = 512;

/// Receives what the next process forwards.
#[derive(Debug)]
pub(crate) struct Link {
    /// A socket that keeps the boundaries of messages: the type is used for its registration with the runtime, and
    /// reading and writing do not differ.
    socket: UnixStream,
    /// Addresses to release, which found no space in the socket's buffer.
    unsent: Mutex<Vec<SocketAddr>>,
}

impl Link {
    /// Creates a pair: this end, and that of the next process.
    pub(crate) fn pair() -> io::Result<(Self, OwnedFd)> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (here, there) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        // The system clamps this to its maximum.
        let _ = SockRef::from(&there).set_send_buffer_size(BUFFER);
        let link = Self {
            socket: UnixStream::from_std(here.into())?,
            unsent: Mutex::default(),
        };
        Ok((link, there))
    }

    /// Waits until there may be something to receive.
    pub(crate) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket.poll_read_ready(cx)
    }

    /// Receives the available runs, up to [`BATCH`], with `buffer` as scratch space. Passes the bytes of each run to
    /// `each`, with the size of its datagrams and their sender.
    ///
    /// # Errors
    /// `WouldBlock` if nothing is available. After any other error the next process has closed the link.
    pub(crate) fn try_recv_runs(
        &self,
        buffer: &mut [u8],
        each: &mut dyn FnMut(&mut [u8], usize, SocketAddr),
    ) -> io::Result<()> {
        // There is space now if there was none before.
        self.release(&[]);
        for received in 0..BATCH {
            let mut header = [0; RunHeader::BYTES];
            let read = self.socket.try_io(Interest::READABLE, || {
                let mut parts = [IoSliceMut::new(&mut header), IoSliceMut::new(buffer)];
                Ok(readv(&self.socket, &mut parts)?)
            });
            let len = match read {
                Ok(0) if received == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(why) if received == 0 => return Err(why),
                // What was received before is valid.
                Ok(0) | Err(_) => return Ok(()),
                Ok(len) => len,
            };
            let Some(len) = len.checked_sub(header.len()) else {
                continue;
            };
            let RunHeader { from, stride } = RunHeader::parse(header);
            // The system reports the length.
            let bytes = buffer.get_mut(..len).unwrap_or_default();
            if stride > 0 || bytes.is_empty() {
                let stride = usize::from(stride.max(1));
                each(bytes, stride, from);
            }
        }
        Ok(())
    }

    /// Informs the next process that these peers are not served any more. Addresses for which there is no
    /// space are sent with the next call.
    pub(crate) fn release(&self, sources: &[SocketAddr]) {
        let mut unsent = self.unsent.lock().unwrap_or_else(PoisonError::into_inner);
        unsent.extend_from_slice(sources);
        while !unsent.is_empty() {
            let count = unsent.len().min(RELEASES);
            let message = encode_sources(subslice(&unsent, ..count));
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            match send(&self.socket, &message, flags) {
                Ok(_) => drop(unsent.drain(..count)),
                Err(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM | Errno::INTR) => return,
                // The link is closed.
                Err(_) => unsent.clear(),
            }
        }
    }
}
