//! A socket that is watched for what arrives, and for nothing else.
//!
//! Nobody waits for room to send here: a datagram that finds none is lost. A socket that were
//! watched for it would wake a thread whenever a datagram has left, which on the way to this
//! machine itself is at every send.

use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll};

use quinn_udp::UdpSockRef;
use socket2::{SockRef, Socket};

#[cfg(unix)]
type Watched = tokio::io::unix::AsyncFd<Socket>;
#[cfg(not(unix))]
type Watched = tokio::net::UdpSocket;

/// A bound socket, watched by the runtime that was there when it was made.
#[derive(Debug)]
pub(super) struct Heard(Watched);

impl Heard {
    #[cfg(unix)]
    #[allow(unsafe_code, reason = "no safe way watches for one direction alone")]
    pub(super) fn new(socket: Socket) -> io::Result<Self> {
        let interest = tokio::io::Interest::READABLE;
        // SAFETY: the descriptor is the socket's own; it stays open and the same for as long as
        // the socket lives, which nobody can take out or replace, since nothing here gives
        // anything but shared references to it.
        let watched = unsafe { Watched::register_with_interest(socket, interest) };
        Ok(Self(watched?))
    }

    #[cfg(not(unix))]
    pub(super) fn new(socket: Socket) -> io::Result<Self> {
        Watched::from_std(socket.into()).map(Self)
    }

    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        let addr = self.options().local_addr()?;
        addr.as_socket()
            .ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// For its options.
    pub(super) fn options(&self) -> SockRef<'_> {
        #[cfg(unix)]
        return SockRef::from(self.0.get_ref());
        #[cfg(not(unix))]
        return SockRef::from(&self.0);
    }

    /// For sending, which needs no readiness, and for receiving within [`take`](Self::take).
    pub(super) fn datagrams(&self) -> UdpSockRef<'_> {
        #[cfg(unix)]
        return UdpSockRef::from(self.0.get_ref());
        #[cfg(not(unix))]
        return UdpSockRef::from(&self.0);
    }

    /// Waits until there is something to receive.
    pub(super) async fn readable(&self) -> io::Result<()> {
        self.0.readable().await.map(drop)
    }

    /// As [`readable`](Self::readable); of several tasks only the last to ask is woken.
    pub(super) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        #[cfg(unix)]
        return self.0.poll_read_ready(cx).map_ok(drop);
        #[cfg(not(unix))]
        return self.0.poll_recv_ready(cx);
    }

    /// Receives by `receive` if there may be something; when that says
    /// [`WouldBlock`](io::ErrorKind::WouldBlock), there is nothing until something arrives.
    pub(super) fn take(&self, receive: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let interest = tokio::io::Interest::READABLE;
        #[cfg(unix)]
        return self.0.try_io(interest, |_| receive());
        #[cfg(not(unix))]
        return self.0.try_io(interest, receive);
    }
}
